/* What sites are good for, and how that decides when they are probed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userspace/record/budget/site_value.h"

#define SECOND_NS 1000000000ULL
#define HIT_NS 500.0
#define SHARE 0.02

static void add(struct rls_site_value *use, uint32_t tid, uint64_t time_ns, uint16_t depth,
		uint32_t site)
{
	const struct rls_wire_category record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_CATEGORY,
			   .tid = tid,
			   .time_ns = time_ns},
		.depth = depth,
		.site = site,
	};

	assert_int_equal(rls_site_value_add(use, &record), 0);
}

/* Calls of a site, one after the other, beginning at_ns. */
static uint64_t call(struct rls_site_value *use, uint32_t site, uint64_t at_ns, uint64_t each_ns,
		     int count)
{
	for (int i = 0; i < count; i++, at_ns += 2 * each_ns) {
		add(use, 1, at_ns, 1, site);
		add(use, 1, at_ns + each_ns, 0, site);
	}
	return at_ns;
}

static void a_call_lasts_until_the_next_change(void **state)
{
	struct rls_site_value use = {0};

	add(&use, 1, 1000, 1, 7); /* in */
	add(&use, 1, 1300, 2, 8); /* on into another */
	add(&use, 1, 1350, 1, 8); /* and back: no entry */
	add(&use, 1, 2000, 0, 7);
	assert_int_equal(use.sites[7].calls, 1);
	assert_int_equal(use.sites[7].time_ns, 300);
	assert_int_equal(use.sites[8].calls, 1);
	assert_int_equal(use.sites[8].time_ns, 50);
	rls_site_value_clear(&use);
}

static void threads_do_not_mix(void **state)
{
	struct rls_site_value use = {0};

	add(&use, 1, 1000, 1, 3);
	add(&use, 2, 1100, 1, 4);
	add(&use, 1, 1500, 0, 3);
	add(&use, 2, 1200, 0, 4);
	assert_int_equal(use.sites[3].time_ns, 500);
	assert_int_equal(use.sites[4].time_ns, 100);
	rls_site_value_clear(&use);
}

/* A call that was under way when a stretch ended does not last through the gap. */
static void calls_end_with_their_stretch(void **state)
{
	struct rls_site_value use = {0};

	add(&use, 1, 1000, 1, 3);
	rls_site_value_cut(&use, 5000);
	add(&use, 1, 900000, 0, 3);
	assert_int_equal(use.sites[3].calls, 0);
	assert_int_equal(use.traced_ns, 5000);
	add(&use, 1, 900100, 1, 3);
	add(&use, 1, 900150, 0, 3);
	assert_int_equal(use.sites[3].calls, 1);
	rls_site_value_clear(&use);
}

static void sites_beyond_those_counted_are_left_out(void **state)
{
	struct rls_site_value use = {0};

	add(&use, 1, 1000, 1, RLS_SITES_COUNTED);
	add(&use, 1, 1000, 1, UINT32_MAX);
	add(&use, 1, 2000, 1, RLS_SITES_COUNTED - 1);
	assert_int_equal(use.count, RLS_SITES_COUNTED);
	rls_site_value_clear(&use);
}

/* One second of tracing: what each site was hit, and what its calls took. */
static void begin_second(struct rls_site_value *use, const uint64_t *hits, size_t count)
{
	rls_site_value_cut(use, SECOND_NS);
	assert_int_equal(rls_site_value_hits(use, hits, count), 0);
}

static void inexpensive_sites_stay_on_and_expensive_ones_go_into_windows(void **state)
{
	/* Per second, sparse: 0.03 %, 0.085 % and 200 % of the time; the budget is 2 %, of which 6 %
	 * are not worth switching. */
	const uint64_t hits[] = {60, 170, 400000, 0};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};

	begin_second(&use, hits, 4);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_ALWAYS);
	assert_int_equal(use.sites[1].duty, RLS_DUTY_ALWAYS);
	assert_int_equal(use.sites[2].duty, RLS_DUTY_WINDOWS);
	assert_int_equal(sorting.always, 2);
	assert_int_equal(sorting.windowed, 1);
	assert_int_equal(sorting.never, 0);
	rls_site_value_clear(&use);
}

static void what_a_hit_costs_there_counts(void **state)
{
	const uint64_t hits[] = {1000};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};

	begin_second(&use, hits, 1);
	use.sites[0].hit_ns = 20000; /* single-stepped */
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_WINDOWS);
	rls_site_value_clear(&use);
}

/* Of two busy sites one has calls shorter than two hits, and little time in them. */
static void short_calls_are_given_up(void **state)
{
	const uint64_t hits[] = {100000, 100000};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};
	uint64_t at_ns = call(&use, 0, 1000, 900, 300);

	call(&use, 1, at_ns, 1100, 300);
	begin_second(&use, hits, 2);
	rls_site_value_sort(&use, HIT_NS, SHARE, false, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_WINDOWS); /* not yet */
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_NEVER);
	assert_int_equal(use.sites[1].duty, RLS_DUTY_WINDOWS);
	assert_int_equal(sorting.never, 1);
	assert_true(sorting.demoted_share > 0.00026 && sorting.demoted_share < 0.00028);
	/* For good, however it is used later. */
	call(&use, 0, 2 * SECOND_NS, 50000, 5000);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_NEVER);
	rls_site_value_clear(&use);
}

static void few_calls_are_not_judged_by(void **state)
{
	const uint64_t hits[] = {100000};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};

	call(&use, 0, 1000, 900, 199);
	begin_second(&use, hits, 1);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_WINDOWS);
	rls_site_value_clear(&use);
}

/* Each takes 0.3 % of the time; all together may take 0.4 %: the most expensive one goes. */
static void what_is_given_up_is_bounded(void **state)
{
	const uint64_t hits[] = {20000, 30000, 25000};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};
	uint64_t at_ns = 1000;

	for (uint32_t site = 0; site < 3; site++)
		at_ns = call(&use, site, at_ns, 900, 3333);
	begin_second(&use, hits, 3);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(sorting.never, 1);
	assert_int_equal(use.sites[1].duty, RLS_DUTY_NEVER);
	/* And the sum is kept to when sorted again. */
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(sorting.never, 1);
	assert_true(sorting.demoted_share <= 0.004);
	rls_site_value_clear(&use);
}

static void sums_are_added_to_part_of_what_was_known(void **state)
{
	const struct rls_site_count more = {.hits = 100, .calls = 50, .time_ns = 1000};
	struct rls_site_value use = {0};

	assert_int_equal(rls_site_value_more(&use, 2, &more), 0);
	rls_site_value_cut(&use, 5000);
	rls_site_value_age(&use, 0.5);
	assert_int_equal(rls_site_value_more(&use, 2, &more), 0);
	assert_int_equal(use.traced_ns, 2500);
	assert_int_equal(use.sites[2].hits, 150);
	assert_int_equal(use.sites[2].calls, 75);
	assert_int_equal(use.sites[2].time_ns, 1500);
	assert_int_equal(rls_site_value_more(&use, RLS_SITES_COUNTED, &more), 0);
	rls_site_value_clear(&use);
}

/* What is always on is hit in closed time too, what is in windows is not. */
static void hits_are_held_against_the_time_they_could_be_in(void **state)
{
	uint64_t hits[] = {150, 150};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};

	begin_second(&use, hits, 2);
	use.sites[1].duty = RLS_DUTY_WINDOWS;
	rls_site_value_pass(&use, 99 * SECOND_NS);
	hits[0] += 99 * 150;
	rls_site_value_hits(&use, hits, 2);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	/* Both 0.075 % of their time; 0.12 % may stay on, but half of that get out of windows. */
	assert_int_equal(use.sites[0].duty, RLS_DUTY_ALWAYS);
	assert_int_equal(use.sites[1].duty, RLS_DUTY_WINDOWS);
	hits[0] += 75000;
	rls_site_value_hits(&use, hits, 2);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_WINDOWS);
	rls_site_value_clear(&use);
}

static void what_was_given_up_stays_in_mind(void **state)
{
	const uint64_t hits[] = {100000};
	struct rls_site_sorting sorting;
	struct rls_site_value use = {0};
	double share;

	call(&use, 0, 1000, 900, 3333);
	begin_second(&use, hits, 1);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(sorting.never, 1);
	share = sorting.demoted_share;
	assert_true(share > 0.0029 && share < 0.0031);
	rls_site_value_cut(&use, 100 * SECOND_NS);
	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_true(sorting.demoted_share == share);
	rls_site_value_clear(&use);
}

static void expensive_sites_calm_down(void **state)
{
	/* Of 2 % of a second no more than 6 % is for sites that stay on: 266 hits. */
	const uint64_t hits[] = {160, 0, 40, 50000, 20000};
	struct rls_site_value use = {0};
	size_t moved = 7;

	assert_int_equal(rls_site_value_calm(&use, hits, 5, SECOND_NS, HIT_NS, SHARE, 264, &moved),
			 0);
	assert_int_equal(moved, 0); /* they cost 263.3 times as much */
	assert_int_equal(rls_site_value_calm(&use, hits, 5, SECOND_NS, HIT_NS, SHARE, 263, &moved),
			 0);
	assert_int_equal(moved, 2);
	assert_int_equal(use.sites[0].duty, RLS_DUTY_ALWAYS);
	assert_int_equal(use.sites[2].duty, RLS_DUTY_ALWAYS);
	assert_int_equal(use.sites[3].duty, RLS_DUTY_WINDOWS);
	assert_int_equal(use.sites[4].duty, RLS_DUTY_WINDOWS);
	assert_int_equal(rls_site_value_calm(&use, hits, 5, SECOND_NS, HIT_NS, SHARE, 1, &moved),
			 0);
	assert_int_equal(moved, 0); /* what is in windows was not hit since */
	assert_int_equal(rls_site_value_calm(&use, NULL, 0, SECOND_NS, HIT_NS, SHARE, 1, &moved),
			 0);
	assert_int_equal(moved, 0);
	rls_site_value_clear(&use);
}

static void nothing_is_sorted_of_nothing(void **state)
{
	struct rls_site_sorting sorting = {.always = 7};
	struct rls_site_value use = {0};

	rls_site_value_sort(&use, HIT_NS, SHARE, true, &sorting);
	assert_int_equal(sorting.always + sorting.windowed + sorting.never, 0);
	rls_site_value_clear(&use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_lasts_until_the_next_change),
		cmocka_unit_test(threads_do_not_mix),
		cmocka_unit_test(calls_end_with_their_stretch),
		cmocka_unit_test(sites_beyond_those_counted_are_left_out),
		cmocka_unit_test(inexpensive_sites_stay_on_and_expensive_ones_go_into_windows),
		cmocka_unit_test(what_a_hit_costs_there_counts),
		cmocka_unit_test(short_calls_are_given_up),
		cmocka_unit_test(few_calls_are_not_judged_by),
		cmocka_unit_test(what_is_given_up_is_bounded),
		cmocka_unit_test(sums_are_added_to_part_of_what_was_known),
		cmocka_unit_test(hits_are_held_against_the_time_they_could_be_in),
		cmocka_unit_test(what_was_given_up_stays_in_mind),
		cmocka_unit_test(expensive_sites_calm_down),
		cmocka_unit_test(nothing_is_sorted_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
