/* What is reported of lost transitions: every thread's exactly, the worst by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/record/events/losses.h"

/* A file that is never opened keeps its events waiting, to be looked at. */
static struct rls_event_output output;
static struct rls_losses losses;
static const uint64_t no_drops[RLS_DROP_MAX];

static int set_up(void **state)
{
	return rls_event_output_init(&output);
}

static int tear_down(void **state)
{
	rls_losses_clear(&losses);
	return rls_event_output_close(&output);
}

static void lose(uint32_t tid, uint64_t since_ns, uint64_t until_ns, uint32_t lost)
{
	const struct rls_wire_loss record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_LOSS,
			   .pid = 7,
			   .tid = tid,
			   .time_ns = until_ns},
		.since_ns = since_ns,
		.lost = lost,
	};

	assert_int_equal(rls_losses_add(&losses, &record.header, sizeof(record)), 0);
}

static const char *text_at(size_t i)
{
	assert_true(i < output.waiting_count);
	assert_int_equal(output.waiting[i].kind, RLS_EVENT_WARNING);
	return rls_string_pool_get(output.strings, output.waiting[i].warning.text);
}

static void every_buffer_has_its_total(void **state)
{
	const uint64_t drops[RLS_DROP_MAX] = {5, 6, 7, 8, 9, 10};
	static const char *const names[] = {"transitions", "control", "operations",
					    "threads",     "gpu",     "samples"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == RLS_DROP_CELLS, "a name per buffer");

	assert_int_equal(rls_losses_report(&losses, drops, &output, 0, 100), 0);
	assert_int_equal(output.waiting_count, RLS_DROP_CELLS);
	for (size_t i = 0; i < RLS_DROP_CELLS; i++) {
		const struct rls_event *event = &output.waiting[i];

		assert_int_equal(event->kind, RLS_EVENT_LOSS);
		assert_int_equal(event->time_ns, 100);
		assert_int_equal(event->loss.dropped, drops[i]);
		assert_string_equal(rls_string_pool_get(output.strings, event->loss.buffer),
				    names[i]);
	}
}

/* A recorder that is killed reports nothing at its end. */
static void totals_are_noted_as_they_grow(void **state)
{
	uint64_t drops[RLS_DROP_MAX] = {[RLS_DROP_TRANSITIONS] = 5};

	assert_int_equal(rls_losses_note(&losses, no_drops, &output, 10), 0);
	assert_int_equal(output.waiting_count, 0);
	assert_int_equal(rls_losses_note(&losses, drops, &output, 20), 0);
	assert_int_equal(rls_losses_note(&losses, drops, &output, 30), 0);
	assert_int_equal(output.waiting_count, 1);
	drops[RLS_DROP_TRANSITIONS] = 6;
	drops[RLS_DROP_CELLS] = 1;
	assert_int_equal(rls_losses_note(&losses, drops, &output, 40), 0);
	assert_int_equal(output.waiting_count, 2);
	assert_int_equal(output.waiting[1].kind, RLS_EVENT_LOSS);
	assert_int_equal(output.waiting[1].time_ns, 40);
	assert_int_equal(output.waiting[1].loss.dropped, 6);
}

static void threads_are_reported_the_worst_first(void **state)
{
	lose(8, 1000000000, 1500000000, 10);
	lose(9, 1000000000, 3000000000, 4);
	lose(8, 1600000000, 1700000000, 5);
	lose(10, 2000000000, 1000000000, 1); /* no time at all, rather than less than none */
	assert_int_equal(rls_losses_report(&losses, no_drops, &output, 0, 4000000000 - 1), 0);
	assert_int_equal(output.waiting_count, RLS_DROP_CELLS + 3);
	assert_string_equal(text_at(RLS_DROP_CELLS),
			    "thread 9 of process 7: 4 transitions lost (gaps: 1); what it did then "
			    "was not traced: 2.000 s, 50.0 % of the recording");
	assert_string_equal(text_at(RLS_DROP_CELLS + 1),
			    "thread 8 of process 7: 15 transitions lost (gaps: 2); what it did "
			    "then was not traced: 0.600 s, 15.0 % of the recording");
	assert_non_null(strstr(text_at(RLS_DROP_CELLS + 2),
			       "thread 10 of process 7: 1 transitions lost (gaps: 1); what it did "
			       "then was not traced: 0.000 s"));
}

static void thousands_of_threads_need_no_more_memory(void **state)
{
	for (uint32_t tid = 1; tid <= 5000; tid++)
		lose(tid, 0, 1000000, 1);
	assert_int_equal(losses.count, 1024);
	assert_int_equal(rls_losses_report(&losses, no_drops, &output, 0, 1000000000), 0);
	assert_int_equal(output.waiting_count, RLS_DROP_CELLS + 6);
	assert_string_equal(text_at(RLS_DROP_CELLS + 5),
			    "other threads lost transitions too (gaps: 4995): 1.019 s or more");
}

static void what_is_no_loss_is_left_alone(void **state)
{
	struct rls_wire_loss record = {.header = {.kind = RLS_WIRE_LOSS}};

	assert_int_equal(rls_losses_add(&losses, &record.header, sizeof(record.header)), 0);
	record.header.kind = RLS_WIRE_FORK;
	assert_int_equal(rls_losses_add(&losses, &record.header, sizeof(record)), 0);
	assert_int_equal(losses.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_buffer_has_its_total, set_up, tear_down),
		cmocka_unit_test_setup_teardown(totals_are_noted_as_they_grow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_are_reported_the_worst_first, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(thousands_of_threads_need_no_more_memory, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_loss_is_left_alone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
