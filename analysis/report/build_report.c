/* From the swept timeline to the report: what was added up becomes rows. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/report/builder.h"
#include "analysis/report/report.h"

/* A little always is: a hit's cost lies partly after its event. */
#define UNPLACED_SHARE_MAX 0.25

void *rls_build_row(struct rls_builder *b, enum rls_report_table table)
{
	void *row = NULL;

	if (!b->err)
		b->err = rls_table_add(b->report, table, &b->capacity[table], &row);
	return row;
}

/* --- processes ---------------------------------------------------------------------- */

/* The JSON array of a process event, strings only: what else it holds is left out. */
static void add_cmdline(struct rls_builder *b, struct rls_process_entry *entry, const char *text)
{
	json_t *array = *text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	size_t capacity = 0, i;
	json_t *word;

	json_array_foreach(array, i, word)
	{
		const char **slot;

		if (!json_is_string(word))
			continue;
		slot = rls_build_append(b, &entry->cmdline, &capacity, &entry->cmdline_count);
		if (slot)
			*slot = rls_report_keep(b->report, json_string_value(word), &b->err);
	}
	json_decref(array);
}

static void add_libraries(struct rls_builder *b, struct rls_process_entry *entry,
			  const struct rls_process *process)
{
	size_t capacity = 0;

	for (size_t i = 0; i < process->library_count; i++) {
		const struct rls_process_library *from = &process->libraries[i];
		struct rls_library_entry *library =
			rls_build_append(b, &entry->libraries, &capacity, &entry->library_count);

		if (!library)
			return;
		library->path = rls_build_string(b, from->path);
		library->role = rls_build_string(b, from->role);
		library->sites = from->sites;
	}
}

/* Where CUPTI recorded. */
static void fill_cupti_error(struct rls_builder *b, const struct rls_process *process)
{
	rls_cupti_error_free(&b->cupti_calls);
	if (!process->gpu.devices && !process->clock.readings)
		return;
	for (size_t i = 0; i < process->calls.count && !b->err; i++) {
		const struct rls_call_total *calls = &process->calls.totals[i];
		const char *name = rls_string_pool_get(b->strings, calls->name);

		b->err = rls_cupti_error_add(
			&b->cupti_calls, calls,
			rls_trace_metadata_knows_cupti(&b->timeline->facts, b->strings, name));
	}
}

/* Kept as a pointer, which is never NULL: the map has no other values. */
static void note_ran(struct rls_builder *b, const struct rls_process *process, size_t first_thread)
{
	uint64_t ran_ns = 1;

	for (size_t i = first_thread; i < b->report->thread_count; i++)
		rls_add_bounded(&ran_ns, b->report->threads[i].on_cpu_ns);
	if (!b->err)
		b->err = rls_index_map_put(&b->ran, (uintptr_t)process, 0,
					   (void *)(uintptr_t)ran_ns);
}

static void add_process(struct rls_builder *b, const struct rls_process *process)
{
	struct rls_process_entry *entry = rls_build_row(b, RLS_TABLE_PROCESSES);
	size_t first_thread = b->report->thread_count;

	if (!entry)
		return;
	entry->pid = process->pid;
	entry->ppid = process->ppid;
	entry->ns_pid = process->ns_pid == process->pid ? 0 : process->ns_pid;
	entry->name = rls_build_string(b, process->name);
	entry->python = rls_build_string(b, process->python);
	entry->container = rls_build_string(b, process->container);
	entry->start_ns = process->start_ns;
	entry->end_ns = process->end_ns;
	add_cmdline(b, entry, rls_string_pool_get(b->strings, process->cmdline));
	add_libraries(b, entry, process);
	fill_cupti_error(b, process);
	for (const struct rls_thread *t = process->threads; t && !b->err; t = t->next)
		rls_build_thread(b, t);
	note_ran(b, process, first_thread);
	rls_build_gpu_alone(b, process);
	rls_build_cuda(b, process);
	rls_build_memory(b, process);
}

/* --- the recording ------------------------------------------------------------------ */

/* The array text as JSON says it, or an empty array. */
static void add_gpus(struct rls_builder *b, const char *text)
{
	json_t *array = *text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	_cleanup_free_ char *compact = json_is_array(array) ? json_dumps(array, 0) : NULL;

	if (compact && strlen(compact) < RLS_STRING_BYTES_MAX)
		b->report->gpus = rls_report_keep(b->report, compact, &b->err);
	json_decref(array);
}

static void add_budget(struct rls_builder *b)
{
	struct rls_budget_entry *budget = &b->report->overhead.budget;
	const struct rls_fact_budget *fact = &b->timeline->facts.budget;

	budget->percent = fact->percent;
	budget->windowed_sites = fact->windowed_sites;
	budget->given_up_sites = fact->given_up_sites;
	budget->given_up_percent = fact->given_up_percent;
	budget->windows = b->timeline->windows + !b->timeline->closed_first;
	budget->samples = b->timeline->category_samples;
}

/* A budget that never ran short is as good as none: everything was traced. */
static bool had_windows(const struct rls_timeline *timeline)
{
	const struct rls_fact_budget *budget = &timeline->facts.budget;

	return budget->windowed_sites || budget->given_up_sites || timeline->windows ||
	       timeline->closed || timeline->closed_first;
}

/* Known without a budget too: the report may be merged with one that has one. */
static uint64_t traced_ns(const struct rls_builder *b)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < b->report->thread_count; i++)
		rls_add_bounded(&ns, b->report->threads[i].wall_ns);
	return ns - (b->sampled_ns < ns ? b->sampled_ns : ns);
}

const char *rls_report_calibration_name(enum rls_report_calibration source)
{
	static const char *const names[RLS_REPORT_CALIBRATION_MAX] = {
		[RLS_REPORT_CALIBRATION_JOB] = "job",
		[RLS_REPORT_CALIBRATION_COMMAND] = "calibrate",
		[RLS_REPORT_CALIBRATION_RECORDING] = "recording",
		[RLS_REPORT_CALIBRATION_DEFAULT] = "default",
	};

	return names[source];
}

/* Whether that is what the figure says; one that is not known stays out of the figures too. */
static bool take_source(struct rls_overhead *overhead, const char *figure)
{
	if (strncmp(figure, RLS_FIGURE_SOURCE, strlen(RLS_FIGURE_SOURCE)))
		return false;
	for (int i = RLS_REPORT_CALIBRATION_UNKNOWN + 1; i < RLS_REPORT_CALIBRATION_MAX; i++) {
		if (!strcmp(figure + strlen(RLS_FIGURE_SOURCE), rls_report_calibration_name(i)))
			overhead->calibration_source = i;
	}
	return true;
}

static void add_overhead(struct rls_builder *b)
{
	const struct rls_trace_metadata *facts = &b->timeline->facts;
	struct rls_overhead *overhead = &b->report->overhead;

	overhead->hits = b->timeline->hits;
	overhead->events = b->timeline->emitted;
	overhead->estimated_ns = b->timeline->hits_cost_ns;
	overhead->budget.traced_ns = traced_ns(b);
	if (facts->budgeted && facts->budget.percent > 0 && had_windows(b->timeline))
		add_budget(b);
	for (size_t i = 0; i < facts->calibration_count; i++) {
		const struct rls_fact_calibration *from = &facts->calibration[i];
		struct rls_calibration_entry *entry;

		if (take_source(overhead, rls_string_pool_get(b->strings, from->name)))
			continue;
		entry = rls_build_row(b, RLS_TABLE_CALIBRATION);
		if (!entry)
			return;
		entry->name = rls_build_string(b, from->name);
		/* JSON has no word for what is no number. */
		entry->value_ns = isfinite(from->value_ns) ? from->value_ns : 0;
		entry->error_ns = isfinite(from->error_ns) ? from->error_ns : 0;
	}
}

static void add_losses(struct rls_builder *b)
{
	const struct rls_trace_metadata *facts = &b->timeline->facts;

	for (size_t i = 0; i < facts->loss_count; i++) {
		struct rls_loss_entry *entry = rls_build_row(b, RLS_TABLE_LOSSES);

		if (!entry)
			return;
		entry->buffer = rls_build_string(b, facts->losses[i].buffer);
		entry->dropped = facts->losses[i].dropped;
	}
}

static void warn_count(struct rls_builder *b, uint64_t count, const char *what)
{
	if (count && !b->err)
		b->err = rls_report_warn(b->report, "%" PRIu64 " %s", count, what);
}

/* More cost than there was time: the calibration does not fit the machine or the moment. Cost while
 * the GPU was busy is another matter: it is not taken away, because it may have delayed nothing. */
static void warn_of_unsubtracted_cost(struct rls_builder *b)
{
	const struct rls_timeline *timeline = b->timeline;
	double unplaced = (double)timeline->hits_unplaced_ns / (double)timeline->hits_cost_ns;
	double under_gpu = (double)timeline->hits_under_gpu_ns / (double)timeline->hits_cost_ns;

	if (!timeline->hits_cost_ns)
		return;
	if (unplaced > UNPLACED_SHARE_MAX && !b->err)
		b->err = rls_report_warn(
			b->report,
			"%.0f%% of the probes' estimated cost is more than the time it could be "
			"taken from: calibrate again on a quiet machine",
			100 * unplaced);
	if (under_gpu > UNPLACED_SHARE_MAX && !b->err)
		b->err = rls_report_warn(
			b->report,
			"%.0f%% of the probes' estimated cost lies in time when the GPU was busy "
			"too (cpu+gpu), from which nothing is taken: corrected_ns still holds it",
			100 * under_gpu);
}

/* A source that says it is damaged has said why. */
static void add_warnings(struct rls_builder *b, bool damaged)
{
	const struct rls_timeline *timeline = b->timeline;
	const struct rls_trace_metadata *facts = &timeline->facts;

	for (size_t i = 0; i < facts->warning_count && !b->err; i++)
		b->err = rls_report_warn(b->report, "%s",
					 rls_string_pool_get(b->strings, facts->warnings[i]));
	warn_count(b, facts->warnings_left_out, "more warnings of the recording are left out");
	rls_build_coverage(b);
	if (!timeline->end_seen && !damaged && !b->err)
		b->err = rls_report_warn(b->report, "the trace has no end mark: "
						    "what came after its last event is missing");
	if (timeline->end_seen && !timeline->end_complete && !b->err)
		b->err = rls_report_warn(b->report, "the recording was cut short: "
						    "its last instants may be missing");
	warn_count(b, rls_trace_metadata_dropped(facts, b->strings),
		   "events were lost while recording: see losses, error_ns allows for them");
	warn_count(b, rls_trace_metadata_dropped_gpu(facts, b->strings),
		   "batches or records of GPU work were lost or refused: see losses, the GPU did "
		   "more");
	warn_of_unsubtracted_cost(b);
	warn_count(b, timeline->impossible_gpu, "GPU records with impossible times were left out");
	warn_count(b, timeline->unsorted, "events out of time order were left out");
	warn_count(b, timeline->strays, "events of processes that had ended were left out");
	warn_count(b, timeline->memory.left_out,
		   "figures of lines that allocate are left out: there are too many lines");
	if (timeline->rules.count && !b->err)
		b->err = rls_report_warn(b->report,
					 "operations found on sampled stacks are distinguished "
					 "in the breakdown alone: transitions, GPU work, "
					 "timelines and compare know annotated ones only");
	if (timeline->stacks.cut && !b->err)
		b->err = rls_report_warn(b->report,
					 "there are more than %u stacks of operations: "
					 "of the others only the innermost is reported",
					 RLS_STACKS_MAX);
}

int rls_report_from_timeline(struct rls_report *report, const struct rls_timeline *timeline,
			     const struct rls_string_pool *strings, bool damaged)
{
	double lost = (double)rls_trace_metadata_dropped(&timeline->facts, strings);
	struct rls_builder b = {
		.report = report,
		.timeline = timeline,
		.strings = strings,
		.calibration_error =
			rls_trace_metadata_calibration_error(&timeline->facts, strings),
		.cupti_error = rls_trace_metadata_cupti_error(&timeline->facts, strings),
		.lost_share = lost > 0 ? lost / (lost + (double)timeline->emitted) : 0,
	};

	report->timed = timeline->any;
	report->start_ns = timeline->first_ns;
	report->end_ns = timeline->end_ns;
	report->complete = timeline->end_complete && !damaged;
	report->kernel = rls_build_string(&b, timeline->facts.kernel);
	report->cpus = timeline->facts.cpus;
	report->clocked = timeline->facts.clock.known;
	report->boot = rls_build_string(&b, timeline->facts.clock.boot);
	report->clock_offset_ns = timeline->facts.clock.offset_ns;
	report->clock_width_ns = timeline->facts.clock.width_ns;
	report->clock_change_ns = timeline->facts.clock.change_ns;
	report->tool = rls_build_string(&b, timeline->facts.tool);
	if (!*report->tool)
		report->tool = rls_report_keep(report, "rlscope-bpf " RLS_VERSION, &b.err);
	add_gpus(&b, rls_string_pool_get(strings, timeline->facts.gpus));
	for (const struct rls_process *p = timeline->processes; p && !b.err; p = p->next)
		add_process(&b, p);
	rls_cupti_error_free(&b.cupti_calls);
	rls_build_samples(&b);
	rls_build_check(&b);
	rls_build_sampled_libraries(&b);
	rls_build_sampled_stacks(&b);
	rls_index_map_free(&b.ran);
	add_overhead(&b);
	add_losses(&b);
	add_warnings(&b, damaged);
	rls_report_set_percent(report);
	rls_build_budget(&b);
	rls_build_unseen(&b);
	if (b.err)
		return b.err;
	rls_report_sort(report);
	return 0;
}
