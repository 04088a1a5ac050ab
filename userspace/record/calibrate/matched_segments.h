/* Segments: what a program's own hits cost it, from the same pieces of its work with and
 * without probes. Pure: records and times go in, a figure comes out.
 *
 *     probes   ▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁▁▁▁▁▔▔▔▔▔▔▔▔   on and off at random instants
 *     marks    a  b    a    b     a  b  a  b    a    b    entries of a few sites that stay on
 *              ├ab┤    ├─ab─┤     ├ab┤          ├─ab─┤
 *
 * A segment is what lies on one thread between two marks, labelled by the two sites. Where the
 * thread's operation changes one ends as well: the target says when, with probes and without, and
 * the label says in which operation it lies. That takes no hit, so where operations change often
 * there are no marks. When threads wait is told by itself; where it is not, it is not known on which side of
 * a turn they did, and no such piece is compared. So what lies between two marks is kept whole as well, whatever
 * operations it goes through, and compared where pieces tell of little. Segments of one label are the same work;
 * what they take longer while all sites are probed is what the hits in them cost. That as a share of what the
 * calibration says is the factor; only running time counts. Marks' own hits are on both sides, but not alike: by
 * themselves they find all caches cold, and cost so many times the calibration's figure (sparse.h), which is taken
 * off first. So do the hits by which ranges tell that the operation changes. Neighbouring stretches are compared with
 * each other, block by block, so that what the machine does meanwhile goes to both sides.
 *
 * This is delta calibration (RL-Scope, MLSys 2021, appendix C) within one run.
 */
#ifndef RLS_MATCHED_MATCHED_SEGMENTS_H
#define RLS_MATCHED_MATCHED_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "bpf/wire.h"
#include "userspace/record/calibrate/overhead_factor.h"
#include "userspace/record/calibrate/edge_queue.h"

/* Sites with larger ids cannot be marks. */
#define RLS_MARK_SITES 65536
#define RLS_SEGMENTS_MAX 1000000

struct rls_segment;
struct rls_stretch;

/* Zeroed but for hit_ns and excess_ns: none yet. */
struct rls_segments {
	double hit_ns;                  /* what a range's hit costs, by the calibration */
	double excess_ns;               /* as charging has it (density.h) */
	struct rls_index_map threads;   /* tid → struct thread of segments.c */
	/* By the time of their end; RLS_SEGMENTS_MAX at most. */
	struct rls_segment_list {
		struct rls_segment *items;
		size_t count, room;
	} pieces, wholes;               /* that end at turns too; at marks alone */
	struct rls_stretch *stretches;
	size_t stretch_count, stretch_room;
	struct rls_part parts[RLS_PARTS_MAX];   /* the first: outside any operation; the last: mixed */
	size_t part_count;
	size_t blind, blind_waited;     /* times without any record, and those with too much waiting untold */
};

void rls_segments_clear(struct rls_segments *segments);

/* A transition; is_mark: its site stays on, and its entries are marks. 0 or -ENOMEM. */
int rls_segments_add(struct rls_segments *segments, const struct rls_wire_category *record,
		     bool is_mark);

/* The thread's innermost operation changes: told before the records after it. 0 or -ENOMEM. */
int rls_segments_turned(struct rls_segments *segments, uint32_t tid,
			const struct rls_queued_edge *edge);

/* All sites, or only those of the marks, were probed from one instant to the other. In the
 * order of time. 0 or -ENOMEM. */
int rls_segments_stretch(struct rls_segments *segments, uint64_t from_ns, uint64_t to_ns,
			 bool probed);

/* The thread was off its CPU: told before the records after it. 0 or -ENOMEM. */
int rls_segments_away(struct rls_segments *segments, const struct rls_wire_absence *absence);

/* The slots of time from from_ns on that operations divide into pieces short enough to be compared
 * without any mark become 1 bits of words, beside those that are. */
void rls_segments_cover(const struct rls_segments *segments, uint64_t from_ns, uint64_t slot_ns,
			size_t slots, uint64_t *words);

/* Operations turn out not to do without marks: threads wait, and when they do is not told. */
bool rls_segments_need_marks(const struct rls_segments *segments);

/* -ENODATA while there is too little to compare; -ENOMEM. */
int rls_segments_conclude(const struct rls_segments *segments, struct rls_delta_in_vivo *out);

#endif
