/* The JSON form: the contract of report.schema.json, one row a line.
 *
 * Printed rather than built: integers stay exact beyond 2^53 and a report of a million rows
 * needs no second copy in memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/base/utf8.h"
#include "analysis/report/tables.h"
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

void rls_json_print_strings(FILE *out, const char *const *items, size_t count)
{
	putc('[', out);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", " : "", out);
		rls_json_print_string(out, items[i]);
	}
	putc(']', out);
}

/* --- tables ------------------------------------------------------------------------- */

static void print_value(FILE *out, const struct rls_column *column,
			const struct rls_table_place *place)
{
	char number[RLS_COLUMN_NUMBER_BYTES];
	const char *text;
	size_t count;

	if (column->type == RLS_COLUMN_STRINGS) {
		const char *const *strings = rls_column_strings(column, place, &count);

		rls_json_print_strings(out, strings, count);
		return;
	}
	text = rls_column_text(column, place, number);
	if (!text || rls_column_is_number(column))
		fputs(text ? text : "null", out);
	else
		rls_json_print_string(out, text);
}

static bool is_left_out(const struct rls_column *column, const struct rls_table_place *place)
{
	struct rls_value value;

	if (column->flags & (RLS_HIDDEN | RLS_OUTER))
		return true;
	if (!(column->flags & RLS_OPTIONAL))
		return false;
	value = rls_column_value(column, place);
	return rls_value_is_empty(&value);
}

/* The columns of one row, without the braces. */
static void print_columns(FILE *out, const struct rls_table *table,
			  const struct rls_table_place *place)
{
	bool first = true;

	for (size_t i = 0; i < table->column_count; i++) {
		const struct rls_column *column = &table->columns[i];

		if (is_left_out(column, place))
			continue;
		print_key(out, column->name, &first);
		print_value(out, column, place);
	}
}

/* The rows that a row holds, in its line; *place is at the first of them, or at none of them. */
static void print_inner(FILE *out, const struct rls_report *report, enum rls_report_table table,
			const void *outer, struct rls_table_place *place)
{
	const struct rls_table *of = &rls_report_tables[table];
	bool first = true;

	fprintf(out, ", \"%s\": [", of->json_name);
	for (; place->outer == outer && place->row; rls_table_next(report, table, place)) {
		fputs(first ? "{" : ", {", out);
		first = false;
		print_columns(out, of, place);
		putc('}', out);
	}
	putc(']', out);
}

/* The table that the rows of this one hold; RLS_TABLE_ALL: none. No table of JSON's has two. */
static enum rls_report_table inner_of(enum rls_report_table outer)
{
	int table = 0;

	while (table < RLS_TABLE_MAX &&
	       !(rls_report_tables[table].json_name && rls_report_tables[table].outer == outer))
		table++;
	return table < RLS_TABLE_MAX ? (enum rls_report_table)table : RLS_TABLE_ALL;
}

static void print_table(FILE *out, const struct rls_report *report, enum rls_report_table table)
{
	const struct rls_table *of = &rls_report_tables[table];
	enum rls_report_table inner = inner_of(table);
	struct rls_table_place place = {0}, held = {0};
	bool any = false;

	if (inner != RLS_TABLE_ALL)
		rls_table_next(report, inner, &held);
	fprintf(out, "  \"%s\": [", of->name);
	while (rls_table_next(report, table, &place)) {
		fputs(any ? ",\n    {" : "\n    {", out);
		any = true;
		print_columns(out, of, &place);
		if (inner != RLS_TABLE_ALL)
			print_inner(out, report, inner, place.row, &held);
		putc('}', out);
	}
	fputs(any ? "\n  ],\n" : "],\n", out);
}

static bool is_printed(const struct rls_report *report, enum rls_report_table table)
{
	switch (rls_report_tables[table].json_when) {
	case RLS_JSON_ANY:
		return rls_table_count(report, table) > 0;
	case RLS_JSON_SAMPLED:
		return report->sample_count > 0;
	default:
		return true;
	}
}

/* In the order of their places. */
static void print_tables(FILE *out, const struct rls_report *report)
{
	for (unsigned int place = 1; place <= RLS_TABLE_MAX; place++) {
		for (int table = 0; table < RLS_TABLE_MAX; table++) {
			if (rls_report_tables[table].json == place && is_printed(report, table))
				print_table(out, report, table);
		}
	}
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
		", \"traced_ns\": %" PRIu64 ", \"looks\": %" PRIu64 ", \"windowed_sites\": %" PRIu32
		", \"given_up_sites\": %" PRIu32 ", \"given_up_percent\": %.15g}",
		budget->percent, budget->windows, budget->traced_ns, budget->samples,
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
	if (overhead->calibration_source)
		fprintf(out, ", \"calibration_source\": \"%s\"",
			rls_report_calibration_name(overhead->calibration_source));
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
	print_tables(out, report);
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
