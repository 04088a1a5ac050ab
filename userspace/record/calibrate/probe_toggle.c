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
#define TOGGLE_NS 20000000ULL

struct rls_probe_toggle {
	struct rls_kernel *kernel;
	struct rls_matched_segments segments;
	bool begun; /* the first check is over */
	bool probed;
	uint64_t since_ns, due_ns;
	uint64_t random;
};

int rls_probe_toggle_new(struct rls_kernel *kernel, struct rls_calibrated hit,
			 struct rls_probe_toggle **out)
{
	struct rls_probe_toggle *toggle = calloc(1, sizeof(*toggle));

	if (!toggle)
		return -ENOMEM;
	toggle->kernel = kernel;
	toggle->segments.excess_ns = rls_calibrated_excess(&hit);
	*out = toggle;
	return 0;
}

void rls_probe_toggle_free(struct rls_probe_toggle *toggle)
{
	if (!toggle)
		return;
	rls_matched_segments_clear(&toggle->segments);
	free(toggle);
}

void rls_probe_toggle_start(struct rls_probe_toggle *toggle, uint64_t time_ns)
{
	toggle->random = time_ns | 1;
	toggle->due_ns = time_ns + FIRST_NS;
	toggle->probed = true;
}

int rls_probe_toggle_add(struct rls_probe_toggle *toggle, const struct rls_wire_header *record,
			 size_t size)
{
	if (record->kind == RLS_WIRE_OFF_CPU && size >= sizeof(struct rls_wire_off_cpu))
		return rls_matched_segments_away(&toggle->segments, (const void *)record);
	if (record->kind == RLS_WIRE_CATEGORY && size >= sizeof(struct rls_wire_category))
		return rls_matched_segments_add(&toggle->segments, (const void *)record);
	return 0;
}

int rls_probe_toggle_turned(struct rls_probe_toggle *toggle, uint32_t tid,
			    const struct rls_queued_edge *edge)
{
	return rls_matched_segments_turned(&toggle->segments, tid, edge);
}

/* ---- on and off ---- */

/* the first check is over: sites that were hit go on and off, all others stay as they are. */
static int probe_toggle_begin(struct rls_probe_toggle *toggle, size_t sites)
{
	_cleanup_free_ uint64_t *hits = calloc(sites + 1, sizeof(*hits));
	size_t windowed = 0;
	int r;

	if (sites > RLS_SITES_COUNTED)
		sites = RLS_SITES_COUNTED;
	r = hits ? rls_kernel_site_hits(toggle->kernel, hits, sites) : -ENOMEM;
	for (uint32_t i = 0; !r && i < sites; i++) {
		if (!hits[i])
			continue;
		r = rls_kernel_set_duty(toggle->kernel, i, RLS_DUTY_WINDOWS);
		windowed++;
	}
	rls_kernel_stop_counting(toggle->kernel);
	rls_debug("%zu sites go on and off", windowed);
	return r;
}

static int end_stretch(struct rls_probe_toggle *toggle, uint64_t time_ns)
{
	rls_debug("sites were %s from %" PRIu64 " to %" PRIu64, toggle->probed ? "on" : "off",
		  toggle->since_ns, time_ns);
	return rls_matched_segments_stretch(&toggle->segments, toggle->since_ns, time_ns,
					    toggle->probed);
}

/* The stretch that ends now is complete; the next begins once the switch is over. */
static int probe_toggle_switch(struct rls_probe_toggle *toggle, uint64_t time_ns)
{
	bool first = !toggle->begun;
	uint64_t edge_ns;
	int r = first ? 0 : end_stretch(toggle, time_ns);

	if (r)
		return r;
	if (first)
		r = rls_kernel_regroup(toggle->kernel, &edge_ns);
	else if (toggle->probed)
		rls_kernel_close_window(toggle->kernel, &edge_ns);
	else
		r = rls_kernel_open_window(toggle->kernel, &edge_ns);
	toggle->begun = true;
	toggle->probed = !toggle->probed;
	toggle->since_ns = rls_monotonic_ns() + TOGGLE_NS;
	toggle->due_ns = toggle->since_ns +
			 rls_random_between(&toggle->random, STRETCH_NS_MIN, STRETCH_NS_MAX);
	return r;
}

/* PyTorch's own ranges are no operations: what hits on them cost is found as of any other site, and
 * nothing of them is left in stretches without, where they would be amid cold code. Somebody's tell
 * pieces apart, so they are always on. */
static int sort_ranges(struct rls_probe_toggle *toggle)
{
	uint64_t own, others;

	rls_kernel_ranges_begun(toggle->kernel, &own, &others);
	return rls_kernel_window_ranges(toggle->kernel, own && !others);
}

int rls_probe_toggle_tick(struct rls_probe_toggle *toggle, uint64_t time_ns, size_t sites)
{
	int r;

	if (time_ns < toggle->due_ns)
		return 0;
	r = sort_ranges(toggle);
	if (!r && !toggle->begun)
		r = probe_toggle_begin(toggle, sites);
	return r ? r : probe_toggle_switch(toggle, rls_monotonic_ns());
}

int rls_probe_toggle_conclude(const struct rls_probe_toggle *toggle, struct rls_delta_in_vivo *out)
{
	return rls_matched_segments_conclude(&toggle->segments, out);
}
