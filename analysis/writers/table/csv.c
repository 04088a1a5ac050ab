/* The CSV form: one array of the report, headings as the JSON's keys, quoted by RFC 4180. Null is
 * an empty field. */
#include <stdio.h>
#include <string.h>

#include "analysis/writers/table/columns.h"
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

static int write_csv(const struct rls_report *report, FILE *out,
		     const struct rls_write_options *options)
{
	const struct rls_columns *columns = &rls_report_columns[options->table];
	struct rls_columns_place place = {0};
	char number[RLS_COLUMN_NUMBER_BYTES];
	const char *text;

	for (size_t i = 0; i < columns->column_count; i++)
		fprintf(out, "%s%s", i ? "," : "", columns->columns[i].name);
	putc('\n', out);
	while (rls_columns_next(columns, report, &place)) {
		for (size_t i = 0; i < columns->column_count; i++) {
			if (i)
				putc(',', out);
			text = rls_columns_text(&columns->columns[i], &place, number);
			print_field(out, text ? text : "");
		}
		putc('\n', out);
	}
	return 0;
}

const struct rls_report_writer rls_csv_writer = {.name = "csv", .write = write_csv};
