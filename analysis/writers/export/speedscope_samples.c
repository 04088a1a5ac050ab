#include "analysis/writers/export/speedscope_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/string_pool.h"
#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/report.h"
#include "analysis/writers/table/json_string.h"

void rls_speedscope_samples_free(struct rls_speedscope_samples *samples)
{
	rls_string_pool_free(samples->names);
	samples->names = NULL;
}

static int print_name_index(struct rls_speedscope_samples *samples, FILE *out, const char *name)
{
	rls_string_id id;
	int err = rls_string_pool_add(samples->names, name, strlen(name), &id);

	if (!err)
		fprintf(out, "%zu,",
			samples->first_frame + samples->report->stack_frame_count + id);
	return err;
}

static int print_stack(struct rls_speedscope_samples *samples, FILE *out,
		       const struct rls_sampled_stack_row *row)
{
	const struct rls_stack_frame *frames[RLS_STACK_FRAMES_MAX];
	size_t count = rls_report_frames(samples->report, row, frames);
	rls_string_id id;
	int err = 0;

	putc('[', out);
	for (size_t i = 0; !err && i < row->depth; i++)
		err = print_name_index(samples, out, row->operations[i]);
	if (!err)
		err = print_name_index(samples, out, rls_category_name(row->category));
	while (!err && count--)
		fprintf(out, "%zu,",
			samples->first_frame +
				(size_t)(frames[count] - samples->report->stack_frames));
	/* The kind is a frame like any, in brackets as no function's name is. */
	if (!err) {
		char kind[32];

		snprintf(kind, sizeof(kind), "[%s]", rls_sample_kind_name(row->kind));
		err = rls_string_pool_add(samples->names, kind, strlen(kind), &id);
	}
	if (!err)
		fprintf(out, "%zu]",
			samples->first_frame + samples->report->stack_frame_count + id);
	return err;
}

/* The rows [from, to) are one process's. */
static int print_profile(struct rls_speedscope_samples *samples, FILE *out, size_t from, size_t to)
{
	const struct rls_sampled_stack_row *rows = samples->report->sampled_stacks;
	const char *process = rls_report_process_name(samples->report, rows[from].pid);
	_cleanup_free_ char *name = NULL;
	uint64_t total_ns = 0;
	int err = 0;

	if (asprintf(&name, "%s (%" PRIu32 "), sampled", *process ? process : "process",
		     rows[from].pid) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	for (size_t i = from; i < to; i++)
		rls_add_bounded(&total_ns, rows[i].ns);
	fputs("{\"type\":\"sampled\",\"name\":", out);
	rls_json_print_string(out, name);
	fprintf(out,
		",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
		total_ns);
	for (size_t i = from; !err && i < to; i++) {
		fputs(i > from ? ",\n" : "\n", out);
		err = print_stack(samples, out, &rows[i]);
	}
	fputs("],\"weights\":[", out);
	for (size_t i = from; i < to; i++)
		fprintf(out, "%s%" PRIu64, i > from ? "," : "", rows[i].ns);
	fputs("]}", out);
	return err;
}

int rls_speedscope_samples_profiles(struct rls_speedscope_samples *samples, FILE *out, bool first)
{
	const struct rls_report *report = samples->report;
	int err = 0;

	if (!report->sampled_stack_count)
		return 0;
	samples->names = rls_string_pool_new();
	if (!samples->names)
		return -ENOMEM;
	for (size_t from = 0, to; !err && from < report->sampled_stack_count; from = to) {
		uint32_t pid = report->sampled_stacks[from].pid;

		for (to = from; to < report->sampled_stack_count; to++) {
			if (report->sampled_stacks[to].pid != pid)
				break;
		}
		fputs(first ? "\n" : ",\n", out);
		first = false;
		err = print_profile(samples, out, from, to);
	}
	return err;
}

void rls_speedscope_samples_frames(const struct rls_speedscope_samples *samples, FILE *out)
{
	const struct rls_report *report = samples->report;

	if (!samples->names)
		return;
	for (size_t i = 0; i < report->stack_frame_count; i++) {
		const struct rls_stack_frame *frame = &report->stack_frames[i];

		fputs(",\n{\"name\":", out);
		rls_json_print_string(out, *frame->function ? frame->function : "(unnamed)");
		if (*frame->file) {
			fputs(",\"file\":", out);
			rls_json_print_string(out, frame->file);
		}
		if (frame->line)
			fprintf(out, ",\"line\":%" PRIu32, frame->line);
		putc('}', out);
	}
	for (uint32_t id = 0; id < rls_string_pool_count(samples->names); id++) {
		fputs(",\n{\"name\":", out);
		rls_json_print_string(out, rls_string_pool_get(samples->names, id));
		putc('}', out);
	}
}
