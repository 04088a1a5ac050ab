/* The JSON form: the contract of report.schema.json, one element a line.
 *
 * Printed rather than built: integers stay exact beyond 2^53 and a report of a million rows
 * needs no second copy in memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/base/utf8.h"
#include "analysis/writers/table/columns.h"
#include "analysis/writers/embedded.h"
#include "analysis/writers/table/json_string.h"
#include "analysis/writers/writer.h"

/* The report's strings are valid UTF-8; only what JSON forbids in a string is escaped. */
static void print_byte(FILE *out, unsigned char c)
{
	if (c == '"' || c == '\\')
		putc_unlocked('\\', out);
	if (c < 0x20 || c == 0x7f)
		fprintf(out, "\\u%04x", c);
	else
		putc_unlocked(c, out);
}

void rls_json_print_string(FILE *out, const char *text)
{
	putc_unlocked('"', out);
	for (; *text; text++)
		print_byte(out, (unsigned char)*text);
	putc_unlocked('"', out);
}

void rls_json_print_path(FILE *out, const char *path)
{
	size_t left = strlen(path);

	putc_unlocked('"', out);
	while (left) {
		struct rls_utf8_piece piece = rls_utf8_piece(path, left);

		for (size_t i = 0; i < piece.bytes; i++)
			print_byte(out, (unsigned char)piece.text[i]);
		path += piece.taken;
		left -= piece.taken;
	}
	putc_unlocked('"', out);
}

static void print_key(FILE *out, const char *key, bool *first)
{
	if (!*first)
		fputs(", ", out);
	*first = false;
	rls_json_print_string(out, key);
	fputs(": ", out);
}

/* The columns of one element, without the braces. */
static void print_columns(FILE *out, const struct rls_columns *columns, const void *item)
{
	char number[RLS_COLUMN_NUMBER_BYTES];
	bool first = true;

	for (size_t i = 0; i < columns->column_count; i++) {
		const struct rls_column *column = &columns->columns[i];
		const char *text = rls_column_text(column, item, number);
		bool is_number = rls_column_is_number(column);

		if (column->optional && text && (!*text || (is_number && text[0] == '0')))
			continue;
		print_key(out, column->name, &first);
		if (!text || is_number)
			fputs(text ? text : "null", out);
		else
			rls_json_print_string(out, text);
	}
}

void rls_json_print_strings(FILE *out, const char *const *items, size_t count)
{
	putc('[', out);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", out);
		rls_json_print_string(out, items[i]);
	}
	putc(']', out);
}

/* --- what an element holds beside its columns --------------------------------------- */

static void print_process_rest(FILE *out, const void *item)
{
	const struct rls_process_entry *process = item;

	fputs(", \"cmdline\": ", out);
	rls_json_print_strings(out, process->cmdline, process->cmdline_count);
	fputs(", \"libraries\": [", out);
	for (size_t i = 0; i < process->library_count; i++) {
		const struct rls_library_entry *library = &process->libraries[i];

		fputs(i ? ", {\"path\": " : "{\"path\": ", out);
		rls_json_print_string(out, library->path);
		fputs(", \"role\": ", out);
		rls_json_print_string(out, library->role);
		fprintf(out, ", \"sites\": %" PRIu32 "}", library->sites);
	}
	putc(']', out);
}

static void print_gpu_rest(FILE *out, const void *item)
{
	const struct rls_gpu_entry *gpu = item;

	fputs(", \"by_launching_operation\": [", out);
	for (size_t i = 0; i < gpu->operation_count; i++) {
		const struct rls_gpu_operation *operation = &gpu->operations[i];

		fputs(i ? ", {\"phase\": " : "{\"phase\": ", out);
		rls_json_print_string(out, operation->phase);
		fputs(", \"operation\": ", out);
		rls_json_print_string(out, operation->operation);
		fprintf(out,
			", \"busy_ns\": %" PRIu64 ", \"kernels\": %" PRIu64
			", \"kernel_ns\": %" PRIu64 ", \"idle_host_late_ns\": %" PRIu64
			", \"idle_queue_ns\": %" PRIu64 ", \"idle_other_ns\": %" PRIu64 "}",
			operation->busy_ns, operation->kernels, operation->kernel_ns,
			operation->idle_host_late_ns, operation->idle_queue_ns,
			operation->idle_other_ns);
	}
	putc(']', out);
}

static void print_table(FILE *out, const struct rls_report *report, enum rls_report_table table)
{
	static void (*const rest[RLS_TABLE_MAX])(FILE *out, const void *item) = {
		[RLS_TABLE_PROCESSES] = print_process_rest,
		[RLS_TABLE_GPU] = print_gpu_rest,
	};
	const struct rls_columns *columns = &rls_report_columns[table];
	size_t count = rls_columns_count(columns, report);

	fprintf(out, "  \"%s\": [", columns->name);
	for (size_t i = 0; i < count; i++) {
		const void *item = rls_columns_item(columns, report, i);

		fputs(i ? ",\n    {" : "\n    {", out);
		print_columns(out, columns, item);
		if (rest[table])
			rest[table](out, item);
		putc('}', out);
	}
	fputs(count ? "\n  ],\n" : "],\n", out);
}

/* For what most recordings have nothing of. */
static void print_table_if_any(FILE *out, const struct rls_report *report,
			       enum rls_report_table table)
{
	if (rls_columns_count(&rls_report_columns[table], report))
		print_table(out, report, table);
}

/* --- the recording ------------------------------------------------------------------ */

static void print_head(FILE *out, const struct rls_report *report)
{
	fputs("  \"version\": 1,\n  \"tool\": ", out);
	rls_json_print_string(out, report->tool);
	fprintf(out, ",\n  \"duration_ns\": %" PRIu64 ",\n  \"complete\": %s,\n",
		report->end_ns - report->start_ns, report->complete ? "true" : "false");
	fputs("  \"host\": {\"kernel\": ", out);
	rls_json_print_string(out, report->kernel);
	fprintf(out, ", \"cpus\": %" PRIu32 ", \"gpus\": %s},\n", report->cpus, report->gpus);
}

static void print_budget(FILE *out, const struct rls_budget_entry *budget)
{
	fprintf(out,
		", \"budget\": {\"percent\": %.15g, \"windows\": %" PRIu64
		", \"traced_ns\": %" PRIu64 ", \"looks\": %" PRIu64
		", \"windowed_sites\": %" PRIu32 ", \"given_up_sites\": %" PRIu32
		", \"given_up_percent\": %.15g}",
		budget->percent, budget->windows, budget->traced_ns, budget->looks,
		budget->windowed_sites, budget->given_up_sites, budget->given_up_percent);
}

static void print_overhead(FILE *out, const struct rls_overhead *overhead)
{
	bool first = true;

	fprintf(out,
		"  \"overhead\": {\"hits\": %" PRIu64 ", \"events\": %" PRIu64
		", \"estimated_ns\": %" PRIu64 ", \"percent\": %.15g, \"calibration\": {",
		overhead->hits, overhead->events, overhead->estimated_ns, overhead->percent);
	for (size_t i = 0; i < overhead->calibration_count; i++) {
		const struct rls_calibration_entry *entry = &overhead->calibration[i];

		print_key(out, entry->name, &first);
		fprintf(out, "{\"ns\": %.15g, \"error_ns\": %.15g}", entry->value_ns,
			entry->error_ns);
	}
	putc('}', out);
	if (overhead->budget.percent > 0)
		print_budget(out, &overhead->budget);
	fputs("},\n", out);
}

static void print_tail(FILE *out, const struct rls_report *report)
{
	fputs("  \"losses\": [", out);
	for (size_t i = 0; i < report->loss_count; i++) {
		fputs(i ? ", {\"buffer\": " : "{\"buffer\": ", out);
		rls_json_print_string(out, report->losses[i].buffer);
		fprintf(out, ", \"dropped\": %" PRIu64 "}", report->losses[i].dropped);
	}
	fputs("],\n  \"warnings\": ", out);
	rls_json_print_strings(out, report->warnings, report->warning_count);
	putc('\n', out);
}

static int write_json(const struct rls_report *report, FILE *out,
		      const struct rls_write_options *options)
{
	fputs("{\n", out);
	print_head(out, report);
	print_table_if_any(out, report, RLS_TABLE_HOSTS);
	print_table(out, report, RLS_TABLE_PROCESSES);
	print_table(out, report, RLS_TABLE_THREADS);
	print_table(out, report, RLS_TABLE_BREAKDOWN);
	print_table(out, report, RLS_TABLE_TRANSITIONS);
	print_table(out, report, RLS_TABLE_OPERATIONS);
	print_table(out, report, RLS_TABLE_GPU);
	if (report->sample_count) {
		print_table(out, report, RLS_TABLE_LINES);
		print_table(out, report, RLS_TABLE_FUNCTIONS);
		print_table(out, report, RLS_TABLE_SAMPLES);
		print_table(out, report, RLS_TABLE_CROSS_CHECK);
	}
	print_table_if_any(out, report, RLS_TABLE_CUDA_CALLS);
	print_table_if_any(out, report, RLS_TABLE_CUDA_OPERATIONS);
	print_table_if_any(out, report, RLS_TABLE_GPU_CLOCKS);
	print_overhead(out, &report->overhead);
	print_tail(out, report);
	fputs("}\n", out);
	return 0;
}

const struct rls_report_writer rls_json_writer = {.name = "json", .write = write_json};

const char *rls_report_schema(void)
{
	return rls_report_schema_json;
}
