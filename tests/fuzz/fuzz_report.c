/* A trace in its text form, through the whole of a report: built, grouped and written in
 * every form. What the trace says is anybody's; that times add up is ours.
 */
#include "fuzz.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/trace/text_form.h"
#include "analysis/writers/write.h"

static uint64_t sum_rows(const struct rls_report *report, const struct rls_thread_entry *thread)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		if (row->pid == thread->pid && row->tid == thread->tid &&
		    row->resource != RLS_RESOURCE_GPU)
			sum += row->wall_ns;
	}
	return sum;
}

static void check_times(const struct rls_report *report)
{
	fuzz_require(report->start_ns <= report->end_ns, "a trace does not end before it begins");
	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		fuzz_require(row->corrected_ns <= row->wall_ns && row->error_ns <= row->wall_ns,
			     "corrected time and error are within the time");
	}
	for (size_t i = 0; i < report->thread_count; i++)
		fuzz_require(sum_rows(report, &report->threads[i]) == report->threads[i].wall_ns,
			     "a thread's rows sum to its time");
	for (size_t i = 0; i < report->gpu_count; i++)
		fuzz_require(report->gpu[i].smi_style_percent >= 0 &&
				     report->gpu[i].smi_style_percent <= 100,
			     "a part of a time is no more than all of it");
}

/* A row whose source does not report frees has none of these. */
static void check_memory(const struct rls_report *report)
{
	for (size_t i = 0; i < report->memory_line_count; i++) {
		const struct rls_memory_line_row *row = &report->memory_lines[i];

		if (row->live_bytes == RLS_COUNT_UNKNOWN)
			continue;
		fuzz_require(row->leak_score >= 0 && row->leak_score <= 1,
			     "a leak score is from 0 to 1");
		fuzz_require(row->survivors <= row->observed, "survivors are among the observed");
		fuzz_require(row->live_bytes <= row->peak_bytes &&
				     row->bytes_at_process_peak <= row->peak_bytes,
			     "a peak is the most there was");
	}
	fuzz_require(report->memory_timeline_count <= 100 * report->memory_count,
		     "a timeline is short");
}

/* Over all threads, as ids of threads may be used twice. */
static void check_overviews(const struct rls_report *report)
{
	uint64_t lived_ns = 0, shown_ns = 0;

	for (size_t i = 0; i < report->thread_count; i++)
		lived_ns += report->threads[i].wall_ns;
	for (size_t i = 0; i < report->overview_count; i++) {
		for (size_t k = 0; k < report->overviews[i].part_count; k++)
			shown_ns += report->overviews[i].parts[k].wall_ns;
	}
	fuzz_require(lived_ns == shown_ns, "the overviews show all of the threads' time");
}

static void write_as(const struct rls_report *report, const char *format,
		     const struct rls_write_options *options)
{
	char *text = NULL;
	size_t length;
	FILE *output = open_memstream(&text, &length);
	json_t *json;

	fuzz_require(output && !rls_report_write(report, rls_report_writer_find(format), output,
						 options),
		     "a report is written");
	fclose(output);
	if (format[0] == 'h')
		fuzz_require(strstr(text, "<script>") && !strstr(text, "<!--"),
			     "no name begins a comment or ends a block");
	if (!strcmp(format, "json")) {
		json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
		fuzz_require(json, "JSON is JSON");
		json_decref(json);
	}
	free(text);
}

static void show(struct rls_report *report)
{
	const struct rls_write_options narrow = {.columns = 40, .colour = true};
	const struct rls_write_options memory = {.memory = true, .full = true};

	write_as(report, "json", NULL);
	write_as(report, "text", NULL);
	write_as(report, "text", &memory);
	write_as(report, "pprof", &memory);
	write_as(report, "html", NULL);
	write_as(report, "folded", NULL);
	for (int table = 0; table < RLS_TABLE_MAX; table++)
		write_as(report, "csv", &(struct rls_write_options){.table = table});
	for (int group = RLS_GROUP_THREAD; group < RLS_GROUP_MAX; group++) {
		rls_report_group(report, group);
		check_memory(report);
		write_as(report, "text", &narrow);
		write_as(report, "json", NULL);
	}
}

/* What is drawn is JSON too, whatever the trace. */
static void draw(const uint8_t *data, size_t size, const char *format)
{
	const struct rls_report_writer *writer = rls_report_writer_find(format);
	struct rls_write_options options = {0};
	struct rls_event_source *source;
	struct rls_report *report;
	char *text = NULL, message[200];
	size_t length;
	FILE *output = open_memstream(&text, &length);
	json_t *json;

	fuzz_require(output && !rls_report_writer_tracks(writer, output, &options.tracks),
		     "tracks can be had");
	fuzz_require(!rls_text_reader_open(fuzz_file(data, size), NULL, &source, message,
					   sizeof(message)),
		     "what was read can be read again");
	fuzz_require(!rls_report_build_tracks(source, options.tracks, &report) &&
			     !rls_report_write(report, writer, output, &options),
		     "what can be read can be drawn");
	source->free(source);
	rls_report_free(report);
	rls_tracks_free(options.tracks);
	fclose(output);
	json = json_loads(text, 0, NULL);
	fuzz_require(json, "a drawing is JSON");
	json_decref(json);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rls_event_source *source;
	struct rls_report *report;
	char message[200];

	if (rls_text_reader_open(fuzz_file(data, size), NULL, &source, message, sizeof(message)))
		return 0;
	fuzz_require(!rls_report_build(source, &report), "what can be read can be reported");
	source->free(source);
	check_times(report);
	check_memory(report);
	check_overviews(report);
	show(report);
	rls_report_free(report);
	draw(data, size, "chrome");
	draw(data, size, "speedscope");
	return 0;
}
