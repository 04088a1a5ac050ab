/* The overhead controller with a kernel that only writes down its orders, on a clock of its own. */
#include <errno.h>
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
#define HIT_NS 500
#define SITES 3
#define BUSY 1 /* the site that is hit all the time */
#define NEW 2 /* one that is not hit at first */

static struct {
	uint64_t now_ns;
	bool open;
	size_t opened, closed, regrouped;
	enum rls_duty duties[SITES];
	uint64_t hits[SITES];
	uint64_t burden[RLS_BURDENS];
	struct rls_wire_calls calls[SITES];
	size_t sampled;
	bool closely;
	int refuse_window, sample_result;
	struct rls_event events[4096];
	size_t count;
} world;

void __wrap_rls_kernel_attach_category_samples(struct rls_kernel *kernel, unsigned int hz);
void __wrap_rls_kernel_attach_category_samples(struct rls_kernel *kernel, unsigned int hz)
{
}

void __wrap_rls_kernel_sample_closely(struct rls_kernel *kernel, bool closely);
void __wrap_rls_kernel_sample_closely(struct rls_kernel *kernel, bool closely)
{
	assert_true(world.open);
	world.closely = closely;
}

void __wrap_rls_kernel_pace_category_samples(struct rls_kernel *kernel, unsigned int hz);
void __wrap_rls_kernel_pace_category_samples(struct rls_kernel *kernel, unsigned int hz)
{
}

int __wrap_rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty);
int __wrap_rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty)
{
	assert_in_range(site, 0, SITES - 1);
	world.duties[site] = duty;
	return 0;
}

static void close_window(uint64_t *edge_ns)
{
	assert_true(world.open);
	assert_false(world.closely); /* not while probes go off, nor after that */
	world.open = false;
	world.closed++;
	*edge_ns = world.now_ns;
}

int __wrap_rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns);
int __wrap_rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	world.regrouped++;
	if (world.open)
		close_window(edge_ns);
	*edge_ns = world.now_ns;
	return 0;
}

void __wrap_rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns);
void __wrap_rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	close_window(edge_ns);
}

int __wrap_rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns);
int __wrap_rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns)
{
	if (world.refuse_window)
		return world.refuse_window;
	assert_false(world.open);
	world.open = true;
	world.opened++;
	*edge_ns = world.now_ns;
	return 0;
}

int __wrap_rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count);
int __wrap_rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count)
{
	memcpy(hits, world.hits, count * sizeof(*hits));
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
	return 20000;
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
	memcpy(calls, world.calls, count * sizeof(*calls));
	return 0;
}

int __wrap_rls_infer_category(struct rls_code_map *map,
			      const struct rls_wire_category_sample *sample,
			      struct rls_inferred *out);
int __wrap_rls_infer_category(struct rls_code_map *map,
			      const struct rls_wire_category_sample *sample,
			      struct rls_inferred *out)
{
	*out = (struct rls_inferred){RLS_CATEGORY_BACKEND, false};
	return world.sample_result;
}

int __wrap_rls_event_output_add(struct rls_event_output *output, const struct rls_event *event);
int __wrap_rls_event_output_add(struct rls_event_output *output, const struct rls_event *event)
{
	assert_true(world.count < sizeof(world.events) / sizeof(*world.events));
	world.events[world.count++] = *event;
	return 0;
}

static size_t count_events(enum rls_event_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < world.count; i++)
		count += world.events[i].kind == kind;
	return count;
}

static struct rls_overhead_controller *begin(double percent)
{
	struct rls_overhead_controller *controller = NULL;

	memset(&world, 0, sizeof(world));
	world.open = true;
	world.now_ns = SECOND_NS;
	assert_int_equal(
		rls_overhead_controller_new(NULL, NULL, NULL, percent, HIT_NS, &controller), 0);
	rls_overhead_controller_start(controller, world.now_ns, 0);
	return controller;
}

static void category(struct rls_overhead_controller *controller, uint32_t tid, uint64_t time_ns,
		     uint16_t depth, uint32_t site, uint32_t cost_ns)
{
	const struct rls_wire_category record = {
		.header = {.size = sizeof(record),
			   .kind = RLS_WIRE_CATEGORY,
			   .tid = tid,
			   .time_ns = time_ns},
		.hit_totals = {.hits = 1, .cost_ns = cost_ns},
		.depth = depth,
		.site = site,
	};

	assert_int_equal(rls_overhead_controller_add(controller, &record.header, sizeof(record)),
			 0);
}

/* A tick in which calls of the busy site cost each of the threads `rate` of its time, while its
 * probes are on. Calls are 50 us long. */
static void tick(struct rls_overhead_controller *controller, double rate, uint32_t threads)
{
	uint64_t calls = world.open ? (uint64_t)(rate * TICK_NS / (2 * HIT_NS)) : 0;

	for (uint32_t tid = 1; tid <= threads; tid++) {
		for (uint64_t i = 0; i < calls; i++) {
			category(controller, tid, world.now_ns + i * 60000, 1, BUSY, HIT_NS);
			category(controller, tid, world.now_ns + i * 60000 + 50000, 0, BUSY,
				 HIT_NS);
		}
	}
	world.hits[BUSY] += 2 * calls * threads;
	world.hits[0] += world.open;
	world.now_ns += TICK_NS;
	assert_int_equal(rls_overhead_controller_tick(controller, world.now_ns, SITES), 0);
}

static void edges_are_in_the_trace(struct rls_overhead_controller *controller)
{
	bool open = true;
	uint64_t at_ns = 0;

	for (size_t i = 0; i < world.count; i++) {
		if (world.events[i].kind != RLS_EVENT_WINDOW)
			continue;
		assert_int_equal(world.events[i].window.open, !open);
		assert_true(world.events[i].time_ns > at_ns);
		open = !open;
		at_ns = world.events[i].time_ns;
	}
	assert_int_equal(open, world.open);
	assert_int_equal(count_events(RLS_EVENT_WINDOW), world.opened + world.closed);
}

static void what_is_within_the_budget_is_traced_throughout(void **state)
{
	struct rls_overhead_controller *controller = begin(2);

	for (int i = 0; i < 3000; i++)
		tick(controller, 0.006, 1);
	assert_int_equal(rls_overhead_controller_report(controller, world.now_ns), 0);
	assert_int_equal(world.closed, 0);
	assert_int_equal(world.count, 1);
	assert_int_equal(world.events[0].kind, RLS_EVENT_BUDGET); /* what was asked for */
	assert_int_equal(world.events[0].budget.windowed_sites, 0);
	rls_overhead_controller_free(controller);
}

static void a_busy_site_goes_into_windows_and_a_rare_one_stays_on(void **state)
{
	struct rls_overhead_controller *controller = begin(2);
	double open_ns = 0;
	const struct rls_event *said;

	for (int i = 0; i < 6000; i++) {
		open_ns += world.open ? TICK_NS : 0;
		tick(controller, 0.15, 1);
	}
	assert_true(world.opened >= 20);
	assert_true(world.regrouped >= 1);
	assert_int_equal(world.duties[0], RLS_DUTY_ALWAYS);
	assert_int_equal(world.duties[BUSY], RLS_DUTY_WINDOWS);
	edges_are_in_the_trace(controller);
	/* 2 % of a minute, at 15 % while open, and what switching costs. */
	assert_true(open_ns * 0.15 < 0.022 * 60 * SECOND_NS);
	assert_true(open_ns * 0.15 > 0.01 * 60 * SECOND_NS);
	assert_int_equal(rls_overhead_controller_report(controller, world.now_ns), 0);
	said = &world.events[world.count - 1];
	assert_int_equal(said->kind, RLS_EVENT_BUDGET);
	assert_int_equal(said->budget.windowed_sites, 1);
	assert_int_equal(said->budget.given_up_sites, 0);
	assert_true(said->budget.percent == 2);
	rls_overhead_controller_free(controller);
}

/* The thread that pays most counts, not all of them together. */
static void each_thread_may_pay_the_budget(void **state)
{
	struct rls_overhead_controller *controller = begin(2);

	for (int i = 0; i < 1500; i++)
		tick(controller, 0.006, 8);
	assert_int_equal(world.closed, 0);
	rls_overhead_controller_free(controller);
}

/* Hits that are reported after their window was closed do not count for the time after it,
 * but they are paid for. */
static void late_hits_are_paid_for(void **state)
{
	uint64_t waited[2];

	for (int late = 0; late < 2; late++) {
		struct rls_overhead_controller *controller = begin(2);
		uint64_t closed_ns;

		while (!world.closed)
			tick(controller, 0.15, 1);
		closed_ns = world.now_ns;
		if (late) /* 0.4 s: more than all that is left */
			category(controller, 1, closed_ns - 1000, 1, BUSY, 400000000);
		while (!world.opened && world.now_ns < closed_ns + 60 * SECOND_NS)
			tick(controller, 0.15, 1);
		waited[late] = world.now_ns - closed_ns;
		rls_overhead_controller_free(controller);
	}
	assert_true(waited[1] > waited[0] + 5 * SECOND_NS);
}

static void category_samples_become_shares(void **state)
{
	struct rls_overhead_controller *controller = begin(2);
	struct rls_wire_category_sample sample = {.header = {.size = sizeof(sample),
							     .kind = RLS_WIRE_CATEGORY_SAMPLE,
							     .pid = 5,
							     .tid = 6,
							     .time_ns = SECOND_NS + 77},
						  .waited_ns = 12};

	assert_int_equal(rls_overhead_controller_add(controller, &sample.header, sizeof(sample)),
			 0);
	assert_int_equal(world.count, 2); /* the first says the budget */
	assert_int_equal(world.events[1].kind, RLS_EVENT_SHARE);
	assert_int_equal(world.events[1].pid, 5);
	assert_int_equal(world.events[1].tid, 6);
	assert_int_equal(world.events[1].time_ns, SECOND_NS + 77);
	assert_int_equal(world.events[1].share.category, RLS_CATEGORY_BACKEND);
	assert_int_equal(world.events[1].share.waited_ns, 12);
	/* Cut short; the profiler's own time; a process that is gone: nothing is said. */
	assert_int_equal(
		rls_overhead_controller_add(controller, &sample.header, sizeof(sample) - 1), 0);
	world.sample_result = -EAGAIN;
	assert_int_equal(rls_overhead_controller_add(controller, &sample.header, sizeof(sample)),
			 0);
	world.sample_result = -ESRCH;
	assert_int_equal(rls_overhead_controller_add(controller, &sample.header, sizeof(sample)),
			 0);
	assert_int_equal(world.count, 2);
	world.sample_result = -ENOMEM;
	assert_int_equal(rls_overhead_controller_add(controller, &sample.header, sizeof(sample)),
			 -ENOMEM);
	rls_overhead_controller_free(controller);
}

/* A site that was never hit before is, in closed time, as when a rollout is over. */
static void sites_met_in_closed_time_calm_down(void **state)
{
	struct rls_overhead_controller *controller = begin(2);
	size_t regrouped;
	double on_ns = 0;

	while (!world.closed)
		tick(controller, 0.15, 1);
	regrouped = world.regrouped;
	assert_int_equal(world.duties[NEW], RLS_DUTY_ALWAYS);
	for (int i = 0; i < 6000; i++) {
		bool on = world.open || world.duties[NEW] == RLS_DUTY_ALWAYS;
		uint64_t hits = on ? TICK_NS / 10 / HIT_NS : 0; /* a tenth of its time */

		on_ns += on ? TICK_NS : 0;
		world.hits[NEW] += hits;
		if (hits)
			category(controller, 1, world.now_ns, 0, NEW, (uint32_t)hits * HIT_NS);
		world.now_ns += TICK_NS;
		assert_int_equal(rls_overhead_controller_tick(controller, world.now_ns, SITES), 0);
	}
	assert_true(world.regrouped > regrouped);
	assert_int_equal(world.duties[NEW], RLS_DUTY_WINDOWS);
	assert_true(on_ns * 0.1 < 0.025 * 60 * SECOND_NS);
	rls_overhead_controller_free(controller);
}

/* One that takes more than sites that stay on may, not enough to be too expensive at once, while a debt leaves no
 * windows to find it in. */
static void sites_that_the_first_stretch_missed_are_found(void **state)
{
	const uint64_t hits =
		TICK_NS / 100 * 3 / 4 / (8 * HIT_NS); /* each the first after others */
	struct rls_overhead_controller *controller = begin(2);
	size_t regrouped;
	uint64_t since_ns;

	while (!world.closed)
		tick(controller, 0.15, 1);
	category(controller, 1, world.now_ns - 1, 0, BUSY, SECOND_NS / 5);
	regrouped = world.regrouped;
	since_ns = world.now_ns;
	while (world.regrouped == regrouped && world.now_ns < since_ns + 8 * SECOND_NS) {
		world.hits[NEW] += hits;
		for (uint64_t i = 0; i < hits; i++)
			category(controller, 1, world.now_ns, 0, NEW, HIT_NS);
		world.now_ns += TICK_NS;
		assert_int_equal(rls_overhead_controller_tick(controller, world.now_ns, SITES), 0);
	}
	assert_int_equal(world.opened, 0);
	assert_int_equal(world.duties[NEW], RLS_DUTY_WINDOWS);
	assert_in_range(world.now_ns - since_ns, 4 * SECOND_NS, 5 * SECOND_NS);
	rls_overhead_controller_free(controller);
}

/* ---- where the kernel side keeps totals ---- */

static int sampled(void *context, const struct rls_wire_category_sample *sample,
		   enum rls_category inferred)
{
	assert_int_equal(inferred, RLS_CATEGORY_BACKEND);
	world.sampled++;
	return 0;
}

static struct rls_overhead_controller *begin_totals(double percent)
{
	struct rls_overhead_controller *controller = begin(percent);

	assert_int_equal(rls_overhead_controller_use_totals(controller, sampled, NULL), 0);
	return controller;
}

/* As tick, summed up by the kernel side. */
static void totals_tick(struct rls_overhead_controller *controller, double rate, uint32_t threads)
{
	uint64_t calls = world.open ? (uint64_t)(rate * TICK_NS / (2 * HIT_NS)) : 0;

	for (uint32_t tid = 1; tid <= threads; tid++)
		world.burden[RLS_BURDEN_OF(tid)] += 2 * calls * HIT_NS;
	world.hits[BUSY] += 2 * calls * threads;
	world.calls[BUSY].calls += calls * threads;
	world.calls[BUSY].time_ns += calls * threads * 50000;
	world.hits[0] += world.open && world.now_ns / TICK_NS % 8 == 0; /* seldom */
	world.now_ns += TICK_NS;
	assert_int_equal(rls_overhead_controller_tick(controller, world.now_ns, SITES), 0);
}

static void sums_keep_the_budget_as_records_do(void **state)
{
	struct rls_overhead_controller *controller = begin_totals(1);
	double open_ns = 0;

	for (int i = 0; i < 6000; i++) {
		open_ns += world.open ? TICK_NS : 0;
		totals_tick(controller, 0.15, 3);
	}
	assert_int_equal(world.duties[0], RLS_DUTY_ALWAYS);
	assert_int_equal(world.duties[BUSY], RLS_DUTY_WINDOWS);
	assert_true(open_ns * 0.15 < 0.011 * 60 * SECOND_NS);
	assert_true(open_ns * 0.15 > 0.004 * 60 * SECOND_NS);
	rls_overhead_controller_free(controller);
}

/* Hours without a job are no reason to think that sites are hit seldom. */
static void idle_time_says_nothing_of_sites(void **state)
{
	struct rls_overhead_controller *controller = begin_totals(1);

	for (int i = 0; i < 60000; i++) {
		world.now_ns += TICK_NS;
		rls_overhead_controller_idle(controller, world.now_ns);
	}
	for (int i = 0; i < 3000 && !world.closed; i++)
		totals_tick(controller, 0.15, 1);
	assert_int_equal(world.closed, 1);
	assert_int_equal(world.duties[BUSY], RLS_DUTY_WINDOWS);
	rls_overhead_controller_free(controller);
}

/* What the job before was met by is held against its own time. */
static void what_was_seen_before_idle_time_counts(void **state)
{
	struct rls_overhead_controller *controller = begin_totals(1);

	for (int i = 0; i < 30000; i++)
		totals_tick(controller, 0.0005, 1);
	for (int i = 0; i < 100; i++) {
		world.now_ns += TICK_NS;
		rls_overhead_controller_idle(controller, world.now_ns);
	}
	assert_int_equal(world.closed, 0);
	while (!world.closed)
		totals_tick(controller, 0.15, 1);
	assert_int_equal(world.duties[0], RLS_DUTY_ALWAYS); /* one hit a tick, 0.04 % */
	rls_overhead_controller_free(controller);
}

/* A job that was cheap for long is followed by one that is not. */
static void what_sites_cost_is_learnt_anew(void **state)
{
	struct rls_overhead_controller *controller = begin_totals(1);

	for (int i = 0; i < 30000; i++)
		totals_tick(controller, 0.0005, 1);
	assert_int_equal(world.closed, 0);
	for (int i = 0; i < 6000; i++)
		totals_tick(controller, 0.15, 1);
	assert_int_equal(world.duties[BUSY], RLS_DUTY_WINDOWS);
	rls_overhead_controller_free(controller);
}

static void category_samples_go_to_the_listener(void **state)
{
	struct rls_overhead_controller *controller = begin_totals(1);
	const struct rls_wire_category_sample sample = {
		.header = {.size = sizeof(sample), .kind = RLS_WIRE_CATEGORY_SAMPLE}};

	assert_int_equal(rls_overhead_controller_add(controller, &sample.header, sizeof(sample)),
			 0);
	world.sample_result = -EAGAIN; /* our own time */
	assert_int_equal(rls_overhead_controller_add(controller, &sample.header, sizeof(sample)),
			 0);
	assert_int_equal(world.sampled, 1);
	assert_int_equal(world.count, 1); /* of before there were totals */
	rls_overhead_controller_free(controller);
}

static void what_fails_is_reported(void **state)
{
	struct rls_overhead_controller *controller = begin(2);
	int r = 0;

	while (!world.closed)
		tick(controller, 0.15, 1);
	world.refuse_window = -ENOMEM;
	while (!r) {
		world.now_ns += TICK_NS;
		r = rls_overhead_controller_tick(controller, world.now_ns, SITES);
	}
	assert_int_equal(r, -ENOMEM);
	rls_overhead_controller_free(controller);
	rls_overhead_controller_free(NULL);
}

/* The timer's samples: in windows alone, until what samples mistake is known well; not within a small budget. */
static void samples_closely_in_windows(void **state)
{
	struct rls_wire_category_sample sample = {.header = {.size = sizeof(sample),
							     .kind = RLS_WIRE_CATEGORY_SAMPLE,
							     .flags = RLS_SAMPLE_CLOSE}};
	struct rls_overhead_controller *controller = begin(1);

	(void)state;
	assert_false(world.closely);
	rls_overhead_controller_free(controller);
	controller = begin(2);
	assert_true(world.closely);
	while (world.opened < 2) {
		tick(controller, 0.15, 1);
		assert_true(world.closely == world.open);
	}
	for (int i = 0; i < 1000; i++) {
		world.count = 0;
		assert_int_equal(
			rls_overhead_controller_add(controller, &sample.header, sizeof(sample)), 0);
	}
	while (world.opened < 4)
		tick(controller, 0.15, 1);
	assert_true(world.open && !world.closely);
	rls_overhead_controller_free(controller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_within_the_budget_is_traced_throughout),
		cmocka_unit_test(a_busy_site_goes_into_windows_and_a_rare_one_stays_on),
		cmocka_unit_test(each_thread_may_pay_the_budget),
		cmocka_unit_test(late_hits_are_paid_for),
		cmocka_unit_test(category_samples_become_shares),
		cmocka_unit_test(sites_met_in_closed_time_calm_down),
		cmocka_unit_test(sites_that_the_first_stretch_missed_are_found),
		cmocka_unit_test(sums_keep_the_budget_as_records_do),
		cmocka_unit_test(idle_time_says_nothing_of_sites),
		cmocka_unit_test(what_was_seen_before_idle_time_counts),
		cmocka_unit_test(what_sites_cost_is_learnt_anew),
		cmocka_unit_test(category_samples_go_to_the_listener),
		cmocka_unit_test(samples_closely_in_windows),
		cmocka_unit_test(what_fails_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
