/* Leave: has CUPTI leave the process again, where the process's environment says that it may.
 *
 * Switched off it stays, and each launch goes on taking some 2 us longer, of 6.5, until the process ends. cuptiFinalize()
 * takes it out: after it launches take what they did before (both seen on an H200). By NVIDIA's word it is safest
 * called where a call into CUDA ends, on the thread that made it, with nothing of the GPU's under way. So CUPTI is asked
 * to tell of the calls that wait for the GPU, and the first one that ends well is it; one within the capture of a graph,
 * which it might spoil, ends in an error.
 *
 * CUDA graphs that were launched while CUPTI recorded outlive it: when it came back for the next recording, the job ended
 * by cudaErrorLaunchFailure (H200, CUDA 13.0). It stays where it saw any, and only who knows the job asks for it to go.
 *
 *     bridge's thread   begin ───────────────────────────▶ is_over, or cancel
 *     target's thread     └──▶ cudaStreamSynchronize ends: cuptiFinalize
 *
 * In between the bridge's thread calls nothing of CUPTI.
 */
#ifndef RLS_CUPTI_LEAVE_H
#define RLS_CUPTI_LEAVE_H

#include "cupti_bridge/cupti.h"

/* By its version: frameworks tell of crashes with CUDA 11 and 12. */
bool rls_leave_is_possible(const struct rls_cupti *cupti);

/* What CUPTI is given to call for the subscriber. */
void rls_leave_callback(void *userdata, int domain, uint32_t cbid, const void *data);

/* Everything is switched off and flushed, and CUPTI's time is what rls_clock_for_cupti() says. cupti must stay until
 * it is over. */
void rls_leave_begin(const struct rls_cupti *cupti, void *subscriber);

/* Has it left, or will it not? Then too it is to be cancelled. */
bool rls_leave_is_over(void);

/* It is to stay, unless it has left, and the subscriber with it: then false. A thread that is about it is waited for. */
bool rls_leave_cancel(const struct rls_cupti *cupti, void *subscriber);

#endif
