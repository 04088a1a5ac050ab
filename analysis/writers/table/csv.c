/* The CSV form: one array of the report, headings as the JSON's keys, quoted by RFC 4180. Null is
 * an empty field. */
#include <stdio.h>
#include <string.h>

#include "analysis/report/tables.h"
#include "analysis/writers/writer.h"

static void print_field(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void print_row(FILE *out, const struct rls_table *table, const struct rls_table_place *place)
{
	char number[RLS_COLUMN_NUMBER_BYTES];
	bool first = true;

	for (size_t i = 0; i < table->column_count; i++) {
		const struct rls_column *column = &table->columns[i];
		const char *text;

		if (!rls_column_is_flat(column))
			continue;
		fputs(first ? "" : ",", out);
		first = false;
		/* Without a place, the headings. */
		text = place ? rls_column_text(column, place, number) : column->name;
		print_field(out, text ? text : "");
	}
	putc('\n', out);
}

static int write_csv(const struct rls_report *report, FILE *out,
		     const struct rls_write_options *options)
{
	const struct rls_table *table = &rls_report_tables[options->table];
	struct rls_table_place place = {0};

	print_row(out, table, NULL);
	while (rls_table_next(report, options->table, &place))
		print_row(out, table, &place);
	return 0;
}

const struct rls_report_writer rls_csv_writer = {.name = "csv", .write = write_csv};
