#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "userspace/attach/kernel/transitions.h"

#define PLACES 256

/* The kernel side's part, in memory of our own. */
static struct rls_wire_place *written;
static uint64_t ends[RLS_ENDS];
static struct rls_transitions transitions;
static uint32_t seen[4 * PLACES];
static size_t seen_count;
static int answer;
static bool reads_within;

static int setup(void **state)
{
	size_t bytes = PLACES * sizeof(*written);
	int fd = memfd_create("transitions", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	written = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(written, MAP_FAILED);
	memset(ends, 0, sizeof(ends));
	assert_int_equal(rls_transitions_map(fd, PLACES, ends, &transitions), 0);
	close(fd);
	seen_count = 0;
	answer = 0;
	reads_within = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rls_transitions_unmap(&transitions);
	munmap(written, PLACES * sizeof(*written));
	return 0;
}

static uint64_t take(void)
{
	return __atomic_fetch_add(&ends[RLS_END_TAKEN], 1, __ATOMIC_SEQ_CST);
}

static void fill(uint64_t position, uint32_t sequence)
{
	struct rls_wire_place *place = &written[position % PLACES];

	place->event.header.sequence = sequence;
	__atomic_store_n(&place->turn, position + 1, __ATOMIC_RELEASE);
}

static int see(void *context, const struct rls_wire_category *event)
{
	assert_ptr_equal(context, seen);
	if (reads_within)
		assert_int_equal(rls_transitions_read(&transitions, ends[RLS_END_TAKEN], see, seen),
				 0);
	seen[seen_count++ % (4 * PLACES)] = event->header.sequence;
	return answer;
}

static int read_all(void)
{
	return rls_transitions_read(&transitions, rls_transitions_end(&transitions), see, seen);
}

static void events_come_in_their_order_round_and_round(void **state)
{
	uint32_t next = 0;

	(void)state;
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen_count, 0);
	for (int round = 0; round < 20; round++) {
		seen_count = 0;
		for (int i = 0; i < PLACES - 3; i++)
			fill(take(), next++);
		assert_int_equal(read_all(), 0);
		assert_int_equal(seen_count, PLACES - 3);
		for (size_t i = 0; i < seen_count; i++)
			assert_int_equal(seen[i], next - seen_count + i);
		assert_int_equal(ends[RLS_END_READ], next);
	}
	assert_int_equal(transitions.overwritten, 0);
}

static void what_is_being_written_holds_up_what_follows(void **state)
{
	uint64_t first = take(), second = take(), third = take();

	(void)state;
	fill(first, 1);
	fill(third, 3);
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen_count, 1);
	fill(second, 2);
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen_count, 3);
	assert_int_equal(seen[1], 2);
	assert_int_equal(seen[2], 3);
}

static void what_comes_meanwhile_is_for_the_next_time(void **state)
{
	uint64_t end_position;

	(void)state;
	fill(take(), 1);
	end_position = rls_transitions_end(&transitions);
	fill(take(), 2);
	assert_int_equal(rls_transitions_read(&transitions, end_position, see, seen), 0);
	assert_int_equal(seen_count, 1);
	assert_int_equal(rls_transitions_read(&transitions, end_position, see, seen), 0);
	assert_int_equal(seen_count, 1);
}

static void an_error_ends_it_behind_its_event(void **state)
{
	(void)state;
	fill(take(), 1);
	fill(take(), 2);
	answer = -ENOMEM;
	assert_int_equal(read_all(), -ENOMEM);
	assert_int_equal(seen_count, 1);
	answer = 0;
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen_count, 2);
	assert_int_equal(seen[1], 2);
}

static void a_handler_that_reads_gets_nothing_twice(void **state)
{
	(void)state;
	reads_within = true;
	for (uint32_t i = 0; i < 10; i++)
		fill(take(), i);
	assert_int_equal(read_all(), 0);
	assert_int_equal(seen_count, 10);
}

/* More writers at once than there are places to spare: reported, and the rest is read. */
static void what_was_overwritten_is_counted(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PLACES + 5; i++)
		fill(take(), i);
	assert_int_equal(read_all(), 0);
	assert_int_equal(transitions.overwritten, 5);
	assert_int_equal(seen_count, PLACES);
	assert_int_equal(ends[RLS_END_READ], PLACES + 5);
}

/* ---- writers at once, as the kernel side takes places ---- */

#define WRITERS 4
#define EACH 100000

static bool is_full(void)
{
	uint64_t read = __atomic_load_n(&ends[RLS_END_READ], __ATOMIC_SEQ_CST);

	return __atomic_load_n(&ends[RLS_END_TAKEN], __ATOMIC_SEQ_CST) - read >=
	       PLACES - RLS_PLACES_SPARE(PLACES);
}

static void *write_many(void *argument)
{
	uint32_t writer = (uint32_t)(uintptr_t)argument;

	for (uint32_t i = 0; i < EACH; i++) {
		while (is_full())
			sched_yield();
		fill(take(), writer * EACH + i);
	}
	return NULL;
}

static uint32_t last_of[WRITERS], of_all;

static int check_order(void *context, const struct rls_wire_category *event)
{
	uint32_t writer = event->header.sequence / EACH, number = event->header.sequence % EACH + 1;

	(void)context;
	if (writer >= WRITERS || number != last_of[writer] + 1)
		return -EPROTO;
	last_of[writer] = number;
	of_all++;
	return 0;
}

static void all_of_many_writers_is_read_once_in_each_ones_order(void **state)
{
	pthread_t threads[WRITERS];

	(void)state;
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
	while (of_all < WRITERS * EACH)
		assert_int_equal(rls_transitions_read(&transitions,
						      rls_transitions_end(&transitions),
						      check_order, NULL),
				 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(transitions.overwritten, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(events_come_in_their_order_round_and_round),
		TEST(what_is_being_written_holds_up_what_follows),
		TEST(what_comes_meanwhile_is_for_the_next_time),
		TEST(an_error_ends_it_behind_its_event),
		TEST(a_handler_that_reads_gets_nothing_twice),
		TEST(what_was_overwritten_is_counted),
		TEST(all_of_many_writers_is_read_once_in_each_ones_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
