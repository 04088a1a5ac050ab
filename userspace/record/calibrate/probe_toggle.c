#include "userspace/record/calibrate/probe_toggle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/base/clock.h"
#include "userspace/record/calibrate/anchor_sites.h"
#include "userspace/base/jitter.h"
#include "userspace/record/budget/site_value.h"

/* How long all is traced at first, to see which sites are hit and how often. */
#define FIRST_NS 2560000000ULL
#define SLOT_NS (FIRST_NS / RLS_MARK_SLOTS)
/* A stretch, drawn evenly between: long enough for many segments beside what switching
 * takes, short enough for the machine to stay as it is from one to the next. */
#define STRETCH_NS_MIN 150000000ULL
#define STRETCH_NS_MAX 450000000ULL
/* What a switch leaves behind (pages copied, translations gone) is over by then. */
#define SETTLE_NS 20000000ULL

struct rls_alternator {
	struct rls_kernel *kernel;
	struct rls_site_use use;
	struct rls_marks candidates;
	struct rls_segments segments;
	bool *marks;                    /* by site id; NULL while all is on for the first time */
	size_t mark_room;
	bool probed;
	bool by_operations;             /* which do without marks */
	double hit_ns;
	uint64_t start_ns, since_ns, due_ns;
	uint64_t random;
};

int rls_alternator_new(struct rls_kernel *kernel, struct rls_calibrated hit,
		       struct rls_alternator **out)
{
	struct rls_alternator *alternator = calloc(1, sizeof(*alternator));

	if (!alternator)
		return -ENOMEM;
	alternator->kernel = kernel;
	alternator->hit_ns = alternator->segments.hit_ns = hit.value_ns;
	alternator->segments.excess_ns = rls_calibrated_excess(&hit);
	*out = alternator;
	return 0;
}

void rls_alternator_free(struct rls_alternator *alternator)
{
	if (!alternator)
		return;
	rls_site_use_clear(&alternator->use);
	rls_marks_clear(&alternator->candidates);
	rls_segments_clear(&alternator->segments);
	free(alternator->marks);
	free(alternator);
}

void rls_alternator_start(struct rls_alternator *alternator, uint64_t time_ns)
{
	alternator->start_ns = time_ns;
	alternator->random = time_ns | 1;
	alternator->due_ns = time_ns + FIRST_NS;
	alternator->probed = true;
}

/* While all is on for the first time. */
static int look(struct rls_alternator *alternator, const struct rls_wire_category *record)
{
	uint64_t time_ns = record->header.time_ns;
	int r = rls_site_use_add(&alternator->use, record);
	size_t slot = time_ns > alternator->start_ns ? (time_ns - alternator->start_ns) / SLOT_NS : 0;

	/* Hits are counted from before the first slot until they are read, some time after the last: a
	 * call that is not would seem to be amid others. */
	if (slot >= RLS_MARK_SLOTS)
		slot = RLS_MARK_SLOTS - 1;
	/* What leaves no frame is the end of a call amid no other. */
	if (r || record->depth)
		return r;
	return rls_marks_add(&alternator->candidates, record->site, slot);
}

int rls_alternator_add(struct rls_alternator *alternator, const struct rls_wire_header *header,
		       size_t size)
{
	const struct rls_wire_category *record = (const void *)header;

	if (header->kind == RLS_WIRE_ABSENCE && size >= sizeof(struct rls_wire_absence))
		return rls_segments_away(&alternator->segments, (const void *)header);
	if (header->kind != RLS_WIRE_CATEGORY || size < sizeof(*record))
		return 0;
	if (!alternator->marks) {
		int r = look(alternator, record);

		return r ? r : rls_segments_add(&alternator->segments, record, false);
	}
	return rls_segments_add(&alternator->segments, record,
				record->site < alternator->mark_room &&
					alternator->marks[record->site]);
}

int rls_alternator_turned(struct rls_alternator *alternator, uint32_t tid,
			  const struct rls_queued_edge *edge)
{
	return rls_segments_turned(&alternator->segments, tid, edge);
}

/* ---- which sites are marks ---- */

static int read_hits(struct rls_alternator *alternator, size_t sites)
{
	_cleanup_free_ uint64_t *hits = calloc(sites + 1, sizeof(*hits));
	int r;

	if (sites > RLS_SITES_COUNTED)
		sites = RLS_SITES_COUNTED;
	if (!hits)
		return -ENOMEM;
	r = rls_kernel_site_hits(alternator->kernel, hits, sites);
	return r ? r : rls_site_use_hits(&alternator->use, hits, sites);
}

static int count_turned(const struct rls_marks *candidates)
{
	int count = 0;

	for (size_t i = 0; i < RLS_MARK_SLOTS / 64; i++)
		count += __builtin_popcountll(candidates->turned[i]);
	return count;
}

/* Sites that are never hit stay as they are. */
static int choose(struct rls_alternator *alternator)
{
	struct rls_site_use *use = &alternator->use;
	size_t marks = 0, others = 0;
	int r;

	for (uint32_t i = 0; i < use->count; i++) {
		if (use->sites[i].hits)
			use->sites[i].hit_ns = rls_kernel_site_cost_ns(alternator->kernel, i);
	}
	free(alternator->marks);
	alternator->marks = calloc(use->count + 1, sizeof(*alternator->marks));
	if (!alternator->marks)
		return -ENOMEM;
	alternator->mark_room = use->count;
	r = rls_marks_choose(&alternator->candidates, use, alternator->hit_ns,
			     (double)use->traced_ns / 1e9, alternator->marks);
	for (uint32_t i = 0; !r && i < use->count; i++) {
		marks += alternator->marks[i];
		others += use->sites[i].hits && !alternator->marks[i];
		if (use->sites[i].hits)
			r = rls_kernel_set_duty(alternator->kernel, i, alternator->marks[i] ?
						RLS_DUTY_ALWAYS : RLS_DUTY_WINDOWS);
	}
	rls_kernel_stop_counting(alternator->kernel);
	rls_debug("%zu sites stay on as marks, %zu go on and off; operations change in %d of %d slots",
		  marks, others, count_turned(&alternator->candidates), RLS_MARK_SLOTS);
	return r;
}

/* ---- on and off ---- */

static int end_stretch(struct rls_alternator *alternator, uint64_t time_ns)
{
	rls_debug("all but marks were %s from %" PRIu64 " to %" PRIu64, alternator->probed ? "on" : "off",
		  alternator->since_ns, time_ns);
	return rls_segments_stretch(&alternator->segments, alternator->since_ns, time_ns,
				    alternator->probed);
}

/* The stretch that ends now is told; the next begins once all is quiet. anew: sites are marks that
 * were none, or the other way round. */
static int turn(struct rls_alternator *alternator, uint64_t time_ns, bool first, bool anew)
{
	uint64_t edge_ns;
	int r = first ? 0 : end_stretch(alternator, time_ns);

	if (r)
		return r;
	if (first || anew)
		r = rls_kernel_regroup(alternator->kernel, &edge_ns);
	else if (alternator->probed)
		rls_kernel_close_window(alternator->kernel, &edge_ns);
	else
		r = rls_kernel_open_window(alternator->kernel, &edge_ns);
	alternator->probed = !alternator->probed;
	alternator->since_ns = rls_monotonic_ns() + SETTLE_NS;
	alternator->due_ns = alternator->since_ns +
			     rls_random_between(&alternator->random, STRETCH_NS_MIN, STRETCH_NS_MAX);
	return r;
}

/* The first look is over. */
static int begin(struct rls_alternator *alternator, uint64_t time_ns, size_t sites)
{
	int r;

	rls_site_use_cut(&alternator->use, time_ns - alternator->start_ns);
	r = read_hits(alternator, sites);
	rls_segments_cover(&alternator->segments, alternator->start_ns, SLOT_NS, RLS_MARK_SLOTS,
			   alternator->candidates.turned);
	alternator->by_operations = count_turned(&alternator->candidates) > 0;
	return r ? r : choose(alternator);
}

/* The machine is busier than it was, say. */
static int leave_operations(struct rls_alternator *alternator)
{
	alternator->by_operations = false;
	memset(alternator->candidates.turned, 0, sizeof(alternator->candidates.turned));
	return choose(alternator);
}

/* PyTorch's own ranges are no operations: what hits on them cost is found as of any other site, and
 * nothing of them is left in stretches without, where they would be amid cold code. Somebody's tell
 * pieces apart, so they are heard all the time. */
static int sort_ranges(struct rls_alternator *alternator)
{
	uint64_t own, others;

	rls_kernel_ranges_begun(alternator->kernel, &own, &others);
	return rls_kernel_window_ranges(alternator->kernel, own && !others);
}

int rls_alternator_tick(struct rls_alternator *alternator, uint64_t time_ns, size_t sites)
{
	bool first = !alternator->marks, anew;
	int r = 0;

	if (time_ns < alternator->due_ns)
		return 0;
	r = sort_ranges(alternator);
	if (r)
		return r;
	anew = alternator->by_operations && alternator->probed &&
	       rls_segments_need_marks(&alternator->segments);
	if (first)
		r = begin(alternator, time_ns, sites);
	else if (anew)
		r = leave_operations(alternator);
	return r ? r : turn(alternator, rls_monotonic_ns(), first, anew);
}

int rls_alternator_conclude(const struct rls_alternator *alternator, struct rls_delta_in_vivo *out)
{
	return rls_segments_conclude(&alternator->segments, out);
}
