/* Differences: from what the same pieces of work took longer with probes (matched_segments.h) to what hits
 * cost: in all, and in each part of the work. Pure.
 *
 * A part is what is done in one operation. Hits amid cold code cost more, so parts differ: by
 * 0.9 to 1.8 within one training job. A part's factor is its own as far as it is known, and the
 * whole's as far as it is not: (own - whole) is weighed by t^2 / (t^2 + s^2), where s is how well it
 * is known and t how far parts lie from the whole beyond that (empirical Bayes; Efron and Morris,
 * 1973). The whole's factor is the mean of theirs, weighted by what the hits of each cost.
 *
 * Pieces without hits take longer too, for hits elsewhere have driven what they need out of the
 * caches. A part that has hardly any hits has no factor of its own: the hits of the others are charged for it.
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
	                         * tenth of the factor where there is no second label to tell */
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
