/* A comparison for people: a table for each trace that is compared with the first. */
#include <math.h>

#include "analysis/compare.h"
#include "analysis/writers/text_format.h"

#define NAME_WIDTH 24
#define TIME_WIDTH 10
#define ROWS_MAX 40             /* beyond, only what is significant is of interest */

static void print_time(FILE *out, const struct rls_compare_value *value, bool per_second)
{
	char text[RLS_TEXT_NUMBER_BYTES];

	putc(' ', out);
	rls_text_print_right(out, value->ns > 0 ? rls_text_ns(text, (uint64_t)llround(value->ns)) : "-",
			     TIME_WIDTH);
	fputs(value->ns > 0 && per_second ? "/s" : "  ", out);
}

static void print_row(FILE *out, const struct rls_compare_row *row)
{
	rls_text_print(out, *row->operation ? row->operation : "(no operation)", NAME_WIDTH);
	fprintf(out, " %-9s", rls_compare_row_category(row));
	print_time(out, &row->a, row->per_second);
	print_time(out, &row->b, row->per_second);
	if (!row->judged)
		fputs("  in one of the two only", out);
	else if (isfinite(row->error))
		fprintf(out, " %+8.1f%% %8.1f%%%s", 100 * row->change, 100 * row->error,
			row->significant ? " *" : "");
	else
		fprintf(out, " %+8.1f%%  unknown", 100 * row->change);
	putc('\n', out);
}

static void print_rows(FILE *out, const struct rls_comparison *comparison)
{
	fprintf(out, "\n%-*s %-9s  %10s   %10s %9s %9s\n", NAME_WIDTH, "operation", "category", "A",
		"B", "change", "± error");
	for (size_t i = 0; i < comparison->count; i++) {
		if (i < ROWS_MAX || comparison->rows[i].significant)
			print_row(out, &comparison->rows[i]);
	}
	if (comparison->count > ROWS_MAX)
		fprintf(out, "(%zu rows in all; --format json has every one)\n", comparison->count);
	if (comparison->significant_count)
		fputs("* beyond its error, and more than two runs of one program differ by\n", out);
	else
		fputs("No significant difference.\n", out);
}

static void print_head(FILE *out, char letter, const struct rls_compare_side *side)
{
	const struct rls_report *report = side->series->report;
	char duration[RLS_TEXT_NUMBER_BYTES];

	fprintf(out, "%c  ", letter);
	rls_text_print(out, side->name, 0);
	fprintf(out, ": %s recorded, %s\n", rls_text_ns(duration, report->end_ns - report->start_ns),
		report->complete ? "complete" : "INCOMPLETE");
	for (size_t i = 0; i < report->warning_count; i++) {
		fputs("   warning: ", out);
		rls_text_print(out, report->warnings[i], 0);
		putc('\n', out);
	}
}

void rls_compare_write_text(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options)
{
	for (size_t i = 1; i < count; i++) {
		if (i > 1)
			putc('\n', out);
		print_head(out, 'A', &sides[0]);
		print_head(out, 'B', &sides[i]);
		fprintf(out, "%s time per call of the operation, largest change first\n",
			rls_compare_metric_name(options->metric));
		print_rows(out, &sides[i].comparison);
	}
}
