#include "tests/analysis/breakdown/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/base/grow.h"
#include "analysis/event/memory_source.h"
#include "analysis/writers/write.h"
#include "tests/analysis/breakdown/checked_tracks.h"

void script_begin(struct script *script)
{
	*script = (struct script){.strings = rls_string_pool_new()};
	assert_non_null(script->strings);
}

void script_end(struct script *script)
{
	free(script->events);
	rls_string_pool_free(script->strings);
}

rls_string_id script_string(struct script *script, const char *text)
{
	rls_string_id id;

	assert_int_equal(rls_string_pool_add(script->strings, text, strlen(text), &id), 0);
	return id;
}

struct rls_event *script_add(struct script *script, enum rls_event_kind kind, uint64_t time_ns,
			     uint32_t pid, uint32_t tid)
{
	struct rls_event *event;

	assert_int_equal(rls_grow(&script->events, &script->capacity, script->count), 0);
	event = &script->events[script->count++];
	memset(event, 0, sizeof(*event));
	event->kind = kind;
	event->time_ns = time_ns;
	event->pid = pid;
	event->tid = tid;
	return event;
}

void add_process(struct script *script, uint64_t time_ns, uint32_t pid, const char *name)
{
	script_add(script, RLS_EVENT_PROCESS, time_ns, pid, 0)->process.name =
		script_string(script, name);
}

void add_thread(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	script_add(script, RLS_EVENT_THREAD, time_ns, pid, tid);
}

void add_category(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid,
		  enum rls_category category)
{
	script_add(script, RLS_EVENT_CATEGORY, time_ns, pid, tid)->category.category = category;
}

void add_operation(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid,
		   const char *operation)
{
	struct rls_event *event = script_add(script, RLS_EVENT_OPERATION, time_ns, pid, tid);

	if (!*operation)
		return;
	event->operation.depth = 2;
	event->operation.stack[0] = script_string(script, "outer");
	event->operation.stack[1] = script_string(script, operation);
}

void add_phase(struct script *script, uint64_t time_ns, uint32_t pid, const char *phase)
{
	script_add(script, RLS_EVENT_PHASE, time_ns, pid, 0)->phase.phase =
		script_string(script, phase);
}

void add_hits(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid, uint64_t count,
	      uint64_t cost_ns)
{
	struct rls_event *event = script_add(script, RLS_EVENT_HITS, time_ns, pid, tid);

	event->hits.count = count;
	event->hits.cost_ns = cost_ns;
}

void add_off_cpu(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid, uint64_t ns)
{
	script_add(script, RLS_EVENT_OFF_CPU, time_ns, pid, tid)->off_cpu.ns = ns;
}

void add_launch(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid,
		uint64_t correlation)
{
	script_add(script, RLS_EVENT_LAUNCH, time_ns, pid, tid)->launch.correlation = correlation;
}

void add_gpu(struct script *script, uint64_t start_ns, uint64_t end_ns, uint32_t pid,
	     enum rls_gpu_kind kind, uint64_t correlation)
{
	struct rls_event *event = script_add(script, RLS_EVENT_GPU, start_ns, pid, 0);

	event->gpu.end_ns = end_ns;
	event->gpu.kind = kind;
	event->gpu.correlation = correlation;
}

void add_window(struct script *script, uint64_t time_ns, bool open)
{
	script_add(script, RLS_EVENT_WINDOW, time_ns, 0, 0)->window.open = open;
}

void add_sample_of_category(struct script *script, uint64_t time_ns, enum rls_category category)
{
	script_add(script, RLS_EVENT_SHARE, time_ns, 1, 1)->share.category = category;
}

void add_end(struct script *script, uint64_t time_ns)
{
	script_add(script, RLS_EVENT_END, time_ns, 0, 0)->end.complete = true;
}

struct rls_report *script_report(const struct script *script)
{
	struct rls_tracks *tracks = checked_tracks_new();
	struct rls_event_source *source;
	struct rls_report *report;

	assert_int_equal(
		rls_memory_source_new(script->events, script->count, script->strings, &source), 0);
	assert_int_equal(rls_report_build_tracks(source, tracks, &report), 0);
	source->free(source);
	assert_int_equal(rls_tracks_finish(tracks, report), 0);
	rls_tracks_free(tracks);
	return report;
}

struct rls_report *script_report_alone(const struct script *script)
{
	struct rls_event_source *source;
	struct rls_report *report;

	assert_int_equal(
		rls_memory_source_new(script->events, script->count, script->strings, &source), 0);
	assert_int_equal(rls_report_build(source, &report), 0);
	source->free(source);
	return report;
}

const struct rls_breakdown_row *find_row(const struct rls_report *report, uint32_t pid,
					 uint32_t tid, const char *phase, const char *operation,
					 const char *category, enum rls_resource resource)
{
	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		if (row->pid == pid && row->tid == tid && !strcmp(row->phase, phase) &&
		    !strcmp(row->operation, operation) && row->resource == resource &&
		    !strcmp(rls_breakdown_row_category(row), category))
			return row;
	}
	return NULL;
}

uint64_t transition_count(const struct rls_report *report, uint32_t tid, const char *operation,
			  enum rls_category from, enum rls_category to)
{
	uint64_t count = 0;

	for (size_t i = 0; i < report->transition_count; i++) {
		const struct rls_transition_row *row = &report->transitions[i];

		if (row->tid == tid && !strcmp(row->operation, operation) && row->from == from &&
		    row->to == to)
			count += row->count;
	}
	return count;
}

char *report_json(const struct rls_report *report)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(rls_report_write(report, rls_report_writer_find("json"), out, NULL), 0);
	fclose(out);
	return text;
}

void script_begin_step(struct script *script, double hit_error)
{
	struct rls_event *event;

	script_begin(script);
	event = script_add(script, RLS_EVENT_CALIBRATION, 0, 0, 0);
	event->calibration.name = script_string(script, "hit");
	event->calibration.value_ns = 100;
	event->calibration.error_ns = 100 * hit_error;
	add_process(script, 0, 1, "p");
	add_thread(script, 0, 1, 1);
	add_operation(script, 0, 1, 1, "step");
}

void script_begin_python(struct script *script)
{
	script_begin(script);
	add_process(script, 10, 1, "p");
	add_thread(script, 10, 1, 1);
	add_category(script, 10, 1, 1, RLS_CATEGORY_PYTHON);
}
