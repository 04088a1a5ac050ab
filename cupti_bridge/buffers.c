#include "cupti_bridge/buffers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
	UNUSED, /* without memory */
	FREE,
	OUT, /* CUPTI's */
	WAITING, /* come back */
	TAKEN, /* our thread's */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came_back;
static struct rls_buffer buffers[RLS_BUFFERS_MAX];
static rls_next_record next_record;
static uint64_t last_order, lost;
static unsigned int waiting;
static bool is_woken, is_abandoned;

/* CLOCK_MONOTONIC cannot be asked for in an initialiser. */
__attribute__((constructor)) static void initialise(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&came_back, &attributes);
	pthread_condattr_destroy(&attributes);
}

static struct rls_buffer *buffers_find(uint8_t state)
{
	for (size_t i = 0; i < RLS_BUFFERS_MAX; i++)
		if (buffers[i].state == state)
			return &buffers[i];
	return NULL;
}

static struct rls_buffer *oldest_waiting(void)
{
	struct rls_buffer *oldest = NULL;

	for (size_t i = 0; i < RLS_BUFFERS_MAX; i++)
		if (buffers[i].state == WAITING && (!oldest || buffers[i].order < oldest->order))
			oldest = &buffers[i];
	return oldest;
}

/* One that is out, and whose memory the heap gives out again, was freed by another tool. */
static void forget_freed(const uint8_t *bytes)
{
	for (size_t i = 0; i < RLS_BUFFERS_MAX; i++)
		if (buffers[i].state == OUT && buffers[i].bytes == bytes)
			buffers[i] = (struct rls_buffer){.state = UNUSED};
}

static struct rls_buffer *buffers_make(void)
{
	struct rls_buffer *buffer = buffers_find(UNUSED);

	if (!buffer)
		return NULL;
	buffer->size =
		buffer - buffers < RLS_BUFFERS_LARGE ? RLS_BUFFER_BYTES : RLS_BUFFER_SMALL_BYTES;
	buffer->bytes = malloc(buffer->size);
	if (!buffer->bytes)
		return NULL;
	forget_freed(buffer->bytes);
	return buffer;
}

static uint64_t count_records(struct rls_buffer *buffer)
{
	struct rls_walk walk = {
		.next = next_record, .buffer = buffer->bytes, .valid_bytes = buffer->valid_bytes};
	const uint8_t *record;
	uint64_t count = 0;
	size_t length;

	while (rls_walk_step(&walk, &record, &length) > 0)
		count++;
	return count + (walk.error != 0);
}

/* Rather than telling CUPTI that there is none, which versions before 12.9 may not survive.
 * The records are counted by CUPTI's own walk, and so not under our lock. */
static struct rls_buffer *reuse_oldest(void)
{
	struct rls_buffer *buffer = oldest_waiting();
	uint64_t count;

	if (!buffer)
		return NULL;
	buffer->state = OUT;
	waiting--;
	pthread_mutex_unlock(&lock);
	count = count_records(buffer);
	pthread_mutex_lock(&lock);
	lost += count;
	return buffer;
}

void rls_buffers_requested(uint8_t **bytes, size_t *size, size_t *records_max)
{
	struct rls_buffer *buffer;

	*bytes = NULL;
	*size = 0;
	*records_max = 0; /* as many as fit */
	if (__atomic_load_n(&is_abandoned, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	buffer = buffers_find(FREE);
	if (!buffer)
		buffer = buffers_make();
	if (!buffer)
		buffer = reuse_oldest();
	if (buffer) {
		buffer->state = OUT;
		*bytes = buffer->bytes;
		*size = buffer->size;
	}
	pthread_mutex_unlock(&lock);
}

void rls_buffers_completed(void *context, uint32_t stream, uint8_t *bytes, size_t size,
			   size_t valid_bytes)
{
	struct rls_buffer *buffer = NULL;

	if (!bytes || __atomic_load_n(&is_abandoned, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RLS_BUFFERS_MAX && !buffer; i++)
		if (buffers[i].state == OUT && buffers[i].bytes == bytes)
			buffer = &buffers[i];
	if (!buffer) {
		lost++; /* another tool's, from before we came: how to free it is not known */
	} else if (!valid_bytes) {
		buffer->state = FREE;
	} else {
		buffer->valid_bytes = valid_bytes < buffer->size ? valid_bytes : buffer->size;
		buffer->order = ++last_order;
		buffer->state = WAITING;
		if (++waiting >= RLS_BUFFERS_MANY)
			pthread_cond_signal(&came_back);
	}
	pthread_mutex_unlock(&lock);
}

void rls_buffers_set_walk(rls_next_record next)
{
	pthread_mutex_lock(&lock);
	next_record = next;
	pthread_mutex_unlock(&lock);
}

size_t rls_buffers_take(struct rls_buffer **taken)
{
	struct rls_buffer *buffer;
	size_t count = 0;

	pthread_mutex_lock(&lock);
	for (; (buffer = oldest_waiting()); taken[count++] = buffer)
		buffer->state = TAKEN;
	waiting = 0;
	pthread_mutex_unlock(&lock);
	return count;
}

void rls_buffers_give_back(struct rls_buffer **taken, size_t count)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++)
		taken[i]->state = FREE;
	pthread_mutex_unlock(&lock);
}

void rls_buffers_trim(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RLS_BUFFERS_MAX; i++) {
		if (buffers[i].state != FREE)
			continue;
		free(buffers[i].bytes);
		buffers[i] = (struct rls_buffer){.state = UNUSED};
	}
	pthread_mutex_unlock(&lock);
}

bool rls_buffers_wait(uint64_t until_ns)
{
	struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
	int result = 0;
	bool are_many;

	pthread_mutex_lock(&lock);
	while (waiting < RLS_BUFFERS_MANY && !is_woken && !result)
		result = pthread_cond_timedwait(&came_back, &lock, &until);
	is_woken = false;
	are_many = waiting >= RLS_BUFFERS_MANY;
	pthread_mutex_unlock(&lock);
	return are_many;
}

void rls_buffers_wake(void)
{
	pthread_mutex_lock(&lock);
	is_woken = true;
	pthread_cond_signal(&came_back);
	pthread_mutex_unlock(&lock);
}

uint64_t rls_buffers_lost(void)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	count = lost;
	pthread_mutex_unlock(&lock);
	return count;
}

void rls_buffers_abandon(void)
{
	__atomic_store_n(&is_abandoned, true, __ATOMIC_RELAXED);
}
