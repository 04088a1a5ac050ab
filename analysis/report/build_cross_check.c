/* Samples held against the trace: running time by category, as traced and as sampled, and
 * what samples say of either. Where everything is traced the two differ by chance alone; what
 * they found in code of another category the probes did not see, and what they found at
 * probed addresses the probes cost. */
#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/builder.h"

static struct rls_check_row *row_of(struct rls_builder *b, const struct rls_process *process,
				    enum rls_category category)
{
	struct rls_check_row *row;

	for (size_t i = 0; i < b->report->check_count; i++) {
		row = &b->report->checks[i];
		if (row->pid == process->pid && row->category == category)
			return row;
	}
	row = rls_build_row(b, RLS_TABLE_CROSS_CHECK);
	if (row) {
		row->pid = process->pid;
		row->category = category;
		row->few_ns = rls_build_few_ns(b, process);
		row->error_ns = rls_interval_95_ns(0, row->few_ns);
	}
	return row;
}

/* What ran while everything was traced. */
static uint64_t traced_ns(const struct rls_cell *cell)
{
	double ns = 0;

	for (int part = 0; part < RLS_PART_MAX; part++) {
		double wall_ns = (double)cell->wall_ns[part];
		double ran_ns = wall_ns - (double)cell->off_cpu_ns[part];

		if (wall_ns > 0)
			ns += ran_ns * (1 - (double)cell->sampled_ns[part] / wall_ns);
	}
	return rls_round_bounded(ns);
}

/* What was found to be native was traced as Python. */
static uint64_t traced_as(const struct rls_scope *scope, enum rls_category category)
{
	uint64_t ns = traced_ns(&scope->cells[category]);
	uint64_t roleless_ns = scope->cells[RLS_CATEGORY_NATIVE].roleless_ran_ns;

	if (category == RLS_CATEGORY_PYTHON)
		ns += roleless_ns;
	if (category == RLS_CATEGORY_NATIVE)
		ns -= roleless_ns < ns ? roleless_ns : ns;
	return ns;
}

static void add_thread(struct rls_builder *b, const struct rls_thread *thread)
{
	for (const struct rls_scope *scope = thread->scopes; scope; scope = scope->next) {
		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			uint64_t ns = traced_as(scope, i);
			struct rls_check_row *row = ns ? row_of(b, thread->process, i) : NULL;

			if (row)
				rls_add_bounded(&row->traced_ns, ns);
		}
	}
}

bool rls_build_is_unseen(const struct rls_sample_tally *tally)
{
	if (tally->kind == RLS_SAMPLE_PYTHON)
		return tally->category != RLS_CATEGORY_PYTHON;
	return tally->code && tally->code != tally->category;
}

static void add_tally(struct rls_builder *b, const struct rls_sample_tally *tally)
{
	struct rls_check_row *row;

	if (tally->inferred || rls_sample_kind_waits(tally->kind))
		return;
	row = row_of(b, tally->process, tally->category);
	if (!row)
		return;
	rls_add_bounded(&row->sampled_ns, tally->sum.ns);
	if (tally->kind == RLS_SAMPLE_PROBE)
		rls_add_bounded(&row->probes_ns, tally->sum.ns);
	else if (rls_build_is_unseen(tally))
		rls_add_bounded(&row->unseen_ns, tally->sum.ns);
	row->variance_ns2 += tally->sum.variance_ns2;
	row->error_ns = rls_interval_95_ns(row->variance_ns2, row->few_ns);
}

void rls_build_check(struct rls_builder *b)
{
	if (!b->timeline->samples.tallies)
		return;
	for (const struct rls_process *p = b->timeline->processes; p; p = p->next) {
		for (const struct rls_thread *t = p->threads; t && !b->err; t = t->next)
			add_thread(b, t);
	}
	for (const struct rls_sample_tally *t = b->timeline->samples.tallies; t && !b->err;
	     t = t->next)
		add_tally(b, t);
}
