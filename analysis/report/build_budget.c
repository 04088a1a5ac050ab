/* Whether the recording kept its overhead budget. */
#include <math.h>

#include "analysis/report/builder.h"

/* It is kept over so long, and a shorter recording may spend all of it. */
#define BUDGET_PERIOD_NS 10000000000.0
#define BUDGET_EXCEEDED 1.25
void rls_build_budget(struct rls_builder *b)
{
	const struct rls_timeline *timeline = b->timeline;
	double budget = timeline->facts.budget.percent, spent = b->report->overhead.percent;
	double recorded_ns = (double)(b->report->end_ns - b->report->start_ns);
	bool brief = recorded_ns < BUDGET_PERIOD_NS;
	double limit = BUDGET_EXCEEDED * budget;

	if (!timeline->facts.budgeted || budget <= 0 || b->err)
		return;
	spent = fmax(spent, b->worst_thread_percent);
	if (!timeline->hits && brief && recorded_ns > 0)
		limit *= BUDGET_PERIOD_NS / recorded_ns;
	if (spent <= limit)
		return;
	b->err = rls_report_warn(b->report,
				 "%s took about %.1f %% of a thread's time, more than "
				 "--overhead-budget %g%%%s",
				 timeline->hits ? "the probes" : "samples", spent, budget,
				 brief ? ", which is kept over 10 s: this recording is shorter"
				       : "");
}

void rls_build_thread_cost(struct rls_builder *b, const struct rls_thread_entry *entry,
			   uint64_t cost_ns)
{
	double recorded_ns = (double)(b->report->end_ns - b->report->start_ns);
	double percent = 100 * (double)cost_ns / (double)entry->wall_ns;

	/* What came and went may have paid more: its share of a longer time is small. */
	if (entry->wall_ns && (double)entry->wall_ns >= fmin(BUDGET_PERIOD_NS, recorded_ns / 2))
		b->worst_thread_percent = fmax(b->worst_thread_percent, percent);
}
