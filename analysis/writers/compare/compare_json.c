/* A comparison as JSON. */
#include <inttypes.h>
#include <math.h>

#include "analysis/writers/compare/compare_writers.h"
#include "analysis/writers/table/json_string.h"

/* JSON has no word for what is not known but this one. */
static void print_number(FILE *out, const char *key, double value)
{
	if (isfinite(value))
		fprintf(out, ", \"%s\": %.15g", key, value);
	else
		fprintf(out, ", \"%s\": null", key);
}

static void print_value(FILE *out, const char *key, const struct rls_compare_value *value)
{
	if (value->calls <= 0) {
		fprintf(out, ", \"%s\": null", key);
		return;
	}
	fprintf(out, ", \"%s\": {\"ns\": %.15g, \"calls\": %.15g, \"share\": %.15g", key, value->ns,
		value->calls, value->share);
	print_number(out, "error_ns", value->error_ns);
	putc('}', out);
}

static void print_row(FILE *out, const struct rls_compare_row *row)
{
	fputs("{\"operation\": ", out);
	rls_json_print_string(out, row->operation);
	fprintf(out, ", \"category\": \"%s\", \"per\": \"%s\"", rls_compare_row_category(row),
		rls_compare_unit_name(row->unit));
	print_value(out, "a", &row->a);
	print_value(out, "b", &row->b);
	print_number(out, "change_percent", row->judged ? 100 * row->change : NAN);
	print_number(out, "relative_percent", row->judged ? 100 * row->relative : NAN);
	print_number(out, "error_percent", row->judged ? 100 * row->error : NAN);
	fprintf(out, ", \"significant\": %s}", row->significant ? "true" : "false");
}

static void print_run(FILE *out, const struct rls_compare_run *run, size_t side)
{
	const struct rls_report *report = run->series->report;

	fputs("{\"trace\": ", out);
	rls_json_print_path(out, run->name);
	fprintf(out, ", \"side\": %zu, \"tool\": ", side);
	rls_json_print_string(out, report->tool);
	fprintf(out,
		", \"duration_ns\": %" PRIu64
		", \"complete\": %s, \"left_out\": %s, \"warnings\": ",
		run->series->duration_ns, report->complete ? "true" : "false",
		run->series->cut ? "true" : "false");
	rls_json_print_strings(out, report->warnings, report->warning_count);
	putc('}', out);
}

static void print_comparison(FILE *out, const struct rls_comparison *comparison, size_t side)
{
	fprintf(out, "{\"a\": 0, \"b\": %zu, \"judged\": \"%s\"", side,
		comparison->normalised ? "relative" : "change");
	print_number(out, "speed", comparison->speed_known ? comparison->speed : NAN);
	print_number(out, "speed_error_percent",
		     comparison->speed_known ? 100 * comparison->speed_error : NAN);
	fputs(", \"rows\": [", out);
	for (size_t r = 0; r < comparison->count; r++) {
		fputs(r ? ",\n    " : "\n    ", out);
		print_row(out, &comparison->rows[r]);
	}
	fputs("]}", out);
}

void rls_compare_write_json(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options)
{
	const char *separator = "\n  ";

	fprintf(out,
		"{\"version\": 1, \"metric\": \"%s\", \"noise_percent\": %.15g,\n\"traces\": [",
		rls_compare_metric_name(options->metric), 100 * options->noise);
	for (size_t i = 0; i < count; i++) {
		for (size_t r = 0; r < sides[i].run_count; r++) {
			fputs(separator, out);
			print_run(out, &sides[i].runs[r], i);
			separator = ",\n  ";
		}
	}
	fputs("],\n\"comparisons\": [", out);
	for (size_t i = 1; i < count; i++) {
		fputs(i > 1 ? ",\n  " : "\n  ", out);
		print_comparison(out, &sides[i].comparison, i);
	}
	fputs("]}\n", out);
}
