/* Matched segments: what a program's own hits cost it, from the same pieces of its work with and
 * without probes. Pure: records and times go in, a factor comes out.
 *
 *     probes       ▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▔▔   on and off at random instants
 *     operations   a  b  a    b    a    b a  b a  b  a    b
 *                  ├──┼──┤    ├────┤      ├──┼─┤            segments
 *
 * A segment lies on one thread between two changes of its innermost operation. The target's
 * annotations say when these are, with probes and without; only ranges (record_function) need a
 * hit. The label of a segment is its operation with the ones before and after it. Segments of one
 * label are the same work. The extra time that they take while sites are probed is the cost of
 * their hits. The factor is that cost divided by what the calibration expects. Only running time
 * counts: a segment is left out if a thread may have waited on either side of its ends.
 * Neighbouring stretches are compared with each other, block by block, so that other load on the
 * machine affects both sides.
 *
 * This is delta calibration (RL-Scope, MLSys 2021, appendix C) within one run.
 */
#ifndef RLS_MATCHED_MATCHED_SEGMENTS_H
#define RLS_MATCHED_MATCHED_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "bpf/wire/record.h"
#include "userspace/record/calibrate/overhead_factor.h"
#include "userspace/record/cost/edge_queue.h"

#define RLS_SEGMENTS_MAX 1000000

struct rls_segment;
struct rls_stretch;

/* Zeroed but for excess_ns: none yet. */
struct rls_matched_segments {
	double excess_ns; /* as charging has it (hit_cost_model.h) */
	struct rls_index_map threads; /* tid → struct thread of matched_segments.c */
	/* By the time of their end; RLS_SEGMENTS_MAX at most. */
	struct rls_segment *items;
	size_t count, room;
	struct rls_stretch *stretches;
	size_t stretch_count, stretch_room;
	struct rls_part
		parts[RLS_PARTS_MAX]; /* the first: outside any operation; the last: mixed */
	size_t part_count;
};

void rls_matched_segments_clear(struct rls_matched_segments *segments);

/* A transition. 0 or -ENOMEM. */
int rls_matched_segments_add(struct rls_matched_segments *segments,
			     const struct rls_wire_category *record);

/* The thread's innermost operation changes: call this before the records after it. 0 or -ENOMEM. */
int rls_matched_segments_turned(struct rls_matched_segments *segments, uint32_t tid,
				const struct rls_queued_edge *edge);

/* Sites were probed, or were not, from one instant to the other. In the order of time. 0 or -ENOMEM. */
int rls_matched_segments_stretch(struct rls_matched_segments *segments, uint64_t from_ns,
				 uint64_t to_ns, bool probed);

/* The thread was off its CPU: call this before the records after it. 0 or -ENOMEM. */
int rls_matched_segments_away(struct rls_matched_segments *segments,
			      const struct rls_wire_off_cpu *period);

/* -ENODATA while there is too little to compare; -ENOMEM. */
int rls_matched_segments_conclude(const struct rls_matched_segments *segments,
				  struct rls_delta_in_vivo *out);

#endif
