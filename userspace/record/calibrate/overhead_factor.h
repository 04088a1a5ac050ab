/* Differences: from what the same pieces of work took longer with probes (segments.h) to what hits
 * cost: in all, and in each part of the work. Pure.
 *
 * A part is what is done in one operation. Hits amid cold code cost more, so parts differ: by
 * 0.9 to 1.8 within one training job. A part's factor is its own as far as it is known, and the
 * whole's as far as it is not: (own - whole) is weighed by t^2 / (t^2 + s^2), where s is how well it
 * is known and t how far parts lie from the whole beyond that (empirical Bayes; Efron and Morris,
 * 1973); farther where a part is hit less than others, for what their hits drive out of its caches is
 * paid by the few it has. The whole's factor is the mean of theirs, weighted by what the hits of each cost.
 *
 * Pieces without hits take longer too, for hits elsewhere have driven what they need out of the
 * caches: simulations of a training loop by 3 to 12 %. No hit in them can be charged for it, so of a part
 * that has hardly any it is told what that is a piece; it is no part of others' factors.
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
struct rls_difference {
	uint64_t label;
	uint32_t block, part;
	double count;                   /* of segments, both kinds */
	double plain_ns;                /* mean without probes, nor marks */
	double delta_ns, cost_ns, hits; /* means: what it is longer with, and all hits then */
	double marks_ns;                /* what marks are taken to have cost without other sites */
};

struct rls_part {
	rls_string_id operation;
	bool mixed;                     /* more than that one */
	double cost_ns;                 /* of all its hits, by the calibration */
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
	double compared_ns;     /* what hits in them cost, by the calibration */
	size_t labels, blocks;
	struct rls_part_cost {
		rls_string_id operation;
		/* Of its hits, as above; half width, 95 %, all in all: in a recording of a second, and in a long
		 * one. */
		double factor, error, lasting_error;
		/* What others' hits cost each piece; 0: its own tell. */
		double spill_ns, spill_error_ns, spill_lasting_error_ns;
	} parts[RLS_PARTS_MAX];         /* the factors of operations, where more than one is known */
	size_t part_count;
};

/* Sorts the differences, whose blocks are below RLS_BLOCKS_MAX. -ENODATA when they are too few. */
int rls_differences_conclude(struct rls_difference *differences, size_t count,
			     const struct rls_part *parts, size_t part_count,
			     struct rls_delta_in_vivo *out);

#endif
