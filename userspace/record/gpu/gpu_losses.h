/* GPU losses: what of the targets' GPU work was left out or is uncertain, and the words for it.
 *
 *     batches, records ─▶ counts ─▶ at the end: LOSS events and warnings
 *
 * CUPTI and the bridge count what they leave out, for each process and since it began; the recorder
 * counts what it refuses. One thread.
 */
#ifndef RLS_GPU_LOSSES_H
#define RLS_GPU_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "cupti_bridge/batch.h"
#include "userspace/record/events/event_output.h"

#define RLS_GPU_CLOCK_GRACE_NS 10000 /* what a GPU's time on our clock may be wrong by */

/* What was left out on the way, since the process began. */
struct rls_gpu_left_out {
	uint64_t dropped, refused, unpooled, unclaimed;
};

struct rls_gpu_left_out rls_gpu_left_out_of(const struct rls_cupti_batch *header);
/* Whether a count is smaller than before: a new program counts from 0. */
bool rls_gpu_left_out_went_back(const struct rls_gpu_left_out *now,
				const struct rls_gpu_left_out *before);
/* Adds what came since base. */
void rls_gpu_left_out_add(struct rls_gpu_left_out *into, const struct rls_gpu_left_out *base,
			  const struct rls_gpu_left_out *now);

/* Zeroed: nothing. */
struct rls_gpu_losses {
	struct rls_gpu_left_out total; /* of what has ended or begun anew */
	uint64_t impossible; /* records that we refused */
	uint64_t missed; /* batches, by the gaps between their numbers */
	uint64_t bad; /* batches refused whole */
	uint64_t unplaced; /* launches of threads that there are not */
	uint64_t early, early_ns; /* work that lies before its launch, and by how much at most */
	uint64_t unlaunched; /* work of processes without any reported launch */
	uint64_t launches; /* reported */
	uint64_t overhead_ns; /* CUPTI's own, as far as it reports it */
};

/* A piece of work lies so long before its launch; 0: it does not. */
void rls_gpu_losses_note_early(struct rls_gpu_losses *losses, uint64_t ns);

/* Writes LOSS events and warnings at the end of a recording that lasted so long. drained: every
 * bridge has handed its last records over. batches: as in rls_gpu_report. 0 or -errno. */
int rls_gpu_losses_report(struct rls_gpu_losses *losses, struct rls_event_output *output,
			  uint64_t start_ns, uint64_t stop_ns, bool drained, uint64_t *batches);

#endif
