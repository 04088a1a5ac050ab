/* A comparison for people: a table for each trace that is compared with the first. */
#include <math.h>

#include "analysis/writers/compare/compare_writers.h"
#include "analysis/writers/text/text_format.h"

#define NAME_WIDTH 24
#define TIME_WIDTH 10
#define ROWS_MAX 40 /* beyond, only what is significant is of interest */

static void print_time(FILE *out, const struct rls_compare_value *value, enum rls_compare_unit unit)
{
	static const char *const marks[] = {
		[RLS_COMPARE_PER_CALL] = "  ",
		[RLS_COMPARE_PER_INNER_CALL] = "/i",
		[RLS_COMPARE_PER_SECOND] = "/s",
	};
	char text[RLS_TEXT_NUMBER_BYTES];

	putc(' ', out);
	rls_text_print_right(out,
			     value->ns > 0 ? rls_text_ns(text, (uint64_t)llround(value->ns)) : "-",
			     TIME_WIDTH);
	fputs(value->ns > 0 ? marks[unit] : "  ", out);
}

static void print_row(FILE *out, const struct rls_comparison *comparison,
		      const struct rls_compare_row *row)
{
	rls_text_print(out, *row->operation ? row->operation : "(no operation)", NAME_WIDTH);
	fprintf(out, " %-9s", rls_compare_row_category(row));
	print_time(out, &row->a, row->unit);
	print_time(out, &row->b, row->unit);
	if (!row->judged) {
		fputs("  not in every trace\n", out);
		return;
	}
	fprintf(out, " %+8.1f%%", 100 * row->change);
	if (comparison->normalised)
		fprintf(out, " %+8.1f%%", 100 * row->relative);
	if (isfinite(row->error))
		fprintf(out, " %7.1f%%%s", 100 * row->error, row->significant ? " *" : "");
	else
		fputs(" unknown", out);
	putc('\n', out);
}

static void print_speed(FILE *out, const struct rls_comparison *comparison)
{
	double percent = 100 * (comparison->speed - 1);

	if (!comparison->speed_known) {
		fputs("Too few figures to tell whether something slowed down or everything.\n",
		      out);
		return;
	}
	fprintf(out, "Common to all rows: %+.1f%% ± %.1f%% from A to B", percent,
		100 * comparison->speed * comparison->speed_error);
	fputs(comparison->normalised ? ", by the machine or by all of the program;\nchanges are "
				       "judged against that.\n"
				     : ".\n",
	      out);
}

static void print_rows(FILE *out, const struct rls_comparison *comparison)
{
	fprintf(out, "\n%-*s %-9s  %10s   %10s %9s", NAME_WIDTH, "operation", "category", "A", "B",
		"change");
	if (comparison->normalised)
		fputs("   vs. all", out);
	fputs("  ± error\n", out);
	for (size_t i = 0; i < comparison->count; i++) {
		if (i < ROWS_MAX || comparison->rows[i].significant)
			print_row(out, comparison, &comparison->rows[i]);
	}
	if (comparison->count > ROWS_MAX)
		fprintf(out, "(%zu rows in all; --format json has every one)\n", comparison->count);
	if (comparison->significant_count)
		fputs("* beyond its error, and more than two runs of one program differ by\n", out);
	else
		fputs("No significant difference.\n", out);
}

static void print_run(FILE *out, char letter, const struct rls_compare_run *run)
{
	const struct rls_report *report = run->series->report;
	char duration[RLS_TEXT_NUMBER_BYTES];

	fprintf(out, "%c  ", letter);
	rls_text_print(out, run->name, 0);
	fprintf(out, ": %s recorded, %s\n", rls_text_ns(duration, run->series->duration_ns),
		report->complete ? "complete" : "INCOMPLETE");
	for (size_t i = 0; i < report->warning_count; i++) {
		fputs("   warning: ", out);
		rls_text_print(out, report->warnings[i], 0);
		putc('\n', out);
	}
	if (run->series->cut)
		fputs("   warning: too many operations and phases: those seen last are left out\n",
		      out);
}

void rls_compare_write_text(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options)
{
	for (size_t i = 1; i < count; i++) {
		if (i > 1)
			putc('\n', out);
		for (size_t r = 0; r < sides[0].run_count; r++)
			print_run(out, 'A', &sides[0].runs[r]);
		for (size_t r = 0; r < sides[i].run_count; r++)
			print_run(out, 'B', &sides[i].runs[r]);
		fprintf(out,
			"%s time per call of the operation (/i: per call of those within it)\n",
			rls_compare_metric_name(options->metric));
		print_speed(out, &sides[i].comparison);
		print_rows(out, &sides[i].comparison);
	}
}
