#include "analysis/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/grow.h"

#define WINDOWS_MIN 4           /* fewer say nothing about variation */
#define CALLS_MIN 3
#define WEIGHT_MIN 0.001
#define CORRELATION_MAX 0.8
#define CONFIDENCE 0.95
#define NS_PER_S 1e9
/* What a calibration may be wrong by when the trace has none; as facts.h. */
#define CALIBRATION_ERROR_UNKNOWN 0.25

static const char *const metric_names[] = {
	[RLS_COMPARE_CORRECTED] = "corrected",
	[RLS_COMPARE_WALL] = "wall",
	[RLS_COMPARE_CPU] = "cpu",
};
_Static_assert(sizeof(metric_names) / sizeof(*metric_names) == RLS_COMPARE_METRIC_MAX,
	       "a name each");

/* One side of a row, before it is known how sure one must be. */
struct side {
	struct rls_compare_value value;
	double subtracted_ns;       /* per call, by the calibration */
	double standard_error_ns;   /* per call; INFINITY: not to be told */
	size_t windows;
	bool present;
};

const char *rls_compare_metric_name(enum rls_compare_metric metric)
{
	return metric_names[metric];
}

int rls_compare_metric_parse(const char *name, enum rls_compare_metric *out)
{
	for (int i = 0; i < RLS_COMPARE_METRIC_MAX; i++) {
		if (!strcmp(name, metric_names[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *rls_compare_row_category(const struct rls_compare_row *row)
{
	return row->category == RLS_COMPARE_TOTAL ? "total" : rls_category_name(row->category);
}

/* --- distributions ------------------------------------------------------------------ */

/* z with P(|Z| < z) = confidence. */
static double normal_quantile(double confidence)
{
	double low = 0, high = 40;

	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (erf(middle / sqrt(2)) < confidence)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Student's t of the same, by Fisher's expansion: good to a per cent from 3 degrees on. */
static double student_quantile(double confidence, double freedom)
{
	double z = normal_quantile(confidence);
	double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;

	return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

/* --- one side ----------------------------------------------------------------------- */

static const double *values_of(const struct rls_series_figure *figure,
			       enum rls_compare_metric metric)
{
	const double *const values[] = {
		[RLS_COMPARE_CORRECTED] = figure->corrected_ns,
		[RLS_COMPARE_WALL] = figure->wall_ns,
		[RLS_COMPARE_CPU] = figure->cpu_ns,
	};

	return values[metric];
}

/* Times of an operation in a category or in total, window by window. */
static void sum_windows(const struct rls_series *series, const char *operation, int category,
			enum rls_compare_metric metric, double *x, double *subtracted_ns)
{
	memset(x, 0, RLS_SERIES_WINDOWS * sizeof(*x));
	*subtracted_ns = 0;
	for (size_t i = 0; i < series->figure_count; i++) {
		const struct rls_series_figure *figure = &series->figures[i];
		const double *values = values_of(figure, metric);

		if (strcmp(figure->operation, operation) ||
		    (category != RLS_COMPARE_TOTAL && (int)figure->category != category))
			continue;
		for (size_t w = 0; w < series->window_count; w++) {
			x[w] += values[w];
			if (metric != RLS_COMPARE_WALL)
				*subtracted_ns += figure->wall_ns[w] - figure->corrected_ns[w];
		}
	}
}

static const double *find_calls(const struct rls_series *series, const char *operation)
{
	for (size_t i = 0; i < series->operation_count; i++) {
		if (!strcmp(series->operations[i].operation, operation))
			return series->operations[i].entries;
	}
	return NULL;
}

static double sum(const double *values, size_t count)
{
	double total = 0;

	for (size_t i = 0; i < count; i++)
		total += values[i];
	return total;
}

/* Of Σx/Σn. */
static double ratio_error(const double *x, const double *n, size_t count)
{
	double calls = sum(n, count), ratio = sum(x, count) / calls;
	double squares = 0, neighbours = 0, before = 0, correlation;

	if (count < WINDOWS_MIN || calls < CALLS_MIN)
		return INFINITY;
	for (size_t i = 0; i < count; i++) {
		double rest = x[i] - ratio * n[i];

		squares += rest * rest;
		neighbours += rest * before;
		before = rest;
	}
	correlation = squares > 0 ? fmax(0, fmin(neighbours / squares, CORRELATION_MAX)) : 0;
	return sqrt(squares * (double)count / (double)(count - 1) * (1 + correlation) /
		    (1 - correlation)) /
	       calls;
}

static double traced_ns(const struct rls_series *series, enum rls_compare_metric metric)
{
	double total = 0;

	for (size_t i = 0; i < series->figure_count; i++)
		total += sum(values_of(&series->figures[i], metric), series->window_count);
	return total;
}

static void measure(const struct rls_series *series, const struct rls_compare_row *row,
		    enum rls_compare_metric metric, struct side *side)
{
	double x[RLS_SERIES_WINDOWS], seconds[RLS_SERIES_WINDOWS], subtracted_ns, total_ns, calls;
	const double *n = find_calls(series, row->operation);
	size_t count = series->window_count;

	*side = (struct side){.windows = count};
	sum_windows(series, row->operation, row->category, metric, x, &subtracted_ns);
	total_ns = sum(x, count);
	for (size_t w = 0; w < RLS_SERIES_WINDOWS; w++)
		seconds[w] = (double)(w + 1 < count ? series->width_ns : series->last_width_ns) /
			     NS_PER_S;
	if (row->per_second)
		n = seconds;
	calls = n ? sum(n, count) : 0;
	if (total_ns <= 0 || calls <= 0)
		return;
	side->present = true;
	side->value.calls = calls;
	side->value.ns = total_ns / calls;
	side->value.share = total_ns / traced_ns(series, metric);
	side->subtracted_ns = subtracted_ns / calls;
	side->standard_error_ns = ratio_error(x, n, count);
	side->value.error_ns = side->standard_error_ns *
			       student_quantile(CONFIDENCE, (double)(count > 1 ? count - 1 : 1));
}

/* --- rows --------------------------------------------------------------------------- */

static double calibration_error(const struct rls_report *report)
{
	const struct rls_overhead *overhead = &report->overhead;
	double worst = 0;

	if (!overhead->calibration_count)
		return CALIBRATION_ERROR_UNKNOWN;
	for (size_t i = 0; i < overhead->calibration_count; i++) {
		const struct rls_calibration_entry *entry = &overhead->calibration[i];

		if (entry->value_ns > 0)
			worst = fmax(worst, entry->error_ns / entry->value_ns);
	}
	return fmin(worst, 1);
}

/* A lost event leaves its thread in doubt on either side. */
static double lost_share(const struct rls_report *report)
{
	double lost = 0;

	for (size_t i = 0; i < report->loss_count; i++)
		lost += (double)report->losses[i].dropped;
	return lost > 0 ? lost / (lost + (double)report->overhead.events) : 0;
}

static void judge(struct rls_compare_row *row, const struct side *a, const struct side *b,
		  const struct rls_series *left, const struct rls_series *right,
		  const struct rls_compare_options *options, size_t rows)
{
	size_t windows = a->windows < b->windows ? a->windows : b->windows;
	double freedom = windows > 1 ? (double)windows - 1 : 1;
	double sampling = hypot(a->standard_error_ns, b->standard_error_ns);
	/* One machine's calibration errs the same way in both: what counts is the difference. */
	double systematic = fmax(calibration_error(left->report), calibration_error(right->report)) *
				    fabs(a->subtracted_ns - b->subtracted_ns) +
			    lost_share(left->report) * a->value.ns +
			    lost_share(right->report) * b->value.ns;
	double strict = student_quantile(1 - (1 - CONFIDENCE) / (double)rows, freedom);
	double difference = b->value.ns - a->value.ns;

	row->judged = true;
	row->change = difference / a->value.ns;
	row->error = (sampling * student_quantile(CONFIDENCE, freedom) + systematic) / a->value.ns;
	row->weight = fabs(row->change) * a->value.share;
	row->significant = fabs(difference) > sampling * strict + systematic &&
			   fabs(row->change) > options->noise && row->weight >= WEIGHT_MIN;
}

static int by_weight(const void *left, const void *right)
{
	const struct rls_compare_row *a = left, *b = right;
	int order;

	if (a->significant != b->significant)
		return a->significant ? -1 : 1;
	if (a->judged != b->judged)
		return a->judged ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	order = strcmp(a->operation, b->operation);
	return order ? order : a->category - b->category;
}

static bool has_row(const struct rls_comparison *comparison, const char *operation, int category)
{
	for (size_t i = 0; i < comparison->count; i++) {
		if (comparison->rows[i].category == category &&
		    !strcmp(comparison->rows[i].operation, operation))
			return true;
	}
	return false;
}

static bool has_calls(const struct rls_series *series, const char *operation)
{
	const double *calls = find_calls(series, operation);

	return calls && sum(calls, series->window_count) > 0;
}

static int add_row(struct rls_comparison *out, size_t *capacity, const struct rls_series *a,
		   const struct rls_series *b, const char *operation, int category)
{
	int err;

	if (has_row(out, operation, category))
		return 0;
	err = rls_grow(&out->rows, capacity, out->count);
	if (err)
		return err;
	out->rows[out->count++] = (struct rls_compare_row){
		.operation = operation,
		.category = category,
		.per_second = !has_calls(a, operation) && !has_calls(b, operation),
	};
	return 0;
}

static int add_rows(struct rls_comparison *out, const struct rls_series *a,
		    const struct rls_series *b)
{
	const struct rls_series *series[] = {a, b};
	size_t capacity = 0;
	int err = 0;

	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; !err && i < series[s]->figure_count; i++) {
			const struct rls_series_figure *figure = &series[s]->figures[i];

			err = add_row(out, &capacity, a, b, figure->operation, RLS_COMPARE_TOTAL);
			if (!err)
				err = add_row(out, &capacity, a, b, figure->operation,
					      (int)figure->category);
		}
	}
	return err;
}

int rls_compare(const struct rls_series *a, const struct rls_series *b,
		const struct rls_compare_options *options, struct rls_comparison *out)
{
	struct rls_comparison comparison = {0};
	int err = add_rows(&comparison, a, b);

	for (size_t i = 0; !err && i < comparison.count; i++) {
		struct rls_compare_row *row = &comparison.rows[i];
		struct side left, right;

		measure(a, row, options->metric, &left);
		measure(b, row, options->metric, &right);
		row->a = left.value;
		row->b = right.value;
		if (left.present && right.present)
			judge(row, &left, &right, a, b, options, comparison.count);
		comparison.significant_count += row->significant;
	}
	if (err) {
		rls_comparison_free(&comparison);
		return err;
	}
	if (comparison.count)
		qsort(comparison.rows, comparison.count, sizeof(*comparison.rows), by_weight);
	*out = comparison;
	return 0;
}

void rls_comparison_free(struct rls_comparison *comparison)
{
	free(comparison->rows);
	*comparison = (struct rls_comparison){0};
}
