/* From a thread's scopes to rows: the breakdown, transitions and operations by innermost
 * operation, the stacks by all of them; and from its layer totals. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/report/builder.h"

/* --- rows by innermost operation ---------------------------------------------------- */

static double relative_error(const struct rls_builder *b, enum rls_category category)
{
	return category == RLS_CATEGORY_CUDA_API ? fmax(b->operation_error, b->cupti_error)
						 : b->operation_error;
}

static uint64_t shared_ns(const struct rls_builder *b, enum rls_category category, uint64_t wall_ns,
			  uint64_t subtracted_ns)
{
	return rls_round_bounded(relative_error(b, category) * (double)subtracted_ns +
				 b->lost_share * (double)wall_ns);
}

/* How much of the others' cost a row may have borne that was hit less often than they: hits drive
 * out of the caches what the code after them needs. Seen in training jobs: 0.0 to 0.8 of it, in
 * simulators that are hit little. */
#define POLLUTION_SHARE 1.0
/* The same where what others' hits cost the operation was measured, and charged: what may be left. (Half of it holds
 * for nine of ten.) */
#define POLLUTION_SHARE_KNOWN 0.3

/* Whole nanoseconds, so that sums do not depend on their order. */
static double moved_ns(const struct rls_builder *b, const struct rls_cell *cell)
{
	double ran_ns = (double)(cell->wall_ns[RLS_PART_CPU] - cell->off_cpu_ns[RLS_PART_CPU]);
	double less_ns = b->cost_density * ran_ns - (double)cell->subtracted_ns;

	return round(b->pollution_share * less_ns);
}

static double find_density(const struct rls_thread *thread)
{
	uint64_t ran_ns = 0, subtracted_ns = 0;

	for (const struct rls_scope *scope = thread->scopes; scope; scope = scope->next) {
		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			const struct rls_cell *cell = &scope->cells[i];

			ran_ns += cell->wall_ns[RLS_PART_CPU] - cell->off_cpu_ns[RLS_PART_CPU];
			subtracted_ns += cell->subtracted_ns;
		}
	}
	return ran_ns ? (double)subtracted_ns / (double)ran_ns : 0;
}

static struct rls_breakdown_row *new_row(struct rls_builder *b)
{
	return rls_build_row(b, RLS_TABLE_BREAKDOWN);
}

/* Dealt out to the cell's parts by their time: where within it calls were made is not known. */
static double cupti_error_ns(const struct rls_builder *b, const struct rls_scope *scope,
			     const struct rls_breakdown_row *keys, enum rls_part part)
{
	const struct rls_cell *cell = &scope->cells[keys->category];
	uint64_t all_ns = cell->wall_ns[RLS_PART_CPU] + cell->wall_ns[RLS_PART_CPU_GPU];
	struct rls_cupti_error_sum own =
		rls_cupti_error_own(&b->cupti_calls, keys->tid, scope->phase, scope->operation);
	double share = all_ns ? (double)cell->wall_ns[part] / (double)all_ns : 0;
	double ns = 0;

	if (keys->category == RLS_CATEGORY_CUDA_API)
		ns = own.inside_ns;
	else if (keys->category == RLS_CATEGORY_BACKEND)
		ns = own.around_ns + fmin(rls_cupti_error_others_ns(&b->cupti_calls, keys->tid,
								    scope->phase, scope->operation),
					  (double)(cell->off_cpu_ns[RLS_PART_CPU] +
						   cell->off_cpu_ns[RLS_PART_CPU_GPU]));
	return share * ns * (scope->calls_scale.count > 0 ? (double)scope->calls_scale.count : 1);
}

static void add_row(struct rls_builder *b, const struct rls_breakdown_row *keys,
		    const struct rls_scope *scope, enum rls_part part)
{
	const struct rls_cell *cell = &scope->cells[keys->category];
	uint64_t wall_ns = cell->wall_ns[part];
	uint64_t subtracted_ns = part == RLS_PART_CPU ? cell->subtracted_ns : 0;
	struct rls_breakdown_row *row;

	if (!wall_ns)
		return;
	row = new_row(b);
	if (!row)
		return;
	*row = *keys;
	row->resource = part == RLS_PART_CPU ? RLS_RESOURCE_CPU : RLS_RESOURCE_CPU_GPU;
	row->wall_ns = wall_ns;
	row->on_cpu_ns = wall_ns - cell->off_cpu_ns[part];
	row->induced_wait_ns = part == RLS_PART_CPU ? rls_cell_induced_wait_ns(cell) : 0;
	row->corrected_ns = wall_ns - subtracted_ns - row->induced_wait_ns;
	row->error.shared_ns = shared_ns(b, row->category, wall_ns, subtracted_ns);
	if (part == RLS_PART_CPU)
		row->error.moved_ns = moved_ns(b, cell);
	/* What a wait was for is not known: all that was taken from it may be too much. */
	rls_add_bounded(&row->error.shared_ns, row->induced_wait_ns);
	rls_add_bounded(&row->error.shared_ns,
			rls_round_bounded(cupti_error_ns(b, scope, keys, part)));
	if (cell->sampled_ns[part] || cell->sampled_error_ns[part] > 0) {
		row->method = RLS_METHOD_SAMPLED;
		row->error.split_ns2 = cell->sampled_error_ns[part] * cell->sampled_error_ns[part];
	}
	row->undivided_method = row->method;
	if (cell->divided_ns[part]) {
		row->method = RLS_METHOD_SAMPLED;
		row->error.divided_ns = rls_round_bounded(cell->divided_error_ns[part]);
	}
	row->error_ns = rls_row_error_ns(&row->error, RLS_ERROR_OF_ROWS, wall_ns);
	b->thread_corrected_ns += row->corrected_ns;
	rls_row_error_add(&b->thread_error, &row->error);
}

/* What was lost is taken to have been as what was not. */
static double count_error(const struct rls_builder *b, const struct rls_scope *scope, int from,
			  int to)
{
	double error = scope->scaled_error[from][to], count = (double)scope->transitions[from][to];
	double lost = count * b->lost_share / (1 - b->lost_share);

	return error > 0
		       ? hypot(error, b->calibration_error * scope->scaled_cost[from][to] * count) +
				 lost
		       : lost;
}

/* An interval from half of the figure to three times that says less than that it is not known. */
#define ERROR_SHARE_MAX 0.5

static bool is_known(const struct rls_scope *scope, int from, int to, double error)
{
	return !(scope->scaled_error[from][to] > 0) ||
	       error < ERROR_SHARE_MAX * (double)scope->transitions[from][to];
}

static void add_transitions(struct rls_builder *b, const struct rls_breakdown_row *keys,
			    const struct rls_scope *scope)
{
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++) {
			bool scaled = scope->scaled_error[from][to] > 0;
			double error = count_error(b, scope, from, to);
			bool known = is_known(scope, from, to, error);
			struct rls_transition_row *row;

			if (!scope->transitions[from][to])
				continue;
			row = rls_build_row(b, RLS_TABLE_TRANSITIONS);
			if (!row)
				return;
			*row = (struct rls_transition_row){
				.pid = keys->pid,
				.tid = keys->tid,
				.phase = keys->phase,
				.operation = keys->operation,
				.from = from,
				.to = to,
				.count = known ? scope->transitions[from][to] : RLS_COUNT_UNKNOWN,
				.method = scaled ? RLS_METHOD_SCALED : RLS_METHOD_TRACED,
				.count_error = known ? rls_round_bounded(error) : RLS_COUNT_UNKNOWN,
			};
		}
	}
}

static void add_operation(struct rls_builder *b, const struct rls_breakdown_row *keys,
			  uint64_t entries)
{
	struct rls_operation_row *row;

	if (!entries)
		return;
	row = rls_build_row(b, RLS_TABLE_OPERATIONS);
	if (!row)
		return;
	*row = (struct rls_operation_row){
		.pid = keys->pid,
		.tid = keys->tid,
		.phase = keys->phase,
		.operation = keys->operation,
		.entries = entries,
	};
}

static void add_scope(struct rls_builder *b, const struct rls_scope *scope, uint32_t pid,
		      uint32_t tid)
{
	struct rls_breakdown_row keys = {
		.pid = pid,
		.tid = tid,
		.phase = rls_build_string(b, scope->phase),
		.operation = rls_build_string(b, scope->operation),
	};

	b->operation_error = rls_trace_metadata_operation_error(
		&b->timeline->facts, b->strings, scope->operation, b->calibration_error);
	b->pollution_share = rls_trace_metadata_knows_pollution(&b->timeline->facts, b->strings,
								scope->operation)
				     ? POLLUTION_SHARE_KNOWN
				     : POLLUTION_SHARE;
	for (int category = 0; category < RLS_CATEGORY_MAX; category++) {
		keys.category = category;
		for (int part = 0; part < RLS_PART_MAX; part++)
			add_row(b, &keys, scope, part);
	}
	add_transitions(b, &keys, scope);
	add_operation(b, &keys, scope->entries);
}

static void sum_scope(struct rls_scope *into, const struct rls_scope *scope)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		rls_cell_add(&into->cells[i], &scope->cells[i]);
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			rls_add_bounded(&into->transitions[i][k], scope->transitions[i][k]);
			into->scaled_error[i][k] += scope->scaled_error[i][k];
		}
	}
	into->entries += scope->entries;
}

static int order_scopes(const void *left, const void *right)
{
	const struct rls_scope *a = *(const struct rls_scope *const *)left;
	const struct rls_scope *b = *(const struct rls_scope *const *)right;

	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return (a->operation > b->operation) - (a->operation < b->operation);
}

/* Scopes that differ in what lies below their innermost operation are one row. */
static void add_scopes(struct rls_builder *b, const struct rls_thread *thread)
{
	_cleanup_free_ const struct rls_scope **sorted = NULL;
	size_t count = 0, capacity = 0;

	for (const struct rls_scope *s = thread->scopes; s; s = s->next) {
		b->err = rls_grow(&sorted, &capacity, count);
		if (b->err)
			return;
		sorted[count++] = s;
	}
	if (count > 1)
		qsort(sorted, count, sizeof(*sorted), order_scopes);
	for (size_t i = 0; i < count;) {
		struct rls_scope sum = *sorted[i];

		while (++i < count && !order_scopes(&sorted[i - 1], &sorted[i]))
			sum_scope(&sum, sorted[i]);
		add_scope(b, &sum, thread->process->pid, thread->tid);
	}
}

/* --- rows by stack ------------------------------------------------------------------ */

static struct rls_stack_row *new_stack(struct rls_builder *b)
{
	return rls_build_row(b, RLS_TABLE_STACKS);
}

const char **rls_build_operations(struct rls_builder *b, rls_stack_id stack, size_t *depth)
{
	rls_string_id names[RLS_OPERATION_DEPTH_MAX];
	size_t count = rls_stack_tree_names(&b->timeline->stacks, stack, names);
	const char **operations = count ? calloc(count, sizeof(*operations)) : NULL;

	if (count && !operations)
		b->err = -ENOMEM;
	*depth = operations ? count : 0;
	for (size_t i = 0; i < *depth; i++)
		operations[i] = rls_build_string(b, names[i]);
	return operations;
}

static void add_stack(struct rls_builder *b, const struct rls_thread *thread,
		      const struct rls_scope *scope, enum rls_category category)
{
	const struct rls_cell *cell = &scope->cells[category];
	uint64_t wall_ns = cell->wall_ns[RLS_PART_CPU] + cell->wall_ns[RLS_PART_CPU_GPU];
	uint64_t transitions = 0;
	struct rls_stack_row *row;

	for (int from = 0; from < RLS_CATEGORY_MAX; from++)
		rls_add_bounded(&transitions, scope->transitions[from][category]);
	if (!wall_ns && !transitions)
		return;
	row = new_stack(b);
	if (!row)
		return;
	row->pid = thread->process->pid;
	row->tid = thread->tid;
	row->phase = rls_build_string(b, scope->phase);
	row->category = category;
	row->wall_ns = wall_ns;
	row->gpu_ns = cell->wall_ns[RLS_PART_CPU_GPU];
	row->on_cpu_ns =
		wall_ns - cell->off_cpu_ns[RLS_PART_CPU] - cell->off_cpu_ns[RLS_PART_CPU_GPU];
	row->corrected_ns = wall_ns - cell->subtracted_ns - rls_cell_induced_wait_ns(cell);
	row->transitions = transitions;
	row->operations = rls_build_operations(b, scope->stack, &row->depth);
}

/* --- rows by layer ------------------------------------------------------------------ */

static uint64_t layer_wall_ns(const struct rls_cell *cell, const uint64_t *less)
{
	return cell->wall_ns[RLS_PART_CPU] + cell->wall_ns[RLS_PART_CPU_GPU] - less[RLS_PART_CPU] -
	       less[RLS_PART_CPU_GPU];
}

static void name_layer(struct rls_builder *b, struct rls_layer_row *row, uint32_t id)
{
	const struct rls_layer_name *name =
		id ? rls_layer_names_find(&b->timeline->layers, row->pid, id) : NULL;

	row->id = id ? id : RLS_COUNT_UNKNOWN;
	row->parent = name && name->parent ? name->parent : RLS_COUNT_UNKNOWN;
	row->index = name && name->index != UINT32_MAX ? name->index : RLS_COUNT_UNKNOWN;
	row->path = rls_build_string(b, name ? name->path : 0);
	row->raw_path = rls_build_string(b, name && name->raw_path ? name->raw_path
					    : name                 ? name->path
								   : 0);
	row->type = rls_build_string(b, name ? name->type : 0);
}

/* As of rows by category (build_breakdown.c). */
static void fill_error(const struct rls_builder *b, struct rls_layer_row *row,
		       const struct rls_layer_total *total)
{
	const struct rls_cell *cell = &total->cell;
	double calibration = rls_trace_metadata_operation_error(
		&b->timeline->facts, b->strings, total->operation, b->calibration_error);
	double ran_ns = (double)(cell->wall_ns[RLS_PART_CPU] - cell->off_cpu_ns[RLS_PART_CPU]);

	row->error.shared_ns =
		rls_round_bounded(fmax(calibration, b->cupti_error) * (double)cell->subtracted_ns +
				  b->lost_share * (double)row->self_ns);
	rls_add_bounded(&row->error.shared_ns, rls_cell_induced_wait_ns(cell));
	row->error.moved_ns = round(b->cost_density * ran_ns - (double)cell->subtracted_ns);
	row->error_ns = rls_row_error_ns(&row->error, RLS_ERROR_OF_ROWS, row->self_ns);
}

static void add_layer(struct rls_builder *b, const struct rls_thread *thread,
		      const struct rls_layer_total *total)
{
	static const uint64_t none[RLS_PART_MAX];
	struct rls_layer_row *row;

	if (!layer_wall_ns(&total->cell, none) && !total->calls && !total->cumulative_ns)
		return;
	row = rls_build_row(b, RLS_TABLE_LAYERS);
	if (!row)
		return;
	row->pid = thread->process->pid;
	row->tid = thread->tid;
	row->phase = rls_build_string(b, total->phase);
	row->operation = rls_build_string(b, total->operation);
	row->pass = total->pass;
	name_layer(b, row, total->layer);
	row->calls = total->calls;
	row->self_ns = layer_wall_ns(&total->cell, none);
	row->cumulative_ns = total->cumulative_ns;
	row->on_cpu_ns = layer_wall_ns(&total->cell, total->cell.off_cpu_ns);
	row->corrected_ns =
		row->self_ns - total->cell.subtracted_ns - rls_cell_induced_wait_ns(&total->cell);
	fill_error(b, row, total);
}

static void add_layers(struct rls_builder *b, const struct rls_thread *thread)
{
	if (!b->timeline->layers.count)
		return;
	for (const struct rls_layer_total *total = thread->layers.totals; total && !b->err;
	     total = total->next)
		add_layer(b, thread, total);
}

/* --- over time ---------------------------------------------------------------------- */

static void add_overview(struct rls_builder *b, const struct rls_thread *thread)
{
	const struct rls_overview *overview = &thread->overview;
	struct rls_overview_part *parts;
	struct rls_overview_entry *entry;

	if (!overview->count)
		return;
	entry = rls_build_row(b, RLS_TABLE_OVERVIEWS);
	parts = entry ? calloc(overview->count, sizeof(*parts)) : NULL;
	if (!parts) {
		b->report->overview_count -= !!entry;
		b->err = b->err ? b->err : -ENOMEM;
		return;
	}
	*entry = (struct rls_overview_entry){
		.pid = thread->process->pid,
		.tid = thread->tid,
		.shift = overview->shift,
		.start_ns = overview->cells[0].bucket << overview->shift,
		.parts = parts,
		.part_count = overview->count,
	};
	for (size_t i = 0; i < overview->count; i++) {
		const struct rls_overview_cell *cell = &overview->cells[i];

		parts[i] = (struct rls_overview_part){
			.bucket = cell->bucket,
			.phase = cell->scope ? rls_build_string(b, cell->scope->phase) : "",
			.operation =
				cell->scope ? rls_build_string(b, cell->scope->operation) : NULL,
			.category = cell->category,
			.wall_ns = cell->wall_ns,
			.gpu_ns = cell->gpu_ns,
		};
	}
}

/* --- threads and processes ---------------------------------------------------------- */

void rls_build_thread(struct rls_builder *b, const struct rls_thread *thread)
{
	struct rls_thread_entry *entry = rls_build_row(b, RLS_TABLE_THREADS);
	uint64_t cost_ns = 0;

	if (!entry)
		return;
	entry->pid = thread->process->pid;
	entry->tid = thread->tid;
	entry->name = rls_build_string(b, thread->name);
	for (const struct rls_scope *scope = thread->scopes; scope; scope = scope->next) {
		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			const struct rls_cell *cell = &scope->cells[i];

			for (int part = 0; part < RLS_PART_MAX; part++) {
				entry->wall_ns += cell->wall_ns[part];
				entry->on_cpu_ns += cell->wall_ns[part] - cell->off_cpu_ns[part];
				b->sampled_ns += cell->sampled_ns[part];
			}
			cost_ns += cell->subtracted_ns + cell->under_gpu_ns;
			add_stack(b, thread, scope, i);
		}
	}
	rls_build_thread_cost(b, entry, cost_ns);
	b->cost_density = find_density(thread);
	b->thread_corrected_ns = 0;
	b->thread_error = (struct rls_row_error){0};
	add_scopes(b, thread);
	entry->corrected_ns = b->thread_corrected_ns;
	entry->error_ns = rls_row_error_ns(&b->thread_error, RLS_ERROR_OF_ALL, entry->wall_ns);
	add_layers(b, thread);
	add_overview(b, thread);
}

void rls_build_gpu_alone(struct rls_builder *b, const struct rls_process *process)
{
	for (const struct rls_scope *scope = process->scopes; scope; scope = scope->next) {
		struct rls_breakdown_row *row;
		struct rls_stack_row *stack;

		if (!scope->gpu_alone_ns)
			continue;
		row = new_row(b);
		stack = row ? new_stack(b) : NULL;
		if (!stack)
			return;
		row->pid = process->pid;
		row->phase = rls_build_string(b, scope->phase);
		row->operation = rls_build_string(b, scope->operation);
		row->resource = RLS_RESOURCE_GPU;
		row->wall_ns = row->corrected_ns = scope->gpu_alone_ns;
		row->error.shared_ns = shared_ns(b, RLS_CATEGORY_UNKNOWN, row->wall_ns, 0);
		row->error_ns = rls_row_error_ns(&row->error, RLS_ERROR_OF_ROWS, row->wall_ns);
		stack->pid = process->pid;
		stack->phase = row->phase;
		stack->gpu_alone = true;
		stack->gpu_ns = scope->gpu_alone_ns;
	}
}
