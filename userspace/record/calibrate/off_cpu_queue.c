#include "userspace/record/calibrate/off_cpu_queue.h"

#include <errno.h>
#include <stdlib.h>

void rls_off_cpu_queue_clear(struct rls_off_cpu_queue *queue)
{
	free(queue->periods);
	*queue = (struct rls_off_cpu_queue){0};
}

static struct rls_queued_off_cpu *off_cpu_queue_at(const struct rls_off_cpu_queue *queue,
						   uint32_t number)
{
	return &queue->periods[(queue->first + number) % RLS_OFF_CPU_QUEUED];
}

static void off_cpu_queue_drop(struct rls_off_cpu_queue *queue, uint32_t count)
{
	queue->first = (queue->first + count) % RLS_OFF_CPU_QUEUED;
	queue->count -= count;
}

int rls_off_cpu_queue_add(struct rls_off_cpu_queue *queue, uint64_t until_ns, uint64_t away_ns)
{
	if (!queue->periods) {
		queue->periods = calloc(RLS_OFF_CPU_QUEUED, sizeof(*queue->periods));
		if (!queue->periods)
			return -ENOMEM;
	}
	if (queue->count == RLS_OFF_CPU_QUEUED)
		off_cpu_queue_drop(queue, 1);
	*off_cpu_queue_at(queue, queue->count++) = (struct rls_queued_off_cpu){until_ns, away_ns};
	return 0;
}

static uint64_t sum(const struct rls_off_cpu_queue *queue, uint64_t until_ns, uint32_t *count)
{
	uint64_t away_ns = 0;

	for (*count = 0;
	     *count < queue->count && off_cpu_queue_at(queue, *count)->until_ns <= until_ns;
	     (*count)++)
		away_ns += off_cpu_queue_at(queue, *count)->away_ns;
	return away_ns;
}

uint64_t rls_off_cpu_queue_sum(const struct rls_off_cpu_queue *queue, uint64_t until_ns)
{
	uint32_t count;

	return sum(queue, until_ns, &count);
}

uint64_t rls_off_cpu_queue_take(struct rls_off_cpu_queue *queue, uint64_t until_ns)
{
	uint32_t count;
	uint64_t away_ns = sum(queue, until_ns, &count);

	off_cpu_queue_drop(queue, count);
	return away_ns;
}
