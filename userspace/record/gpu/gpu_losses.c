#include "userspace/record/gpu/gpu_losses.h"

#include <inttypes.h>

#include "analysis/event/bounded.h"

#define OVERHEAD_SHARE 0.01 /* of the recording: more is worth a word */
#define CUPTI_LAUNCH_NS                                                                            \
	4000 /* armed it takes 2.2 to 4.3 us of a launch, and jobs some more (analysis/correct/cupti_error.h) */

struct rls_gpu_left_out rls_gpu_left_out_of(const struct rls_cupti_batch *header)
{
	return (struct rls_gpu_left_out){header->dropped, header->refused, header->unpooled,
					 header->unclaimed};
}

bool rls_gpu_left_out_went_back(const struct rls_gpu_left_out *now,
				const struct rls_gpu_left_out *before)
{
	return now->dropped < before->dropped || now->refused < before->refused ||
	       now->unpooled < before->unpooled || now->unclaimed < before->unclaimed;
}

void rls_gpu_left_out_add(struct rls_gpu_left_out *into, const struct rls_gpu_left_out *base,
			  const struct rls_gpu_left_out *now)
{
	rls_add_bounded(&into->dropped, now->dropped - base->dropped);
	rls_add_bounded(&into->refused, now->refused - base->refused);
	rls_add_bounded(&into->unpooled, now->unpooled - base->unpooled);
	rls_add_bounded(&into->unclaimed, now->unclaimed - base->unclaimed);
}

void rls_gpu_losses_note_early(struct rls_gpu_losses *losses, uint64_t ns)
{
	losses->early += ns > 0;
	if (ns > losses->early_ns)
		losses->early_ns = ns;
}

/* The end of a recording, as its warnings need it. */
struct ending {
	const struct rls_gpu_losses *losses;
	struct rls_event_output *output;
	uint64_t start_ns, stop_ns;
};

static int losses_add(const struct ending *ending, const char *buffer, uint64_t dropped)
{
	return rls_event_output_loss(ending->output, ending->stop_ns, buffer, dropped);
}

static int warn_count(const struct ending *ending, uint64_t count, const char *what)
{

	if (!count)
		return 0;
	return rls_event_output_warn(ending->output, ending->stop_ns, "%" PRIu64 " %s", count,
				     what);
}

static int report_early(const struct ending *ending)
{

	if (ending->losses->early_ns < RLS_GPU_CLOCK_GRACE_NS)
		return 0;
	return rls_event_output_warn(
		ending->output, ending->stop_ns,
		"%" PRIu64 " pieces of GPU work lie before their launches, by up to %.0f us: "
		"CUPTI places the GPU's times no better than that on the CPU's clock",
		ending->losses->early, (double)ending->losses->early_ns / 1000);
}

/* The probes' cost is counted and bounded; CUPTI's is neither, and users are to know of it. */
static int report_launch_cost(const struct ending *ending)
{
	double recorded_ns = (double)(ending->stop_ns - ending->start_ns + 1);
	double share = (double)ending->losses->launches * CUPTI_LAUNCH_NS / recorded_ns;

	if (share < OVERHEAD_SHARE)
		return 0;
	return rls_event_output_warn(
		ending->output, ending->stop_ns,
		"CUPTI's own cost is in no budget: at 2 to 7 us a launch, as on an H100 and an "
		"H200, some %.0f%% of a thread's time for %" PRIu64 " launches",
		100 * share, ending->losses->launches);
}

static int report_overhead(const struct ending *ending)
{
	double share = (double)ending->losses->overhead_ns /
		       (double)(ending->stop_ns - ending->start_ns + 1);

	if (share < OVERHEAD_SHARE)
		return 0;
	return rls_event_output_warn(
		ending->output, ending->stop_ns,
		"CUPTI itself took %.3f s of the recorded processes' time (%.1f %%), which is "
		"part of the figures",
		(double)ending->losses->overhead_ns / 1e9, 100 * share);
}

int rls_gpu_losses_report(struct rls_gpu_losses *losses, struct rls_event_output *output,
			  uint64_t start_ns, uint64_t stop_ns, bool drained, uint64_t *batches)
{
	const struct ending ending = {losses, output, start_ns, stop_ns};
	int r = 0;

	if (losses->missed > *batches)
		*batches = losses->missed;
	rls_add_bounded(batches, losses->bad);
	rls_add_bounded(&losses->total.refused, losses->impossible);
	if (!drained)
		r = rls_event_output_warn(ending.output, ending.stop_ns,
					  "a CUPTI bridge did not hand over its last records: GPU "
					  "work of the last moments may be missing");
	if (!r)
		r = losses_add(&ending, "cupti", losses->total.dropped);
	if (!r)
		r = losses_add(&ending, "cupti_bridge", losses->total.unpooled);
	if (!r)
		r = losses_add(&ending, "gpu_impossible", losses->total.refused);
	if (!r)
		r = warn_count(&ending, losses->unplaced,
			       "launches were made by threads that are not known: their GPU work "
			       "has no operation");
	if (!r)
		r = warn_count(
			&ending, losses->unlaunched,
			"pieces of GPU work came of processes of whose launches CUPTI reported "
			"none: they have no operation");
	if (!r)
		r = report_early(&ending);
	if (!r)
		r = report_launch_cost(&ending);
	return r ? r : report_overhead(&ending);
}
