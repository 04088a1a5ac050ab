#include "userspace/record/calibrate/probe_toggle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_windows.h"
#include "userspace/base/clock.h"
#include "userspace/base/jitter.h"
#include "userspace/base/log.h"

/* How long all is traced at first, to see which sites are hit. */
#define FIRST_NS 2560000000ULL
/* A stretch, drawn evenly between: long enough for many segments beside what switching
 * takes, short enough for the machine to stay as it is from one to the next. */
#define STRETCH_NS_MIN 150000000ULL
#define STRETCH_NS_MAX 450000000ULL
/* What a switch leaves behind (pages copied, translations gone) is over by then. */
#define SETTLE_NS 20000000ULL

struct rls_probe_toggle {
	struct rls_kernel *kernel;
	struct rls_matched_segments segments;
	bool begun; /* the first look is over */
	bool probed;
	uint64_t since_ns, due_ns;
	uint64_t random;
};

int rls_probe_toggle_new(struct rls_kernel *kernel, struct rls_calibrated hit,
			 struct rls_probe_toggle **out)
{
	struct rls_probe_toggle *alternator = calloc(1, sizeof(*alternator));

	if (!alternator)
		return -ENOMEM;
	alternator->kernel = kernel;
	alternator->segments.excess_ns = rls_calibrated_excess(&hit);
	*out = alternator;
	return 0;
}

void rls_probe_toggle_free(struct rls_probe_toggle *alternator)
{
	if (!alternator)
		return;
	rls_matched_segments_clear(&alternator->segments);
	free(alternator);
}

void rls_probe_toggle_start(struct rls_probe_toggle *alternator, uint64_t time_ns)
{
	alternator->random = time_ns | 1;
	alternator->due_ns = time_ns + FIRST_NS;
	alternator->probed = true;
}

int rls_probe_toggle_add(struct rls_probe_toggle *alternator, const struct rls_wire_header *record,
			 size_t size)
{
	if (record->kind == RLS_WIRE_ABSENCE && size >= sizeof(struct rls_wire_absence))
		return rls_matched_segments_away(&alternator->segments, (const void *)record);
	if (record->kind == RLS_WIRE_CATEGORY && size >= sizeof(struct rls_wire_category))
		return rls_matched_segments_add(&alternator->segments, (const void *)record);
	return 0;
}

int rls_probe_toggle_turned(struct rls_probe_toggle *alternator, uint32_t tid,
			    const struct rls_queued_edge *edge)
{
	return rls_matched_segments_turned(&alternator->segments, tid, edge);
}

/* ---- on and off ---- */

/* The first look is over: sites that were hit go on and off, all others stay as they are. */
static int probe_toggle_begin(struct rls_probe_toggle *alternator, size_t sites)
{
	_cleanup_free_ uint64_t *hits = calloc(sites + 1, sizeof(*hits));
	size_t windowed = 0;
	int r;

	if (sites > RLS_SITES_COUNTED)
		sites = RLS_SITES_COUNTED;
	r = hits ? rls_kernel_site_hits(alternator->kernel, hits, sites) : -ENOMEM;
	for (uint32_t i = 0; !r && i < sites; i++) {
		if (!hits[i])
			continue;
		r = rls_kernel_set_duty(alternator->kernel, i, RLS_DUTY_WINDOWS);
		windowed++;
	}
	rls_kernel_stop_counting(alternator->kernel);
	rls_debug("%zu sites go on and off", windowed);
	return r;
}

static int end_stretch(struct rls_probe_toggle *alternator, uint64_t time_ns)
{
	rls_debug("sites were %s from %" PRIu64 " to %" PRIu64, alternator->probed ? "on" : "off",
		  alternator->since_ns, time_ns);
	return rls_matched_segments_stretch(&alternator->segments, alternator->since_ns, time_ns,
					    alternator->probed);
}

/* The stretch that ends now is complete; the next begins once the switch is over. */
static int probe_toggle_switch(struct rls_probe_toggle *alternator, uint64_t time_ns)
{
	bool first = !alternator->begun;
	uint64_t edge_ns;
	int r = first ? 0 : end_stretch(alternator, time_ns);

	if (r)
		return r;
	if (first)
		r = rls_kernel_regroup(alternator->kernel, &edge_ns);
	else if (alternator->probed)
		rls_kernel_close_window(alternator->kernel, &edge_ns);
	else
		r = rls_kernel_open_window(alternator->kernel, &edge_ns);
	alternator->begun = true;
	alternator->probed = !alternator->probed;
	alternator->since_ns = rls_monotonic_ns() + SETTLE_NS;
	alternator->due_ns =
		alternator->since_ns +
		rls_random_between(&alternator->random, STRETCH_NS_MIN, STRETCH_NS_MAX);
	return r;
}

/* PyTorch's own ranges are no operations: what hits on them cost is found as of any other site, and
 * nothing of them is left in stretches without, where they would be amid cold code. Somebody's tell
 * pieces apart, so they are always on. */
static int sort_ranges(struct rls_probe_toggle *alternator)
{
	uint64_t own, others;

	rls_kernel_ranges_begun(alternator->kernel, &own, &others);
	return rls_kernel_window_ranges(alternator->kernel, own && !others);
}

int rls_probe_toggle_tick(struct rls_probe_toggle *alternator, uint64_t time_ns, size_t sites)
{
	int r;

	if (time_ns < alternator->due_ns)
		return 0;
	r = sort_ranges(alternator);
	if (!r && !alternator->begun)
		r = probe_toggle_begin(alternator, sites);
	return r ? r : probe_toggle_switch(alternator, rls_monotonic_ns());
}

int rls_probe_toggle_conclude(const struct rls_probe_toggle *alternator,
			      struct rls_delta_in_vivo *out)
{
	return rls_matched_segments_conclude(&alternator->segments, out);
}
