/* A job's figures: what goes in comes out, divided but never lost, and never back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/monitor/ledger.h"

#define MS 1000000ULL
#define PYTHON RLS_CATEGORY_PYTHON
#define BACKEND RLS_CATEGORY_BACKEND
#define SIMULATOR RLS_CATEGORY_SIMULATOR

static struct rls_ledger ledger;

static int clear(void **state)
{
	rls_ledger_clear(&ledger);
	return 0;
}

static struct rls_ledger_scope *scope_of(const char *operation, const char *phase)
{
	struct rls_ledger_scope *scope = NULL;

	assert_int_equal(rls_ledger_scope(&ledger, operation, phase, &scope), 0);
	return scope;
}

static void add(struct rls_ledger_scope *scope, uint32_t category, uint64_t ns)
{
	const struct rls_wire_cell more = {.ns = ns};

	rls_ledger_add(&ledger, scope, category, &more);
}

static void sample(struct rls_ledger_scope *scope, uint32_t category, enum rls_category inferred,
		   int times)
{
	for (int i = 0; i < times; i++)
		rls_ledger_sample(&ledger, scope, category, inferred, 4 * MS);
}

static void show(void)
{
	rls_ledger_apportion(&ledger, false);
	assert_int_equal(rls_ledger_show(&ledger), 0);
}

static const struct rls_snapshot_row *row_of(const char *operation, enum rls_category category)
{
	static const struct rls_snapshot_row none;

	for (size_t i = 0; i < ledger.row_count; i++) {
		if (!strcmp(ledger.rows[i].operation, operation) &&
		    ledger.rows[i].category == category)
			return &ledger.rows[i];
	}
	return &none;
}

static uint64_t count_of(const char *operation, enum rls_category from, enum rls_category to)
{
	for (size_t i = 0; i < ledger.transition_count; i++) {
		const struct rls_snapshot_transition *entry = &ledger.transitions[i];

		if (!strcmp(entry->operation, operation) && entry->from == from && entry->to == to)
			return entry->count;
	}
	return 0;
}

static uint64_t all_ns(void)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < ledger.row_count; i++)
		ns += ledger.rows[i].wall_ns;
	return ns;
}

static void traced_time_is_added_up(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "train");
	const struct rls_wire_cell more = {
		.ns = 50, .hits = 3, .cost_ns = 10, .to = {[BACKEND] = 2}};

	assert_ptr_equal(scope_of("step", "train"), step);
	assert_ptr_not_equal(scope_of("step", ""), step);
	rls_ledger_add(&ledger, step, PYTHON, &more);
	rls_ledger_add(&ledger, step, PYTHON, &more);
	rls_ledger_add(&ledger, scope_of("step", ""), PYTHON, &more);
	show();
	assert_int_equal(ledger.row_count, 2);
	assert_int_equal(row_of("step", PYTHON)->wall_ns, 100);
	assert_int_equal(row_of("step", PYTHON)->corrected_ns, 80);
	assert_string_equal(row_of("step", PYTHON)->phase, "train");
	assert_int_equal(row_of("step", PYTHON)->method, RLS_METHOD_TRACED);
	assert_int_equal(count_of("step", PYTHON, BACKEND), 6); /* of both phases */
	assert_int_equal(ledger.transition_count, 1);
	assert_int_equal(ledger.hits, 9);
	assert_int_equal(ledger.cost_ns, 30);
}

static void closed_time_goes_by_samples(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");

	add(step, RLS_TOTALS_CLOSED, 1001);
	sample(step, RLS_TOTALS_CLOSED, BACKEND, 30);
	sample(step, RLS_TOTALS_CLOSED, PYTHON, 10);
	show();
	assert_int_equal(all_ns(), 1001);
	assert_in_range(row_of("step", BACKEND)->wall_ns, 750, 751);
	assert_in_range(row_of("step", PYTHON)->wall_ns, 250, 251);
	assert_int_equal(row_of("step", BACKEND)->method, RLS_METHOD_SAMPLED);
}

/* A helper sleeps in the backend, while another thread runs Python: samples see that one alone. */
static void waiting_goes_by_how_it_was_waited(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");
	const struct rls_wire_cell slept = {.ns = 100 * MS, .off_cpu_ns = 100 * MS};
	const struct rls_wire_cell both = {.ns = 2000 * MS, .off_cpu_ns = 1000 * MS};

	rls_ledger_add(&ledger, step, BACKEND, &slept);
	add(step, PYTHON, 100 * MS);
	rls_ledger_add(&ledger, step, RLS_TOTALS_CLOSED, &both);
	sample(step, RLS_TOTALS_CLOSED, PYTHON, 100);
	show();
	assert_in_range(row_of("step", BACKEND)->wall_ns, 1100 * MS - 1, 1100 * MS + 1);
	assert_in_range(row_of("step", PYTHON)->wall_ns, 1100 * MS - 1, 1100 * MS + 1);
	assert_in_range(row_of("step", BACKEND)->on_cpu_ns, 0, 1);
	assert_int_equal(row_of("step", PYTHON)->on_cpu_ns, row_of("step", PYTHON)->wall_ns);
}

/* By the calibration's figures the probes may cost more than there was time: counts must not run away. */
static void counts_are_scaled_within_reason(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");
	const struct rls_wire_cell traced = {
		.ns = 100 * MS, .hits = 1000, .cost_ns = 99 * MS, .to = {[BACKEND] = 1000}};

	rls_ledger_add(&ledger, step, PYTHON, &traced);
	add(step, RLS_TOTALS_CLOSED, 100 * MS);
	sample(step, RLS_TOTALS_CLOSED, PYTHON, 100);
	show();
	assert_in_range(count_of("step", PYTHON, BACKEND), 2000, 5000);
}

static void inferred_categories_count_by_how_often_they_were_right(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");

	/* While tracing could tell, what looked like the backend was Python as often as not. */
	sample(step, PYTHON, BACKEND, 5000);
	sample(step, BACKEND, BACKEND, 5000);
	add(step, RLS_TOTALS_CLOSED, 1000000);
	sample(step, RLS_TOTALS_CLOSED, BACKEND, 100);
	show();
	assert_in_range(row_of("step", BACKEND)->wall_ns, 495000, 505000);
	assert_in_range(row_of("step", PYTHON)->wall_ns, 495000, 505000);
}

static void time_without_samples_goes_by_what_was_traced(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");

	add(step, PYTHON, 3000);
	add(step, BACKEND, 1000);
	add(step, RLS_TOTALS_CLOSED, 400);
	show();
	assert_in_range(row_of("step", PYTHON)->wall_ns, 3299, 3301);
	assert_in_range(row_of("step", BACKEND)->wall_ns, 1099, 1101);
}

static void nothing_to_go_by_waits_for_the_end(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");

	add(step, RLS_TOTALS_CLOSED, 400);
	show();
	assert_int_equal(ledger.row_count, 0);
	rls_ledger_apportion(&ledger, true);
	show();
	assert_int_equal(row_of("step", RLS_CATEGORY_UNKNOWN)->wall_ns, 400);
}

static void transitions_are_scaled_to_closed_time(void **state)
{
	struct rls_ledger_scope *step = scope_of("step", "");
	const struct rls_wire_cell traced = {.ns = 100 * MS, .to = {[BACKEND] = 1000}};

	rls_ledger_add(&ledger, step, PYTHON, &traced);
	add(step, RLS_TOTALS_CLOSED, 900 * MS);
	sample(step, RLS_TOTALS_CLOSED, PYTHON, 100);
	show();
	assert_in_range(count_of("step", PYTHON, BACKEND), 9999, 10001);
	/* A stretch that was only closed follows what was seen before. */
	add(step, RLS_TOTALS_CLOSED, 1000 * MS);
	sample(step, RLS_TOTALS_CLOSED, PYTHON, 100);
	show();
	assert_in_range(count_of("step", PYTHON, BACKEND), 19990, 20010);
}

/* In the update what samples like Python is the backend, elsewhere it is what it samples like. */
static void inferred_categories_are_judged_by_their_own_operation(void **state)
{
	struct rls_ledger_scope *update = scope_of("update", ""),
				*rollout = scope_of("rollout", "");

	for (int i = 0; i < 200; i++) {
		rls_ledger_sample(&ledger, update, BACKEND, PYTHON, MS);
		rls_ledger_sample(&ledger, rollout, PYTHON, PYTHON, MS);
	}
	add(update, RLS_TOTALS_CLOSED, 1000 * MS);
	add(rollout, RLS_TOTALS_CLOSED, 1000 * MS);
	sample(update, RLS_TOTALS_CLOSED, PYTHON, 100);
	sample(rollout, RLS_TOTALS_CLOSED, PYTHON, 100);
	show();
	assert_in_range(row_of("update", BACKEND)->wall_ns, 960 * MS, 1000 * MS);
	assert_in_range(row_of("rollout", PYTHON)->wall_ns, 960 * MS, 1000 * MS);
}

/* 5 s of closed time between stretches of 20 ms, which see more or less of what is called. */
static double error_after(int sweeps, uint64_t some, uint64_t other)
{
	struct rls_ledger_scope *step = scope_of("step", "");

	for (int i = 0; i < sweeps; i++) {
		const struct rls_wire_cell more = {.ns = 20 * MS,
						   .to = {[BACKEND] = i % 2 ? some : other}};

		rls_ledger_add(&ledger, step, PYTHON, &more);
		add(step, RLS_TOTALS_CLOSED, 5000 * MS);
		show();
	}
	return ledger.transitions_error;
}

static void counts_say_how_far_they_may_be_off(void **state)
{
	assert_true(error_after(1, 1000, 1000) > 0.98);
	assert_true(error_after(20, 1000, 1000) < 0.1);
	rls_ledger_clear(&ledger);
	assert_true(error_after(20, 1900, 100) > 0.4);
	rls_ledger_clear(&ledger);
	add(scope_of("step", ""), PYTHON, 5000 * MS);
	show();
	assert_true(ledger.transitions_error == 0);
}

static void no_figure_goes_back(void **state)
{
	uint64_t wall_ns[RLS_CATEGORY_MAX] = {0}, corrected_ns[RLS_CATEGORY_MAX] = {0};
	uint64_t count = 0, given_ns = 0;
	struct rls_ledger_scope *step = scope_of("step", "");

	srand(7);
	for (int round = 0; round < 2000; round++) {
		uint64_t ns = (uint64_t)(rand() % 1000);
		const struct rls_wire_cell more = {.ns = ns,
						   .hits = 1,
						   .cost_ns = (uint64_t)(rand() % 1200),
						   .to = {[SIMULATOR] = (uint64_t)(rand() % 5)}};
		uint32_t category = (uint32_t)(rand() % 4);

		rls_ledger_add(&ledger, step, category ? category : RLS_TOTALS_CLOSED, &more);
		sample(step, rand() % 2 ? RLS_TOTALS_CLOSED : BACKEND,
		       (enum rls_category)(rand() % 4), 3);
		given_ns += ns;
		show();
		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			const struct rls_snapshot_row *row = row_of("step", (enum rls_category)i);

			assert_true(row->wall_ns >= wall_ns[i]);
			assert_true(row->corrected_ns >= corrected_ns[i]);
			assert_true(row->corrected_ns <= row->wall_ns);
			wall_ns[i] = row->wall_ns;
			corrected_ns[i] = row->corrected_ns;
		}
		assert_true(count_of("step", PYTHON, SIMULATOR) >= count);
		count = count_of("step", PYTHON, SIMULATOR);
	}
	rls_ledger_apportion(&ledger, true);
	show();
	assert_int_equal(all_ns(), given_ns);
}

static void names_without_end_are_other(void **state)
{
	char name[32];

	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "operation %d", i);
		add(scope_of(name, ""), PYTHON, 10);
		assert_int_equal(ledger.has_others, i >= RLS_LEDGER_OPERATIONS);
	}
	add(scope_of("", ""), PYTHON, 10);
	add(scope_of(NULL, NULL), PYTHON, 10); /* its name was lost */
	show();
	assert_int_equal(ledger.operations.count, RLS_LEDGER_OPERATIONS + 2); /* and "", "other" */
	assert_int_equal(all_ns(), 50020);
	assert_int_equal(row_of("operation 0", PYTHON)->wall_ns, 10);
	assert_int_equal(row_of("", PYTHON)->wall_ns, 10);
	assert_int_equal(row_of(RLS_LEDGER_OTHER, PYTHON)->wall_ns,
			 10 * (5000 - RLS_LEDGER_OPERATIONS));
}

static void pairs_of_names_are_bounded_too(void **state)
{
	char operation[32], phase[32];
	uint64_t given_ns = 0;

	for (int i = 0; i < RLS_LEDGER_OPERATIONS; i++) {
		for (int k = 0; k < 50; k++) {
			snprintf(operation, sizeof(operation), "operation %d", i);
			snprintf(phase, sizeof(phase), "phase %d", k);
			add(scope_of(operation, phase), BACKEND, 1);
			given_ns++;
		}
	}
	show();
	assert_int_equal(all_ns(), given_ns);
	assert_true(ledger.count <= RLS_LEDGER_SCOPES + RLS_LEDGER_PHASES + 2);
	assert_int_equal(ledger.phases.count, RLS_LEDGER_PHASES + 2);
}

static void strange_categories_are_unknown(void **state)
{
	add(scope_of("", ""), 9, 5);
	show();
	assert_int_equal(row_of("", RLS_CATEGORY_UNKNOWN)->wall_ns, 5);
}

#define TEST(test) cmocka_unit_test_teardown(test, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(traced_time_is_added_up),
		TEST(closed_time_goes_by_samples),
		TEST(waiting_goes_by_how_it_was_waited),
		TEST(counts_are_scaled_within_reason),
		TEST(inferred_categories_count_by_how_often_they_were_right),
		TEST(time_without_samples_goes_by_what_was_traced),
		TEST(nothing_to_go_by_waits_for_the_end),
		TEST(transitions_are_scaled_to_closed_time),
		TEST(inferred_categories_are_judged_by_their_own_operation),
		TEST(counts_say_how_far_they_may_be_off),
		TEST(no_figure_goes_back),
		TEST(names_without_end_are_other),
		TEST(pairs_of_names_are_bounded_too),
		TEST(strange_categories_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
