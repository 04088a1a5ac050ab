#include "analysis/estimate/estimate_untraced.h"

#include "analysis/estimate/roleless_code.h"
#include "analysis/estimate/sampled_operations.h"
#include "analysis/estimate/untraced_time.h"

static int estimate_process(struct rls_timeline *timeline, struct rls_process *process)
{
	struct rls_sample_pair others;
	int err = 0;

	rls_untraced_time_pool(process, &others);
	for (struct rls_thread *t = process->threads; !err && t; t = t->next) {
		rls_roleless_code_divide(t);
		err = rls_untraced_time_divide(timeline, t, &others);
		if (!err)
			err = rls_sampled_operations_divide(timeline, t);
	}
	return err;
}

int rls_estimate_untraced(struct rls_timeline *timeline)
{
	int err = 0;

	for (struct rls_process *p = timeline->processes; !err && p; p = p->next)
		err = estimate_process(timeline, p);
	return err;
}
