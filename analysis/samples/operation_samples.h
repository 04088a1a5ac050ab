/* Operation samples: the samples of a scope without an operation, by the operation that rules
 * (operation_rules.h) find on their stacks. analysis/estimate/sampled_operations.h divides by them.
 */
#ifndef RLS_OPERATION_SAMPLES_H
#define RLS_OPERATION_SAMPLES_H

#include <stdbool.h>

#include "analysis/event/event.h"

/* By category. */
struct rls_sample_weights {
	double running[RLS_CATEGORY_MAX];
	double waiting_ns[RLS_CATEGORY_MAX];
	double variance_ns2[RLS_CATEGORY_MAX]; /* of the waits */
};

struct rls_operation_samples {
	struct rls_operation_samples *next;
	rls_string_id operation;
	struct rls_sample_weights seen, inferred; /* inferred: by inferred categories */
};

void rls_operation_samples_free(struct rls_operation_samples *samples);

/* A sample of a thread; operation 0: no rule fits. inferred: the category is that of a category sample. The list
 * owns what is added. 0 or -ENOMEM. */
int rls_operation_samples_add(struct rls_operation_samples **list, rls_string_id operation,
			      enum rls_category category, bool inferred,
			      const struct rls_event *event);

#endif
