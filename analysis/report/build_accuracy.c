/* Warnings about how far the figures can be trusted, found from the report itself. */
#include <inttypes.h>
#include <math.h>

#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/builder.h"

/* --- the budget --------------------------------------------------------------------- */

/* It is kept over so long, and a shorter recording may spend all of it. */
#define BUDGET_PERIOD_NS 10000000000.0
#define BUDGET_EXCEEDED 1.25
static void warn_of_budget(struct rls_builder *b)
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

/* --- what no probe saw -------------------------------------------------------------- */

/* Of what ran while everything was traced. In a job whose functions are all probed it is below a
 * hundredth, where a library was loaded late a few. */
#define UNSEEN_MAX 0.1

struct unseen {
	uint64_t all_ns;
	uint64_t ns; /* in a library with a role */
	double variance_ns2; /* of ns */
};

/* Python code while nothing is known yet is no call that was missed. */
static bool is_missed(const struct rls_sample_tally *tally)
{
	return rls_build_is_unseen(tally) && (tally->category != RLS_CATEGORY_UNKNOWN ||
					      (tally->kind != RLS_SAMPLE_PYTHON && tally->code &&
					       tally->code != RLS_CATEGORY_PYTHON));
}

static struct unseen unseen_of(const struct rls_builder *b, const struct rls_process *process)
{
	struct unseen found = {0};

	for (const struct rls_sample_tally *t = b->timeline->samples.tallies; t; t = t->next) {
		if (t->process != process || t->guessed || rls_sample_kind_waits(t->kind))
			continue;
		rls_add_bounded(&found.all_ns, t->sum.ns);
		if (!is_missed(t))
			continue;
		rls_add_bounded(&found.ns, t->sum.ns);
		found.variance_ns2 += t->sum.variance_ns2;
	}
	return found;
}

static void warn_of_unseen(struct rls_builder *b, const struct rls_process *process)
{
	struct unseen found = unseen_of(b, process);
	double limit_ns = UNSEEN_MAX * (double)found.all_ns;
	double error_ns = (double)rls_interval_95_ns(found.variance_ns2);

	if (!found.ns || (double)found.ns <= limit_ns ||
	    (double)found.ns - error_ns <= limit_ns / 2 || b->err)
		return;
	b->err = rls_report_warn(
		b->report,
		"process %" PRIu32 ": %.0f %% of the samples that were taken while everything was "
		"traced lie in code that the trace did not see entered (unseen): the time of such "
		"calls counts as their caller's, and they are in no count",
		process->pid, 100 * (double)found.ns / (double)found.all_ns);
}

void rls_build_accuracy(struct rls_builder *b)
{
	warn_of_budget(b);
	for (const struct rls_process *p = b->timeline->processes; p && !b->err; p = p->next)
		warn_of_unseen(b, p);
}
