/* What the kernel side does when its rings are full: nothing is lost without a count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "probed.h"
#include "recording.h"

#define SMALL_BYTES 4096
#define CALLS 1000

static void begin_small(struct recording *recording, size_t transitions_bytes, size_t control_bytes)
{
	recording_open(recording, transitions_bytes, control_bytes);
	recording_track(recording, RLS_PROCESS_FOLLOW, 0);
	recording_attach(recording);
	recording_start(recording);
}

static void call_backend(int times)
{
	for (int i = 0; i < times; i++)
		into_backend(nothing, NULL);
}

static uint64_t lost_in_all(const struct recording *recording)
{
	const union control_record *loss;
	uint64_t lost = 0;

	for (size_t i = 0; (loss = recording_control(recording, RLS_WIRE_LOSS, 0, i)); i++)
		lost += loss->loss.lost;
	return lost;
}

static void what_is_lost_is_counted_and_marked(void **state)
{
	struct recording *recording = *state;
	const union control_record *loss;
	size_t seen;
	uint64_t dropped;

	begin_small(recording, SMALL_BYTES, 0);
	call_backend(CALLS);
	recording_consume(recording);
	seen = recording->transition_count;
	dropped = recording_dropped(recording, RLS_DROP_TRANSITIONS);
	assert_in_range(seen, 1, SMALL_BYTES / sizeof(struct rls_wire_category));
	assert_int_equal(seen + dropped, 1 + 2 * CALLS);
	assert_int_equal(recording_controls(recording, RLS_WIRE_LOSS, 0), 0); /* still losing */

	/* There is room again: the next event says what was lost before it. */
	call_backend(1);
	recording_consume(recording);
	assert_int_equal(recording->transition_count, seen + 2);
	assert_int_equal(recording_dropped(recording, RLS_DROP_TRANSITIONS), dropped);
	assert_int_equal(recording_controls(recording, RLS_WIRE_LOSS, 0), 1);
	loss = recording_control(recording, RLS_WIRE_LOSS, getpid(), 0);
	assert_int_equal(loss->header.tid, own_tid());
	assert_int_equal(loss->loss.lost, dropped);
	assert_true(loss->loss.since_ns > recording->transitions[seen - 1].header.time_ns);
	assert_int_equal(loss->header.time_ns, recording->transitions[seen].header.time_ns);
	/* The gap shows in the numbers too. */
	assert_int_equal(recording->transitions[seen].header.sequence,
			 recording->transitions[seen - 1].header.sequence + dropped + 1);
	recording_stop(recording);
	assert_int_equal(recording_hits(recording, own_tid()), 2 * (CALLS + 1));
	assert_int_equal(recording_dropped(recording, RLS_DROP_CONTROL), 0);
}

static void losses_at_the_very_end_are_marked(void **state)
{
	struct recording *recording = *state;

	begin_small(recording, SMALL_BYTES, 0);
	call_backend(CALLS);
	recording_stop(recording);
	assert_int_equal(recording->transition_count +
				 recording_dropped(recording, RLS_DROP_TRANSITIONS),
			 1 + 2 * CALLS);
	assert_int_equal(recording_controls(recording, RLS_WIRE_LOSS, 0), 1);
	assert_int_equal(lost_in_all(recording),
			 recording_dropped(recording, RLS_DROP_TRANSITIONS));
	assert_int_equal(recording_hits(recording, own_tid()), 2 * CALLS);
}

static void again_and_again(void **state)
{
	struct recording *recording = *state;

	begin_small(recording, SMALL_BYTES, 0);
	for (int round = 0; round < 20; round++) {
		call_backend(50);
		recording_consume(recording);
	}
	recording_stop(recording);
	assert_true(recording_dropped(recording, RLS_DROP_TRANSITIONS) > 0);
	assert_int_equal(recording->transition_count +
				 recording_dropped(recording, RLS_DROP_TRANSITIONS),
			 1 + 2 * 20 * 50);
	assert_int_equal(lost_in_all(recording),
			 recording_dropped(recording, RLS_DROP_TRANSITIONS));
	assert_int_equal(recording_hits(recording, own_tid()), 2 * 20 * 50);
}

/* With no room to say so either, the losses are reported when there is. */
static void both_rings_full(void **state)
{
	struct recording *recording = *state;
	uint64_t dropped;

	begin_small(recording, SMALL_BYTES, SMALL_BYTES);
	call_backend(1);
	recording_consume(recording);
	/* Children enough to fill the control ring with their beginnings and ends. */
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	assert_true(recording_dropped(recording, RLS_DROP_CONTROL) > 0);
	call_backend(CALLS);
	recording_consume(recording);
	recording_stop(recording);
	dropped = recording_dropped(recording, RLS_DROP_TRANSITIONS);
	assert_int_equal(recording->transition_count + dropped, 1 + 2 * (1 + CALLS));
	assert_int_equal(lost_in_all(recording), dropped);
	assert_int_equal(recording_hits(recording, own_tid()), 2 * (1 + CALLS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_WAYS(what_is_lost_is_counted_and_marked),
		BOTH_WAYS(losses_at_the_very_end_are_marked),
		BOTH_WAYS(again_and_again),
		BOTH_WAYS(both_rings_full),
	};
	int skipped = recording_possible();

	return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
