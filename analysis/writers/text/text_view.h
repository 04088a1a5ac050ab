/* Views: a report's rows summed up for one table of the text form. */
#ifndef RLS_TEXT_VIEW_H
#define RLS_TEXT_VIEW_H

#include "analysis/writers/write.h"

/* What a table's lines are labelled by. */
struct rls_view_key {
	uint32_t tid; /* 0 unless the report is grouped by thread */
	const char *label; /* operation, phase, or "" */
};

struct rls_view_line {
	struct rls_view_key key;
	enum rls_category category;
	uint64_t wall_ns;
	uint64_t on_cpu_ns;
	uint64_t corrected_ns;
	struct rls_row_error error;
	uint64_t error_ns; /* of which it follows */
	uint64_t cpu_gpu_ns; /* of wall_ns, with the GPU busy */
	uint64_t order_ns; /* what all lines of this key are sorted by */
};

/* Lines of one key stand together, keys in the order asked for, lines by falling time. */
struct rls_view {
	struct rls_view_line *lines;
	size_t count;
	struct rls_view_line total;
	uint64_t gpu_alone_ns; /* GPU time without a thread: in no line */
};

struct rls_view_transition {
	struct rls_view_key key;
	enum rls_category from;
	enum rls_category to;
	uint64_t count; /* or RLS_COUNT_UNKNOWN */
	uint64_t count_error; /* half width */
	enum rls_method method; /* the worst of what is in it */
};

/* The threads' time of one process, or of all together (pid NULL). 0, or -ENOMEM. */
int rls_view_breakdown(const struct rls_report *report, const uint32_t *pid, enum rls_sort sort,
		       struct rls_view *out);
void rls_view_free(struct rls_view *view);

/* Adds the figures of one line to another's; `of` says what the sum is over. */
void rls_view_line_add(struct rls_view_line *into, const struct rls_view_line *line,
		       enum rls_error_of of);

bool rls_view_key_equal(const struct rls_view_key *a, const struct rls_view_key *b);

/* The transitions of one process or of all, most frequent first. 0, or -ENOMEM; the caller
 * frees *out. */
int rls_view_transitions(const struct rls_report *report, const uint32_t *pid,
			 struct rls_view_transition **out, size_t *count);

#endif
