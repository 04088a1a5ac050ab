/* From the sample totals to libraries: what ran in the code of each, however that is divided
 * into functions, and what the trace said of the threads meanwhile. */
#include <string.h>

#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/builder.h"

#define UNSUMMED_MAX 65536

/* Kinds that say in whose code a thread ran. The interpreter's loop is no library's. */
static bool is_in_library(enum rls_sample_kind kind)
{
	return kind == RLS_SAMPLE_NATIVE || kind == RLS_SAMPLE_SYSTEM || kind == RLS_SAMPLE_RUNTIME;
}

static const struct rls_process_library *find_library(const struct rls_process *process,
						      rls_string_id path)
{
	for (size_t i = 0; i < process->library_count; i++)
		if (process->libraries[i].path == path)
			return &process->libraries[i];
	return NULL;
}

static const char *role_of(const struct rls_builder *b, const struct rls_sample_cell *cell,
			   rls_string_id path)
{
	const struct rls_process_library *library = find_library(cell->process, path);

	/* A child that ended early has no list of its own. */
	for (const struct rls_process *p = b->timeline->processes;
	     p && !library && !cell->process->library_count; p = p->next)
		library = find_library(p, path);
	if (library)
		return rls_string_pool_get(b->strings, library->role);
	return cell->kind == RLS_SAMPLE_RUNTIME ? "python" : "";
}

static void add_by_category(struct rls_sampled_library_row *row, enum rls_category category)
{
	if (category == RLS_CATEGORY_PYTHON)
		row->python_ns = row->ns;
	else if (category == RLS_CATEGORY_UNKNOWN)
		row->unknown_ns = row->ns;
	else if (category == RLS_CATEGORY_NATIVE)
		row->native_ns = row->ns;
}

static void add_cell(struct rls_builder *b, const struct rls_sample_cell *cell, rls_string_id path)
{
	struct rls_sampled_library_row *row = rls_build_row(b, RLS_TABLE_SAMPLED_LIBRARIES);

	if (!row)
		return;
	row->pid = cell->process->pid;
	row->path = rls_build_string(b, path);
	row->role = rls_report_keep(b->report, role_of(b, cell, path), &b->err);
	row->samples = cell->sum.samples;
	row->ns = cell->sum.ns;
	row->variance_ns2 = cell->sum.variance_ns2;
	row->few_ns = rls_build_few_ns(b, cell->process);
	add_by_category(row, cell->category);
}

/* Of all that ran in the process, the interpreter's loop included. */
static double running_ns(const struct rls_builder *b, uint32_t pid)
{
	double ns = 0;

	for (const struct rls_sample_tally *t = b->timeline->samples.tallies; t; t = t->next)
		if (t->process->pid == pid && !rls_sample_kind_waits(t->kind))
			ns += (double)t->sum.ns;
	return ns;
}

static void add_percents(struct rls_builder *b)
{
	double whole_ns = 0;
	uint32_t pid = 0;

	for (size_t i = 0; i < b->report->sampled_library_count; i++) {
		struct rls_sampled_library_row *row = &b->report->sampled_libraries[i];

		if (!i || row->pid != pid)
			whole_ns = running_ns(b, row->pid);
		pid = row->pid;
		row->percent = whole_ns > 0 ? 100 * (double)row->ns / whole_ns : 0;
	}
}

void rls_build_sampled_libraries(struct rls_builder *b)
{
	const struct rls_sample_totals *totals = &b->timeline->samples;
	size_t limit = UNSUMMED_MAX;

	for (const struct rls_sample_cell *cell = totals->cells; cell && !b->err;
	     cell = cell->next) {
		const struct rls_frame_node *node = rls_sample_totals_node(totals, cell->frame);

		if (!node || !node->native || !is_in_library(cell->kind))
			continue;
		add_cell(b, cell, node->file);
		if (b->report->sampled_library_count < limit)
			continue;
		rls_table_sum(b->report, RLS_TABLE_SAMPLED_LIBRARIES);
		limit = 2 * b->report->sampled_library_count + UNSUMMED_MAX;
	}
	if (b->err)
		return;
	rls_table_sum(b->report, RLS_TABLE_SAMPLED_LIBRARIES);
	add_percents(b);
}
