/* GPU activity: the batches of the targets' CUPTI bridges become events.
 *
 *     RLS_WIRE_GPU_BATCH ─▶ batch_validate.h ─▶ per record:
 *         API      ─▶ LAUNCH, on the thread that called        (threads: gpu_thread.h)
 *         KERNEL … ─▶ GPU, clipped to the recording            (impossible times: counted)
 *         STATUS   ─▶ WARNING, a sentence for each trouble
 *     per batch: CUPTI's clock ─▶ GPU_CLOCK, once a second at most
 *     transitions, other than batches ─▶ cuda_calls.h
 *     at the end: what CUPTI, the bridge and we left out ─▶ LOSS (gpu_losses.h)
 *
 * Processes are kept in a list of its own, not in the table of targets: batches of a process arrive
 * for seconds after its end, when it is no target any more.
 *
 * The target writes a batch. It can spoil the GPU figures of its own process and nothing else:
 * memory is bounded per process (launches, threads) and over all (names). One thread.
 */
#ifndef RLS_GPU_ACTIVITY_H
#define RLS_GPU_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire/record.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/events/translate.h"

struct rls_cuda_calls;
struct rls_gpu;

/* Both borrowed. 0 or -ENOMEM. */
int rls_gpu_new(struct rls_event_output *output, const struct rls_translator *translator,
		struct rls_gpu **out);
void rls_gpu_free(struct rls_gpu *gpu);

/* Called when a launch is of a thread that is not known: takes the records of threads that the
 * kernel side has sent meanwhile, through rls_gpu_add. */
void rls_gpu_set_refresh(struct rls_gpu *gpu, void (*refresh)(void *context), void *context);

/* What copies moved is in the trace too, as GPU_COPY events. */
void rls_gpu_want_copies(struct rls_gpu *gpu);

/* What of the records is calls into CUDA; for whoever knows their sites. */
struct rls_cuda_calls *rls_gpu_calls(struct rls_gpu *gpu);

/* Recording has begun: what was over before is left out from now on, what was not is cut. */
void rls_gpu_begin(struct rls_gpu *gpu, uint64_t start_ns);

/* A record of the kernel side: a batch, a transition, or of threads and processes whose numbers
 * are to be known; others are none of its business. 0, or -errno from writing. */
int rls_gpu_add(struct rls_gpu *gpu, const struct rls_wire_header *record, size_t size);

/* The process has ended, or is not recorded any more; its last batches may be yet to come. */
void rls_gpu_ended(struct rls_gpu *gpu, uint32_t pid, uint64_t time_ns);
/* It runs another program, whose bridge numbers its batches anew. */
void rls_gpu_execed(struct rls_gpu *gpu, uint32_t pid);

/* Forgets what has ended a while ago. */
void rls_gpu_tick(struct rls_gpu *gpu, uint64_t now_ns);

/* Recording has ended: what begins later is left out, what ends later is cut. */
void rls_gpu_stop(struct rls_gpu *gpu, uint64_t stop_ns);
/* Whether every armed bridge has flushed since: nothing more can be of this recording. */
bool rls_gpu_is_drained(const struct rls_gpu *gpu);

/* Adds what was left out: LOSS events and warnings. batches: lost by the kernel side, replaced
 * by what the gaps between those that came tell, where that is more. */
int rls_gpu_report(struct rls_gpu *gpu, uint64_t *batches);

#endif
