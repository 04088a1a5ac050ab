#include "analysis/estimate/estimate_untraced.h"

#include "analysis/estimate/sampled_operations.h"
#include "analysis/estimate/untraced_time.h"

int rls_estimate_untraced(struct rls_timeline *timeline)
{
	int err = 0;

	for (struct rls_process *p = timeline->processes; p; p = p->next) {
		for (struct rls_thread *t = p->threads; !err && t; t = t->next) {
			err = rls_untraced_time_divide(timeline, t);
			if (!err)
				err = rls_sampled_operations_divide(timeline, t);
		}
	}
	return err;
}
