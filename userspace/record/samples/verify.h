/* Verify: a sampler's view of the traced threads, held against their states.
 *
 *     sample (address, state) ─▶ leaf of the address ─▶ counts[state][leaf]
 *                                                          │ at the end
 *                                                          └─▶ sentences (verify_text.h)
 *
 * The blind spot is what the probes miss: samples in a library with a role while the
 * state says python. It is a share of the samples that can be judged: taken in user mode,
 * and not in what a probe itself costs.
 */
#ifndef RLS_VERIFY_H
#define RLS_VERIFY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "userspace/record/samples/code_kind.h"
#include "userspace/record/samples/code_map.h"
#include "userspace/record/events/event_output.h"

#define RLS_VERIFY_HZ 499

struct rls_verify_counts {
	uint64_t by[RLS_CATEGORY_MAX][RLS_LEAF_MAX]; /* samples, by the thread's state and leaf */
	uint64_t untraced;          /* of threads that never met a probe: they have no state */
	uint64_t unplaced;          /* of processes that were gone before they could be asked */
};

struct rls_verify;

/* places: borrowed, stays. */
int rls_verify_new(struct rls_places *places, struct rls_verify **out);
void rls_verify_free(struct rls_verify *verify);

/* One RLS_WIRE_SAMPLE record. 0 or -ENOMEM. */
int rls_verify_add(struct rls_verify *verify, const struct rls_wire_header *record, size_t size);

/* Says on stderr and in the trace what was found. 0 or -errno. */
int rls_verify_report(struct rls_verify *verify, struct rls_trace_output *output, uint64_t time_ns);

#endif
