/* Leave: unloads CUPTI after a recording, where the process's environment allows it.
 *
 * Switched off, CUPTI stays, and each launch takes 2 us longer, of 6.5, until the process ends. After cuptiFinalize()
 * launches take as long as before (both seen on an H200). NVIDIA recommends to call it where a call into CUDA ends, on
 * the thread that made the call, with no GPU work under way. So CUPTI reports the calls that wait for the GPU, and the
 * first one that succeeds is used. A call within the capture of a graph, which this might disturb, returns an error.
 *
 * CUDA graphs that were launched while CUPTI recorded outlive it. When CUPTI came back for the next recording, the job
 * ended with cudaErrorLaunchFailure (H200, CUDA 13.0). So CUPTI stays where it saw a graph, and the user must ask for it
 * to leave.
 *
 *     bridge's thread   begin ───────────────────────────▶ is_over, or cancel
 *     target's thread     └──▶ cudaStreamSynchronize ends: cuptiFinalize
 *
 * In between the bridge's thread does not call CUPTI.
 */
#ifndef RLS_CUPTI_LEAVE_H
#define RLS_CUPTI_LEAVE_H

#include "cupti_bridge/cupti.h"

/* By its version: frameworks report crashes with CUDA 11 and 12. */
bool rls_leave_is_possible(const struct rls_cupti *cupti);

/* What CUPTI is given to call for the subscriber. */
void rls_leave_callback(void *userdata, int domain, uint32_t cbid, const void *data);

/* Everything is switched off and flushed, and CUPTI's time is what rls_clock_for_cupti() says. cupti must stay until
 * it is over. */
void rls_leave_begin(const struct rls_cupti *cupti, void *subscriber);

/* Whether it has left or will not. In the second case it must be cancelled. */
bool rls_leave_is_over(void);

/* CUPTI shall stay. False if it has left already, and the subscriber with it. Waits for a thread that is unloading it. */
bool rls_leave_cancel(const struct rls_cupti *cupti, void *subscriber);

#endif
