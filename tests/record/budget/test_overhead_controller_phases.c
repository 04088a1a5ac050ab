/* The controller on a simulated job of two phases of several seconds, each with sites of its own, as a
 * rollout and an update are: what it costs at any time, and what windows see of either phase. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/attach/groups.h"
#include "userspace/record/budget/overhead_controller.h"
#include "userspace/record/samples/infer_category.h"

#define TICK_NS 10000000ULL
#define SECOND_NS 1000000000ULL
#define MINUTES 20
#define TICKS (MINUTES * 60 * SECOND_NS / TICK_NS)
#define TICKS_A_SECOND (SECOND_NS / TICK_NS)
#define HIT_NS 700 /* as calibrated */
#define IN_WINDOWS 1.3 /* times as much is what one takes in a window, */
#define SPARSE 9.0 /* between them, */
#define DENSE 1.2 /* and there where more than DENSE_RATE of the time are hits */
#define DENSE_RATE 0.05
#define HELD_UP_NS 20000 /* by a site that goes on or off */
#define SAMPLE_NS 24000
#define CLOSELY 0.04 /* of the time, while samples have a timer of their own */
#define SITES 120
#define PHASE_SITES                                                                                \
	50 /* of the first phase, then of the second; the rest are hit by both, seldom */
#define TID 77

/* How long each phase is, and what of it probes take that are all on, by the calibration. */
static const uint64_t phase_ns[2] = {4 * SECOND_NS, 6 * SECOND_NS};
static const double phase_rate[2] = {0.2, 0.6};

static struct {
	bool totals, open, closely;
	uint64_t now_ns, began_ns;
	enum rls_duty wanted[SITES], duties[SITES];
	unsigned int samples_hz;
	double hits[SITES], unreported_hits; /* with fractions */
	double cost_ns; /* true, of this tick */
	double open_ns[2];
	double costs_ns[TICKS];
	size_t opened[2], ticks;
	struct rls_overhead_controller *controller;
	uint64_t burden[RLS_BURDENS];
} world;

static unsigned int phase_now(void)
{
	return (world.now_ns - world.began_ns) % (phase_ns[0] + phase_ns[1]) >= phase_ns[0];
}

static bool is_live(size_t site)
{
	return world.duties[site] == RLS_DUTY_ALWAYS ||
	       (world.open && world.duties[site] == RLS_DUTY_WINDOWS);
}

/* Hits per second of the site in this phase: the first ones are hit most. */
static double hits_a_second(size_t site, unsigned int phase)
{
	size_t place = site % PHASE_SITES;

	if (site >= 2 * PHASE_SITES)
		return 2;
	if (site / PHASE_SITES != phase)
		return 0;
	return phase_rate[phase] * 1e9 / HIT_NS * 2 * (double)(PHASE_SITES - place) /
	       (PHASE_SITES * (PHASE_SITES + 1));
}

static void report_hit_totals(uint32_t hits)
{
	const struct rls_wire_category record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_CATEGORY,
			   .tid = TID,
			   .time_ns = world.now_ns},
		.hit_totals = {.hits = hits, .cost_ns = hits * HIT_NS},
	};

	world.burden[RLS_BURDEN_OF(TID)] += record.hit_totals.cost_ns;
	if (!world.totals)
		assert_int_equal(rls_overhead_controller_add(world.controller, &record.header,
							     sizeof(record)),
				 0);
}

/* Sparse ones one by one. */
static void report_hits(double hits, bool sparse)
{
	uint32_t whole;

	world.unreported_hits += hits;
	whole = (uint32_t)world.unreported_hits;
	world.unreported_hits -= whole;
	for (; sparse && whole; whole--)
		report_hit_totals(1);
	if (whole)
		report_hit_totals(whole);
}

static double times_costlier(double rate)
{
	if (world.open)
		return IN_WINDOWS;
	return rate > DENSE_RATE ? DENSE : SPARSE;
}

static void pass(uint64_t ns)
{
	double cost_ns = 0, samples_ns;

	for (size_t i = 0; i < SITES; i++) {
		double hits = is_live(i) ? hits_a_second(i, phase_now()) * (double)ns / 1e9 : 0;

		world.hits[i] += hits;
		cost_ns += hits * HIT_NS;
	}
	if (world.closely)
		cost_ns += CLOSELY * (double)ns;
	samples_ns = world.samples_hz * SAMPLE_NS * (double)ns / 1e9;
	world.cost_ns += samples_ns + cost_ns * times_costlier(cost_ns / (double)ns);
	if (world.open)
		world.open_ns[phase_now()] += (double)ns;
	world.now_ns += ns;
	report_hits(cost_ns / HIT_NS, times_costlier(cost_ns / (double)ns) == SPARSE);
}

/* So many sites go on or off, which takes its time; the others are as they were. */
static void switch_sites(size_t count)
{
	pass(5000000 + 200000 * count);
	world.cost_ns += (double)(HELD_UP_NS * count);
}

static size_t windowed(void)
{
	size_t count = 0;

	for (size_t i = 0; i < SITES; i++)
		count += world.duties[i] == RLS_DUTY_WINDOWS;
	return count;
}

/* ---- the kernel ---- */

void __wrap_rls_kernel_attach_category_samples(struct rls_kernel *kernel, unsigned int hz);
void __wrap_rls_kernel_attach_category_samples(struct rls_kernel *kernel, unsigned int hz)
{
	world.samples_hz = hz;
}

void __wrap_rls_kernel_sample_closely(struct rls_kernel *kernel, bool closely);
void __wrap_rls_kernel_sample_closely(struct rls_kernel *kernel, bool closely)
{
	(void)kernel;
	world.closely = closely;
}

void __wrap_rls_kernel_pace_category_samples(struct rls_kernel *kernel, unsigned int hz);
void __wrap_rls_kernel_pace_category_samples(struct rls_kernel *kernel, unsigned int hz)
{
	world.samples_hz = hz;
}

int __wrap_rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty);
int __wrap_rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty)
{
	assert_in_range(site, 0, SITES - 1);
	world.wanted[site] = duty;
	return 0;
}

int __wrap_rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns);
int __wrap_rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	size_t changed = world.open ? windowed() : 0;

	*edge_ns = world.now_ns;
	for (size_t i = 0; i < SITES; i++)
		changed += world.wanted[i] != world.duties[i];
	switch_sites(changed);
	memcpy(world.duties, world.wanted, sizeof(world.duties));
	world.open = false;
	return 0;
}

void __wrap_rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns);
void __wrap_rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	*edge_ns = world.now_ns;
	switch_sites(windowed());
	world.open = false;
}

int __wrap_rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns);
int __wrap_rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	switch_sites(windowed());
	world.open = true;
	world.opened[phase_now()]++;
	*edge_ns = world.now_ns;
	return 0;
}

int __wrap_rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count);
int __wrap_rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hits[i] = (uint64_t)world.hits[i];
	return 0;
}

void __wrap_rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own,
				    uint64_t *others);
void __wrap_rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own,
				    uint64_t *others)
{
	(void)kernel;
	*own = *others = 0;
}

uint32_t __wrap_rls_kernel_tick_cost_ns(const struct rls_kernel *kernel);
uint32_t __wrap_rls_kernel_tick_cost_ns(const struct rls_kernel *kernel)
{
	(void)kernel;
	return SAMPLE_NS;
}

uint32_t __wrap_rls_kernel_site_cost_ns(const struct rls_kernel *kernel, uint32_t site);
uint32_t __wrap_rls_kernel_site_cost_ns(const struct rls_kernel *kernel, uint32_t site)
{
	return HIT_NS;
}

const volatile uint64_t *__wrap_rls_kernel_burden(const struct rls_kernel *kernel);
const volatile uint64_t *__wrap_rls_kernel_burden(const struct rls_kernel *kernel)
{
	return world.burden;
}

int __wrap_rls_kernel_site_calls(const struct rls_kernel *kernel, struct rls_wire_calls *calls,
				 size_t count);
int __wrap_rls_kernel_site_calls(const struct rls_kernel *kernel, struct rls_wire_calls *calls,
				 size_t count)
{
	memset(calls, 0, count * sizeof(*calls));
	return 0;
}

int __wrap_rls_infer_category(struct rls_code_map *map,
			      const struct rls_wire_category_sample *sample,
			      struct rls_inferred *out);
int __wrap_rls_infer_category(struct rls_code_map *map,
			      const struct rls_wire_category_sample *sample,
			      struct rls_inferred *out)
{
	*out = (struct rls_inferred){RLS_CATEGORY_PYTHON, false};
	return 0;
}

int __wrap_rls_event_output_add(struct rls_event_output *output, const struct rls_event *event);
int __wrap_rls_event_output_add(struct rls_event_output *output, const struct rls_event *event)
{
	return 0;
}

/* ---- the job ---- */

static int sampled(void *context, const struct rls_wire_category_sample *sample,
		   enum rls_category inferred)
{
	return 0;
}

static void take_sample(void)
{
	const struct rls_wire_category_sample record = {.header = {.size = sizeof(record),
								   .kind = RLS_WIRE_CATEGORY_SAMPLE,
								   .tid = TID,
								   .time_ns = world.now_ns}};

	assert_int_equal(
		rls_overhead_controller_add(world.controller, &record.header, sizeof(record)), 0);
}

/* Costs come with the tick that ends after the switch that they belong to. */
static void run(double percent, bool totals, uint64_t began_ns)
{
	double samples = 0;

	memset(&world, 0, sizeof(world));
	world.totals = totals;
	world.open = true;
	world.now_ns = world.began_ns = began_ns;
	assert_int_equal(
		rls_overhead_controller_new(NULL, NULL, NULL, percent, HIT_NS, &world.controller),
		0);
	if (totals)
		assert_int_equal(
			rls_overhead_controller_use_totals(world.controller, sampled, NULL), 0);
	rls_overhead_controller_start(world.controller, world.now_ns, 0);
	while (world.now_ns < began_ns + MINUTES * 60 * SECOND_NS - SECOND_NS) {
		size_t tick = (world.now_ns - began_ns) / TICK_NS;

		world.cost_ns = 0;
		pass(TICK_NS);
		for (samples += world.samples_hz * (double)TICK_NS / 1e9; samples >= 1; samples--)
			take_sample();
		assert_int_equal(
			rls_overhead_controller_tick(world.controller, world.now_ns, SITES), 0);
		world.costs_ns[tick] = world.cost_ns;
	}
	world.ticks = (world.now_ns - began_ns) / TICK_NS;
	rls_overhead_controller_free(world.controller);
}

/* The most that any stretch of this length has cost, of its time, after so many ticks. */
static double worst(size_t ticks, size_t after)
{
	double sum_ns = 0, most_ns = 0;

	for (size_t i = after; i < world.ticks; i++) {
		sum_ns += world.costs_ns[i];
		if (i >= after + ticks)
			sum_ns -= world.costs_ns[i - ticks];
		most_ns = sum_ns > most_ns ? sum_ns : most_ns;
	}
	return most_ns / (double)(ticks * TICK_NS);
}

static double average(void)
{
	return worst(world.ticks, 0);
}

static void check_costs(double share)
{
	size_t first = 0;

	/* The first allowance is what ten seconds may cost. */
	assert_true(worst(10 * TICKS_A_SECOND, 0) < 2.1 * share);
	while (world.costs_ns[first] > 0.1 * TICK_NS)
		first++;
	/* A phase that is new, and what it takes to take its probes off. */
	assert_true(worst(TICKS_A_SECOND, first + TICKS_A_SECOND) < 8 * share);
	assert_true(average() < 1.1 * share);
	assert_true(average() > 0.5 * share);
}

static void check_windows(void)
{
	size_t windows = world.opened[0] + world.opened[1];
	double first = world.open_ns[0] / (world.open_ns[0] + world.open_ns[1]);

	assert_true(windows >= 8 * MINUTES);
	/* Both phases have their part of them: 40 % is the first's, give or take what chance does. */
	assert_in_range(100 * world.opened[0] / windows, 28, 52);
	assert_true(first > 0.28 && first < 0.52);
}

static void try(double percent, bool totals)
{
	for (uint64_t seed = 1; seed <= 2; seed++) {
		run(percent, totals, seed * 7 * SECOND_NS);
		check_costs(percent / 100);
		check_windows();
	}
}

static void a_small_budget_is_kept_and_sees_both_phases(void **state)
{
	try(1, true);
	try(1, false);
}

static void the_default_one_is_and_does_too(void **state)
{
	try(2, true);
	try(2, false);
}

static void a_large_one_is_and_does_too(void **state)
{
	try(5, true);
	try(5, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_budget_is_kept_and_sees_both_phases),
		cmocka_unit_test(the_default_one_is_and_does_too),
		cmocka_unit_test(a_large_one_is_and_does_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
