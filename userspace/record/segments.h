/* Segments: what a program's own hits cost it, from the same pieces of its work with and
 * without probes. Pure: records and times go in, a figure comes out.
 *
 *     probes   ▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔   on and off at random instants
 *     marks    a  b    a    b     a  b  a  b    a    b    entries of a few sites that stay on
 *              ├ab┤    ├─ab─┤     ├ab┤          ├─ab─┤
 *
 * A segment is what lies on one thread between two marks, labelled by the two sites. Segments
 * of one label are the same work; what they take longer while all sites are probed is what the
 * hits in them cost. That as a share of what the calibration says is the factor; only running
 * time counts. Neighbouring stretches are compared with each other, block by block, so that
 * what the machine does meanwhile goes to both sides.
 *
 * This is delta calibration (RL-Scope, MLSys 2021, appendix C) within one run.
 */
#ifndef RLS_SEGMENTS_H
#define RLS_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/index_map.h"
#include "bpf/wire.h"

/* Sites with larger ids cannot be marks. */
#define RLS_MARK_SITES 65536
#define RLS_SEGMENTS_MAX 1000000

struct rls_segment;
struct rls_stretch;

/* Zeroed: none yet. */
struct rls_segments {
	struct rls_index_map threads;   /* tid → struct thread of segments.c */
	struct rls_segment *items;      /* by the time of their end; RLS_SEGMENTS_MAX at most */
	size_t count, room;
	struct rls_stretch *stretches;
	size_t stretch_count, stretch_room;
};

struct rls_delta_in_vivo {
	double factor;          /* what hits cost, as a share of what the calibration says */
	double error;           /* half width of its 95 % interval */
	double deviation;       /* half width of where 95 % of stretches of a second lie: the machine and
	                         * the work have their ups and downs, and a recording is one of them */
	double spread;          /* how far the factors of single labels lie from it beyond their noise: what
	                         * a part of the work may differ from the whole. Half width, 95 %; a
	                         * tenth of the factor where there is no second label to tell */
	double hit_ns;          /* what a hit cost */
	double inflation;       /* the time of the segments with probes, of that without */
	size_t segments;        /* compared */
	size_t labels, blocks;
};

void rls_segments_clear(struct rls_segments *segments);

/* A transition; is_mark: its site stays on, and its entries are marks. 0 or -ENOMEM. */
int rls_segments_add(struct rls_segments *segments, const struct rls_wire_category *record,
		     bool is_mark);

/* All sites, or only those of the marks, were probed from one instant to the other. In the
 * order of time. 0 or -ENOMEM. */
int rls_segments_stretch(struct rls_segments *segments, uint64_t from_ns, uint64_t to_ns,
			 bool probed);

/* -ENODATA while there is too little to compare; -ENOMEM. */
int rls_segments_conclude(const struct rls_segments *segments, struct rls_delta_in_vivo *out);

#endif
