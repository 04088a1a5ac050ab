/* JSON Lines: each row of each table as an object, with its table's name.
 *
 * {"table":"breakdown","pid":1,...}   The keys are the CSV's headings; no object holds another.
 */
#include <stdio.h>

#include "analysis/report/tables.h"
#include "analysis/writers/table/json_string.h"
#include "analysis/writers/writer.h"

static void print_row(FILE *out, const struct rls_table *table, const struct rls_table_place *place)
{
	char number[RLS_COLUMN_NUMBER_BYTES];

	fprintf(out, "{\"table\":\"%s\"", table->name);
	for (size_t i = 0; i < table->column_count; i++) {
		const struct rls_column *column = &table->columns[i];
		const char *text;

		if (!rls_column_is_flat(column))
			continue;
		text = rls_column_text(column, place, number);
		fprintf(out, ",\"%s\":", column->name);
		if (!text || rls_column_is_number(column))
			fputs(text ? text : "null", out);
		else
			rls_json_print_string(out, text);
	}
	fputs("}\n", out);
}

static void print_table(FILE *out, const struct rls_report *report, enum rls_report_table table)
{
	struct rls_table_place place = {0};

	while (rls_table_next(report, table, &place))
		print_row(out, &rls_report_tables[table], &place);
}

/* What a reader should know first comes first. */
static int write_jsonl(const struct rls_report *report, FILE *out,
		       const struct rls_write_options *options)
{
	if (options->one_table) {
		print_table(out, report, options->table);
		return 0;
	}
	print_table(out, report, RLS_TABLE_RECORDING);
	print_table(out, report, RLS_TABLE_WARNINGS);
	for (int table = 0; table < RLS_TABLE_MAX; table++) {
		if (table != RLS_TABLE_RECORDING && table != RLS_TABLE_WARNINGS)
			print_table(out, report, table);
	}
	return 0;
}

const struct rls_report_writer rls_jsonl_writer = {.name = "jsonl", .write = write_jsonl};
