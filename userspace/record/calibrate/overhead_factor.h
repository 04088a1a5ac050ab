/* Overhead factor: from the extra time that the same work takes with probes (matched_segments.h)
 * to the cost of hits: in all, and in each part of the work. Pure.
 *
 * A part is the work of one operation. Hits amid cold code cost more, so parts differ: by 0.9 to
 * 1.8 within one training job. A part's own factor counts as far as it is known, and the factor of
 * the whole for the rest: (own - whole) is weighed by t^2 / (t^2 + s^2). Here s is the standard
 * error of the part's factor, and t is the spread of parts around the whole beyond that (empirical
 * Bayes; Efron and Morris, 1973). The factor of the whole is the mean of the parts', weighted by
 * the cost of their hits.
 *
 * Segments without hits take longer too: hits elsewhere have driven their code and data out of the
 * caches. A part with hardly any hits has no factor of its own; its extra time is charged to the
 * hits of the others.
 */
#ifndef RLS_OVERHEAD_FACTOR_H
#define RLS_OVERHEAD_FACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"

/* Stretches of time that are compared each for itself. */
#define RLS_BLOCKS_MIN 5
#define RLS_BLOCKS_MAX 64
#define RLS_PARTS_MAX 32

/* What the segments of one label in one block took longer with probes. */
struct rls_overhead_factor {
	uint64_t label;
	uint32_t block, part;
	double count; /* of segments, both kinds */
	double plain_ns; /* mean without probes */
	double delta_ns, cost_ns, hits; /* means: what it is longer with, and the hits more */
};

struct rls_part {
	rls_string_id operation;
	bool mixed; /* more than that one */
	double cost_ns; /* of all its hits, by the calibration */
};

struct rls_delta_in_vivo {
	double factor; /* what hits cost, as a share of what the calibration says */
	double error; /* half width of its 95 % interval */
	double deviation; /* half width of where 95 % of stretches of a second lie: the machine and
	                         * the work have their ups and downs, and a recording is one of them */
	double spread; /* how far the factors of single labels lie from it beyond their noise: what
	                         * a part of the work may differ from the whole. Half width, 95 %; a
	                         * tenth of the factor where there is no second label */
	double hit_ns; /* what a hit cost */
	double inflation; /* the time of the segments with probes, of that without */
	size_t segments; /* compared */
	size_t labels, blocks;
	struct rls_part_cost {
		rls_string_id operation;
		double factor,
			error; /* of its hits, as above; half width, 95 %, all in all, in a recording of a second */
	} parts[RLS_PARTS_MAX]; /* the factors of operations, where more than one is known */
	size_t part_count;
};

/* Sorts the differences, whose blocks are below RLS_BLOCKS_MAX. -ENODATA when they are too few. */
int rls_overhead_factors_conclude(struct rls_overhead_factor *differences, size_t count,
				  const struct rls_part *parts, size_t part_count,
				  struct rls_delta_in_vivo *out);

#endif
