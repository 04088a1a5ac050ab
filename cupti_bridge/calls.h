/* Calls: the CUDA calls that CUPTI records for us. They launch work on the GPU or wait for it, so
 * that work has the thread that launched it. The others are many and not needed.
 */
#ifndef RLS_CUPTI_CALLS_H
#define RLS_CUPTI_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* `domain` is RLS_CUPTI_RUNTIME or _DRIVER; `cbid` is CUPTI's number of the call in it. */
bool rls_call_launches(unsigned int domain, uint64_t cbid);

/* One of those that launch a graph. */
bool rls_call_launches_graph(unsigned int domain, uint64_t cbid);

/* CUPTI's synchronisation type of a call that does nothing but wait; 0: it does something else. */
unsigned int rls_call_waits(unsigned int domain, uint64_t cbid);

/* Visits the numbers of all others, and of calls that CUDA may come to have. */
void rls_calls_visit_others(unsigned int domain, void (*visit)(uint32_t cbid, void *context),
			    void *context);

#endif
