/* Sample totals: what samples say, added up while a trace is swept.
 *
 *     FRAME ─▶ tree of frames: (function, file, line) under a caller
 *     SAMPLE ─▶ totals of (scope, frame, category, kind): how many, how long
 *             └▶ tally of (scope, category, kind, code), to compare the samples with the trace
 *
 * A scope is a process's phase and operation stack (timeline.h). Memory follows the number of
 * different places in the program, not the number of samples.
 */
#ifndef RLS_SAMPLE_TOTALS_H
#define RLS_SAMPLE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/category.h"
#include "analysis/event/event.h"

/* Ids of frames above this are nobody's: a recorder gives them out from 1. */
#define RLS_FRAME_ID_MAX (1U << 20)
/* No stack is followed further up. */
#define RLS_FRAME_DEPTH_MAX 512

struct rls_process;
struct rls_scope;

struct rls_frame_node {
	uint32_t parent; /* 0: none */
	uint32_t line;
	rls_string_id function, file;
	bool known;
	bool native;
	bool ruled; /* operation holds: operation_rules.h */
	rls_string_id operation; /* of a stack with this frame innermost */
};

/* Samples are independent: the variance of their sum is the sum of theirs. That of a sample at a
 * timer's tick is its period squared (counts are Poisson's); a wait that is always sampled has
 * none, and one of `every` at random has ns² × (1 - 1/every). */
double rls_sample_variance_ns2(const struct rls_event *event);

struct rls_sample_sum {
	uint64_t samples;
	uint64_t ns;
	double variance_ns2;
};

struct rls_sample_cell {
	struct rls_sample_cell *next;
	const struct rls_process *process;
	const struct rls_scope *scope;
	uint32_t frame; /* 0: nothing is known of the stack */
	enum rls_category category;
	enum rls_sample_kind kind;
	struct rls_sample_sum sum;
};

struct rls_sample_tally {
	struct rls_sample_tally *next;
	const struct rls_process *process;
	const struct rls_scope *scope;
	enum rls_category category;
	bool inferred; /* the category: tracing was off */
	enum rls_sample_kind kind;
	enum rls_category code;
	struct rls_sample_sum sum;
};

/* Zeroed is empty. */
struct rls_sample_totals {
	struct rls_frame_node *frames; /* by id */
	size_t frame_room;
	struct rls_index_map cell_map, tally_map;
	struct rls_sample_cell *cells;
	struct rls_sample_tally *tallies;
	uint64_t left_out; /* frames whose id nobody gives out */
	double running_ns,
		running_ns2; /* of all samples of running code: the sum, and that of the squares */
};

void rls_sample_totals_free(struct rls_sample_totals *totals);

/* What a sample of running code stands for, on average over time; 0 without any. */
double rls_sample_totals_period_ns(const struct rls_sample_totals *totals);

/* A FRAME event. 0 or -ENOMEM. */
int rls_sample_totals_frame(struct rls_sample_totals *totals, const struct rls_event *event);

/* A SAMPLE event of a thread in this scope and category, which may be an inferred one. 0 or -ENOMEM. */
int rls_sample_totals_add(struct rls_sample_totals *totals, const struct rls_event *event,
			  const struct rls_process *process, const struct rls_scope *scope,
			  enum rls_category category, bool inferred);

/* The frame of an id, NULL for 0 and for ids without a FRAME event. */
const struct rls_frame_node *rls_sample_totals_node(const struct rls_sample_totals *totals,
						    uint32_t id);

#endif
