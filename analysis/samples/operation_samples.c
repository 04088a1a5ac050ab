#include "analysis/samples/operation_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/event/sample_kind.h"
#include "analysis/samples/sample_totals.h"

void rls_operation_samples_free(struct rls_operation_samples *samples)
{
	while (samples) {
		struct rls_operation_samples *first = samples;

		samples = first->next;
		free(first);
	}
}

static struct rls_operation_samples *samples_of(struct rls_operation_samples **list,
						rls_string_id operation)
{
	struct rls_operation_samples *samples = *list;

	while (samples && samples->operation != operation)
		samples = samples->next;
	if (samples)
		return samples;
	samples = calloc(1, sizeof(*samples));
	if (!samples)
		return NULL;
	samples->operation = operation;
	samples->next = *list;
	*list = samples;
	return samples;
}

int rls_operation_samples_add(struct rls_operation_samples **list, rls_string_id operation,
			      enum rls_category category, bool inferred,
			      const struct rls_event *event)
{
	struct rls_operation_samples *samples = samples_of(list, operation);
	struct rls_sample_weights *weights;

	if (!samples)
		return -ENOMEM;
	weights = inferred ? &samples->inferred : &samples->seen;
	if (rls_sample_kind_waits(event->sample.kind)) {
		weights->waiting_ns[category] += (double)event->sample.ns;
		weights->variance_ns2[category] += rls_sample_variance_ns2(event);
	} else {
		weights->running[category]++;
	}
	return 0;
}
