#include "userspace/record/budget/overhead_controller.h"
#include "bpf/wire/layer.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/index_map.h"
#include "bpf/wire/layer.h"
#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_totals.h"
#include "userspace/attach/kernel/kernel_windows.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/record/budget/closed_time.h"
#include "userspace/record/budget/controller_totals.h"
#include "userspace/record/budget/range_duty.h"
#include "userspace/record/budget/site_value.h"
#include "userspace/record/budget/token_bucket.h"
#include "userspace/record/samples/infer_category.h"

/* What the target is held up for, per site put on or taken off: its page is copied, its memory map
 * locked, and what it runs next is no longer in its caches. Most of the time it takes us is waiting.
 * (3.5 ms a window of 104 sites; more where its threads outnumber the CPUs.) */
#define SWITCH_NS_A_SITE 25000.0
/* And per site that is sorted out anew, of which the neighbours of its link are put on again. (35 ms for 110.) */
#define REGROUP_NS_A_SITE 300000.0
/* And per site of all there are, put on for the first time and taken off in the end, with what comes with a
 * beginning and an end besides. */
#define FIRST_AND_LAST_NS_A_SITE 80000.0
/* Hits are charged by so much more than the calibration says, as a budget is a promise: as they were
 * seen to cost it, in windows, where they have just been put on; where much is
 * traced for longer, as in the first stretch; and in other closed time RLS_SPARSE_HIT for the first of
 * hit totals, less for those right after it (all of them where the kernel side keeps totals, which makes no
 * hit totals). */
#define WINDOW_HIT 1.25
#define DENSE_HIT 1.15
#define DENSE_RATE 0.05 /* of the time, in the last tick */
#define TICK_MORE_NS 10000 /* than a tick costs, as what it brings out of the caches does too */
#define WAITED_SAMPLE_NS 26000 /* where nothing interrupts, with that */

/* Of what is asked for: what comes in between, from a page fault to a scan of tables, is charged to nobody, and a
 * budget is to hold in nearly every minute. */
#define AIM 0.85

/* Sites are given up only when they have been watched for so long. */
#define DEMOTE_AFTER_NS 5000000000ULL
#define SORT_AGAIN_NS 10000000000ULL
/* At the least, of the time traced: where several threads pay, none of them pays all. */
#define UNTRACED_SHARE_MIN 0.25
/* Samples by a timer are expensive. They are taken to know the errors of samples soon: to half a
 * percentage point after so many. With a smaller budget they would take a tenth of the windows. */
#define CLOSE_SAMPLES_ENOUGH 1000
#define SAMPLE_CLOSELY_PERCENT 2
/* At most so long from the beginning, or of a window, samples are many. */
#define SAMPLES_CLOSELY_NS 1000000000ULL
/* A first stretch that must end does so before. */
#define BEGINNING_NS 500000000ULL
/* How often the controller is called with the time, in the normal case. */
#define TICK_NS 10000000ULL
/* Of what was known of sites before, at each sorting: jobs come and go. */
#define TOTALS_KEEP 0.7

struct rls_overhead_controller {
	struct rls_kernel *kernel;
	struct rls_code_map *code_map;
	struct rls_event_output *output;
	struct rls_token_bucket budget;
	struct rls_site_value use;
	struct rls_site_sorting sorting;
	struct rls_index_map costs; /* tid → cost of this tick + 1 */
	double worst_ns; /* the largest of them */
	double percent; /* of the time, asked for */
	double hit_ns;
	uint64_t start_ns, opened_ns, sorted_ns;
	size_t lent_sites; /* what putting these on costs is lent by the budget */
	double before_ns; /* of budget.spent_ns, before opened_ns */
	uint64_t passed_ns; /* closed time up to here is in use */
	uint64_t quiet_ns; /* until then probes were being taken off */
	struct rls_closed_time closed;
	uint64_t ranges; /* of PyTorch's own that have begun by the last tick */
	struct rls_range_duty range_duty;
	bool samples_closely;
	size_t close_samples; /* so far, by the timer */
	bool dense; /* hits in the last tick, at ticked_ns */
	uint64_t ticked_ns;
	size_t windows;
	struct rls_controller_totals *totals; /* NULL: the kernel side sends records */
	int (*sampled)(void *context, const struct rls_wire_category_sample *sample,
		       enum rls_category inferred); /* with totals: where samples go */
	void *sampled_context;
};

int rls_overhead_controller_new(struct rls_kernel *kernel, struct rls_code_map *code_map,
				struct rls_event_output *output, double percent, double hit_ns,
				struct rls_overhead_controller **out)
{
	struct rls_overhead_controller *controller = calloc(1, sizeof(*controller));

	if (!controller)
		return -ENOMEM;
	rls_kernel_attach_category_samples(kernel, RLS_CATEGORY_SAMPLES_HZ);
	controller->kernel = kernel;
	controller->code_map = code_map;
	controller->output = output;
	controller->percent = percent;
	controller->budget.share = AIM * percent / 100;
	controller->hit_ns = hit_ns;
	controller->closed = (struct rls_closed_time){
		.kernel = kernel,
		.use = &controller->use,
		.budget = &controller->budget,
		.hit_ns = hit_ns,
	};
	*out = controller;
	return 0;
}

void rls_overhead_controller_free(struct rls_overhead_controller *controller)
{
	if (!controller)
		return;
	rls_index_map_free(&controller->costs);
	rls_site_value_clear(&controller->use);
	free(controller->totals);
	free(controller);
}

int rls_overhead_controller_use_totals(struct rls_overhead_controller *controller,
				       int (*sampled)(void *context,
						      const struct rls_wire_category_sample *sample,
						      enum rls_category inferred),
				       void *context)
{
	controller->totals = calloc(1, sizeof(*controller->totals));
	if (!controller->totals)
		return -ENOMEM;
	controller->sampled = sampled;
	controller->sampled_context = context;
	return 0;
}

/* A sample costs as much as a hit. Samples are many only while tracing shows the true category
 * beside them, which is not for long. */
static void pace_samples(struct rls_overhead_controller *controller, bool closely)
{
	if (controller->samples_closely == closely)
		return;
	controller->samples_closely = closely;
	rls_kernel_sample_closely(controller->kernel,
				  closely && controller->percent >= SAMPLE_CLOSELY_PERCENT &&
					  controller->close_samples < CLOSE_SAMPLES_ENOUGH);
	rls_kernel_pace_category_samples(controller->kernel, closely ? RLS_CATEGORY_SAMPLES_OPEN_HZ
								     : RLS_CATEGORY_SAMPLES_HZ);
}

/* As one goes, since a recorder may be killed: then what is scaled is known to be so. */
static int write_budget(struct rls_overhead_controller *controller, uint64_t time_ns)
{
	const struct rls_event event = {
		.kind = RLS_EVENT_BUDGET,
		.time_ns = time_ns,
		.budget = {.percent = controller->percent,
			   .given_up_percent = 100 * controller->sorting.demoted_share,
			   .windowed_sites = (uint32_t)controller->sorting.windowed,
			   .given_up_sites = (uint32_t)controller->sorting.never},
	};

	return controller->totals ? 0 : rls_event_output_add(controller->output, &event);
}

int rls_overhead_controller_start(struct rls_overhead_controller *controller, uint64_t time_ns,
				  size_t sites)
{
	controller->start_ns = controller->opened_ns = controller->sorted_ns = time_ns;
	controller->ticked_ns = controller->range_duty.since_ns = time_ns;
	rls_token_bucket_start(&controller->budget, controller->budget.share, time_ns, time_ns);
	rls_overhead_controller_probed(controller, sites);
	pace_samples(controller, true);
	return write_budget(controller, time_ns);
}

void rls_overhead_controller_probed(struct rls_overhead_controller *controller, size_t sites)
{
	if (sites <= controller->lent_sites)
		return;
	rls_token_bucket_lend(&controller->budget,
			      FIRST_AND_LAST_NS_A_SITE * (double)(sites - controller->lent_sites));
	controller->lent_sites = sites;
}

void rls_overhead_controller_adopt(struct rls_overhead_controller *controller, uint64_t time_ns)
{
	rls_range_duty_restart(&controller->range_duty, controller->kernel, time_ns);
}

/* ---- what records tell ---- */

/* From before the last edge, or while probes went off after it: a window's, for the most part. */
static bool is_late(const struct rls_overhead_controller *controller,
		    const struct rls_wire_header *header)
{
	return header->time_ns < controller->budget.edge_ns ||
	       header->time_ns < controller->quiet_ns;
}

static double hit_charge(const struct rls_overhead_controller *controller, bool late)
{
	return controller->budget.first_stretch_over && (controller->budget.open || late)
		       ? WINDOW_HIT
		       : DENSE_HIT;
}

static bool is_sparse(const struct rls_overhead_controller *controller, bool late)
{
	return !controller->budget.open && !controller->dense && !late;
}

static uint32_t hits_ns(const struct rls_overhead_controller *controller,
			const struct rls_wire_header *header,
			const struct rls_wire_hit_totals *hit_totals)
{
	bool late = is_late(controller, header);
	double cost_ns = hit_charge(controller, late) * hit_totals->cost_ns;

	/* Each brings into the caches what it needs; edges of operations come with it. */
	if (hit_totals->hits && is_sparse(controller, late))
		cost_ns += controller->hit_ns *
			   (rls_cold_hits(hit_totals->hits) - DENSE_HIT * hit_totals->hits);
	return cost_ns < UINT32_MAX / 2 ? (uint32_t)cost_ns : UINT32_MAX / 2;
}

/* The thread that pays most is the one that must not pay too much: others may wait for it. */
static int charge(struct rls_overhead_controller *controller, const struct rls_wire_header *header,
		  uint32_t cost_ns)
{
	uint32_t tid = header->tid;
	uintptr_t known = (uintptr_t)rls_index_map_get(&controller->costs, tid, 0);
	uintptr_t sum = (known ? known : 1) + cost_ns;

	if (is_late(controller, header)) {
		rls_token_bucket_charge_late(&controller->budget, cost_ns);
		return 0;
	}
	if ((double)(sum - 1) > controller->worst_ns)
		controller->worst_ns = (double)(sum - 1);
	return rls_index_map_put(&controller->costs, tid, 0, (void *)sum);
}

static uint32_t scan_ns(const struct rls_overhead_controller *controller,
			const struct rls_wire_category_sample *sample)
{
	if (sample->header.flags & RLS_SAMPLE_CLOSE)
		return 0; /* it is in some hit totals */
	return sample->waited_ns ? WAITED_SAMPLE_NS
				 : rls_kernel_tick_cost_ns(controller->kernel) + TICK_MORE_NS;
}

static int take_sample(struct rls_overhead_controller *controller,
		       const struct rls_wire_category_sample *sample)
{
	struct rls_event event = {.kind = RLS_EVENT_SHARE,
				  .pid = sample->header.pid,
				  .tid = sample->header.tid,
				  .time_ns = sample->header.time_ns,
				  .share.waited_ns = sample->waited_ns};
	struct rls_inferred inferred = {0};
	int r = rls_infer_category(controller->code_map, sample, &inferred);

	event.share.category = inferred.category;
	if (controller->totals && inferred.roleless) /* as in the totals: the caller's */
		event.share.category = RLS_CATEGORY_PYTHON;
	controller->close_samples += !!(sample->header.flags & RLS_SAMPLE_CLOSE);
	if (r == -ENOMEM)
		return r;
	if (!r && controller->totals)
		r = controller->sampled(controller->sampled_context, sample, event.share.category);
	else if (!r)
		r = rls_event_output_add(controller->output, &event);
	else
		r = 0; /* the profiler's own time, or the process is gone */
	return r ? r
		 : charge(controller, &sample->header,
			  hits_ns(controller, &sample->header, &sample->hit_totals) +
				  scan_ns(controller, sample));
}

/* What its probes cost is part of the budget, though they are on always. */
static int charge_layer(struct rls_overhead_controller *controller,
			const struct rls_wire_layer *layer)
{
	if (!layer->hit_totals.cost_ns)
		return 0;
	return charge(controller, &layer->header,
		      hits_ns(controller, &layer->header, &layer->hit_totals));
}

int rls_overhead_controller_add(struct rls_overhead_controller *controller,
				const struct rls_wire_header *record, size_t size)
{
	const struct rls_wire_category *category = (const void *)record;
	int r = 0;

	if (record->kind == RLS_WIRE_CATEGORY_SAMPLE &&
	    size >= sizeof(struct rls_wire_category_sample))
		return take_sample(controller, (const void *)record);
	if (record->kind == RLS_WIRE_LAYER && size >= sizeof(struct rls_wire_layer))
		return charge_layer(controller, (const void *)record);
	if (record->kind != RLS_WIRE_CATEGORY || size < sizeof(*category))
		return 0;
	if (category->hit_totals.cost_ns)
		r = charge(controller, record, hits_ns(controller, record, &category->hit_totals));
	return r || !controller->budget.open ? r : rls_site_value_add(&controller->use, category);
}

/* ---- windows ---- */

static int overhead_controller_report(struct rls_overhead_controller *controller, bool open,
				      uint64_t edge_ns)
{
	const struct rls_event event = {
		.kind = RLS_EVENT_WINDOW, .time_ns = edge_ns, .window.open = open};

	return rls_event_output_add(controller->output, &event);
}

static int read_hits(struct rls_overhead_controller *controller, size_t sites)
{
	_cleanup_free_ uint64_t *hits = calloc(sites + 1, sizeof(*hits));
	int r;

	sites = rls_sites_counted(sites);
	if (!hits)
		return -ENOMEM;
	r = rls_kernel_site_hits(controller->kernel, hits, sites);
	if (!r && controller->totals)
		return rls_controller_totals_sites(controller->totals, controller->kernel, hits,
						   sites, &controller->use);
	return r ? r : rls_site_value_hits(&controller->use, hits, sites);
}

static bool must_sort(const struct rls_overhead_controller *controller, uint64_t time_ns)
{
	return !controller->budget.first_stretch_over ||
	       time_ns - controller->sorted_ns > SORT_AGAIN_NS;
}

/* Which sites are worth what they cost, by all that was seen of them until now. */
static int sort_sites(struct rls_overhead_controller *controller, uint64_t time_ns, size_t sites)
{
	int r = read_hits(controller, sites);

	if (r)
		return r;
	for (uint32_t i = 0; i < controller->use.count; i++) {
		if (controller->use.sites[i].hits)
			controller->use.sites[i].hit_ns =
				rls_kernel_site_cost_ns(controller->kernel, i);
	}
	rls_site_value_sort(&controller->use, controller->hit_ns, controller->budget.share,
			    !controller->totals && time_ns - controller->start_ns > DEMOTE_AFTER_NS,
			    &controller->sorting);
	for (uint32_t i = 0; !r && i < controller->use.count; i++)
		r = rls_kernel_set_duty(controller->kernel, i, controller->use.sites[i].duty);
	if (controller->totals)
		rls_site_value_age(&controller->use, TOTALS_KEEP);
	controller->sorted_ns = time_ns;
	rls_debug("sites: %zu always on, %zu in windows, %zu given up (%.2f %% of the time)",
		  controller->sorting.always, controller->sorting.windowed,
		  controller->sorting.never, 100 * controller->sorting.demoted_share);
	return r;
}

static double switch_ns(size_t sites)
{
	return SWITCH_NS_A_SITE * (double)sites;
}

/* Probes have been put on or taken off, which took so long after the edge: what they were hit
 * meanwhile is neither a window's nor closed time's. */
static void end_switching(struct rls_overhead_controller *controller, uint64_t edge_ns,
			  uint64_t took_ns)
{
	controller->quiet_ns = edge_ns + took_ns;
	if (controller->totals)
		rls_token_bucket_charge_late(
			&controller->budget,
			hit_charge(controller, true) *
				rls_controller_totals_burden(controller->totals,
							     controller->kernel));
}

/* How long what was done since the window opened takes while it is closed, when sites are met as much
 * more often. */
static uint64_t untraced_ns(const struct rls_overhead_controller *controller, uint64_t time_ns)
{
	double passed_ns = (double)(time_ns - controller->opened_ns);
	double spent_ns = controller->budget.spent_ns - controller->before_ns;

	return (uint64_t)fmax(passed_ns - spent_ns, UNTRACED_SHARE_MIN * passed_ns);
}

static int close_window(struct rls_overhead_controller *controller, uint64_t time_ns, size_t sites)
{
	uint64_t began_ns = rls_monotonic_ns(), edge_ns;
	size_t windowed = controller->sorting.windowed;
	bool sort = must_sort(controller, time_ns);
	int r = 0;

	if (sort) {
		rls_site_value_cut(&controller->use, untraced_ns(controller, time_ns));
		r = sort_sites(controller, time_ns, sites);
	}
	if (r)
		return r;
	pace_samples(controller, false); /* before probes go off, which takes a while */
	if (sort)
		r = rls_kernel_regroup(controller->kernel, &edge_ns);
	else
		rls_kernel_close_window(controller->kernel, &edge_ns);
	if (!sort)
		rls_site_value_cut(&controller->use, untraced_ns(controller, edge_ns));
	controller->passed_ns = edge_ns;
	controller->windows++;
	rls_debug("closed time costs %.2f %%, windows %.2f %%",
		  100 * controller->budget.closed_rate, 100 * controller->budget.open_rate);
	rls_debug("window %zu closed after %.1f ms, in %.1f ms; credit %.1f ms",
		  controller->windows, (double)(edge_ns - controller->opened_ns) / 1e6,
		  (double)(rls_monotonic_ns() - began_ns) / 1e6,
		  controller->budget.credit_ns / 1e6);
	rls_token_bucket_switched(&controller->budget, false, edge_ns,
				  sort ? 0 : switch_ns(windowed));
	if (sort)
		rls_token_bucket_charge_late(&controller->budget,
					     switch_ns(windowed) +
						     REGROUP_NS_A_SITE *
							     (double)controller->sorting.changed);
	end_switching(controller, edge_ns, rls_monotonic_ns() - began_ns);
	if (!r)
		r = rls_closed_time_begin(&controller->closed, edge_ns, sites);
	if (!r && sort)
		r = write_budget(controller, edge_ns);
	return r ? r : overhead_controller_report(controller, false, edge_ns);
}

static int open_window(struct rls_overhead_controller *controller)
{
	uint64_t began_ns = rls_monotonic_ns(), edge_ns;
	int r;

	r = rls_kernel_open_window(controller->kernel, &edge_ns);
	if (r)
		return r;
	rls_site_value_pass(&controller->use, edge_ns - controller->passed_ns);
	controller->opened_ns = edge_ns;
	pace_samples(controller, true);
	rls_debug("window opened in %.1f ms; credit %.1f ms",
		  (double)(rls_monotonic_ns() - began_ns) / 1e6,
		  controller->budget.credit_ns / 1e6);
	rls_token_bucket_switched(&controller->budget, true, edge_ns,
				  switch_ns(controller->sorting.windowed));
	controller->before_ns = 0;
	end_switching(controller, edge_ns, 0);
	return overhead_controller_report(controller, true, edge_ns);
}

/* ---- between windows ---- */

static int take_off(struct rls_overhead_controller *controller, size_t moved, uint64_t time_ns,
		    size_t sites)
{
	uint64_t edge_ns, began_ns;
	int r = 0;

	for (uint32_t i = 0; !r && i < controller->use.count; i++)
		r = rls_kernel_set_duty(controller->kernel, i, controller->use.sites[i].duty);
	if (r)
		return r;
	controller->sorting.windowed += moved;
	controller->sorting.always -=
		moved < controller->sorting.always ? moved : controller->sorting.always;
	rls_site_value_pass(&controller->use, time_ns - controller->passed_ns);
	controller->passed_ns = time_ns;
	began_ns = rls_monotonic_ns();
	r = rls_kernel_regroup(controller->kernel, &edge_ns);
	rls_token_bucket_calmed(&controller->budget, edge_ns, REGROUP_NS_A_SITE * (double)moved);
	end_switching(controller, edge_ns, rls_monotonic_ns() - began_ns);
	rls_debug("they went in %.1f ms; credit %.1f ms",
		  (double)(rls_monotonic_ns() - began_ns) / 1e6,
		  controller->budget.credit_ns / 1e6);
	if (!r)
		r = write_budget(controller, edge_ns);
	return r ? r : rls_closed_time_begin(&controller->closed, edge_ns, sites);
}

static int watch_closed_time(struct rls_overhead_controller *controller, uint64_t time_ns,
			     size_t sites)
{
	size_t moved;
	int r = rls_closed_time_watch(&controller->closed, time_ns, sites, &moved);

	return r || !moved ? r : take_off(controller, moved, time_ns, sites);
}

/* The ranges that PyTorch's optimizers begin are far from each other, and go into the hit totals of whatever is hit
 * next. */
static double ranges_ns(struct rls_overhead_controller *controller)
{
	uint64_t own, others, before = controller->ranges;

	rls_kernel_ranges_begun(controller->kernel, &own, &others);
	controller->ranges = own;
	return controller->budget.open ? 0
				       : (RLS_SPARSE_HIT - RLS_FOLLOWING_HIT) * controller->hit_ns *
						 (double)(own - before);
}

int rls_overhead_controller_tick(struct rls_overhead_controller *controller, uint64_t time_ns,
				 size_t sites)
{
	double cost_ns = controller->worst_ns + ranges_ns(controller);
	int r;

	if (controller->totals)
		cost_ns += (is_sparse(controller, false) ? RLS_FOLLOWING_HIT
							 : hit_charge(controller, false)) *
			   rls_controller_totals_burden(controller->totals, controller->kernel);
	controller->worst_ns = 0;
	controller->dense = cost_ns > DENSE_RATE * (double)(time_ns - controller->ticked_ns);
	controller->ticked_ns = time_ns;
	rls_index_map_free(&controller->costs);
	r = rls_range_duty_tick(&controller->range_duty, controller->kernel, controller->hit_ns,
				controller->budget.share, time_ns);
	if (r)
		return r;
	switch (rls_token_bucket_tick(&controller->budget, time_ns, cost_ns)) {
	case RLS_BUDGET_CLOSE:
		return close_window(controller, time_ns, sites);
	case RLS_BUDGET_OPEN:
		return open_window(controller);
	default:
		if (!controller->budget.open)
			return watch_closed_time(controller, time_ns, sites);
		if (time_ns > controller->budget.due_ns &&
		    time_ns > controller->opened_ns + SAMPLES_CLOSELY_NS)
			pace_samples(controller, false); /* it stays open: all is cheap */
		return 0;
	}
}

bool rls_overhead_controller_is_beginning(const struct rls_overhead_controller *controller,
					  uint64_t time_ns)
{
	return !controller->budget.first_stretch_over &&
	       time_ns < controller->start_ns + BEGINNING_NS;
}

bool rls_overhead_controller_is_brief(const struct rls_overhead_controller *controller,
				      uint64_t time_ns)
{
	return controller->budget.open && controller->budget.first_stretch_over &&
	       time_ns < controller->budget.due_ns + 2 * TICK_NS;
}

void rls_overhead_controller_idle(struct rls_overhead_controller *controller, uint64_t time_ns)
{
	/* Nothing is learnt of sites while nobody could have hit them. */
	if (controller->budget.open) {
		if (controller->ticked_ns > controller->opened_ns)
			rls_site_value_cut(&controller->use,
					   untraced_ns(controller, controller->ticked_ns));
		controller->opened_ns = time_ns;
		controller->before_ns = controller->budget.spent_ns;
	}
	controller->passed_ns = time_ns;
	controller->worst_ns = 0;
}

int rls_overhead_controller_report(struct rls_overhead_controller *controller, uint64_t time_ns)
{
	return controller->budget.first_stretch_over ? write_budget(controller, time_ns) : 0;
}
