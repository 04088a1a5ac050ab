#include "analysis/memory/trend.h"

#include <math.h>
#include <stdlib.h>

#define PAIRS_MAX (RLS_TREND_VALUES_MAX * (RLS_TREND_VALUES_MAX - 1) / 2)

static int order_floats(const void *left, const void *right)
{
	float a = *(const float *)left, b = *(const float *)right;

	return (a > b) - (a < b);
}

static int order_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static double difference(uint64_t later, uint64_t earlier)
{
	return later >= earlier ? (double)(later - earlier) : -(double)(earlier - later);
}

/* n (n - 1) (2n + 5) */
static double spread(double n)
{
	return n * (n - 1) * (2 * n + 5);
}

/* sigma of S. */
static double deviation(const uint64_t *values, size_t count)
{
	uint64_t sorted[RLS_TREND_VALUES_MAX];
	double sum = spread((double)count);

	for (size_t i = 0; i < count; i++)
		sorted[i] = values[i];
	qsort(sorted, count, sizeof(*sorted), order_numbers);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && sorted[end] == sorted[i]; end++)
			;
		sum -= spread((double)(end - i));
	}
	return sqrt(sum > 0 ? sum / 18 : 0);
}

static double median(float *values, size_t count)
{
	qsort(values, count, sizeof(*values), order_floats);
	return ((double)values[(count - 1) / 2] + (double)values[count / 2]) / 2;
}

struct rls_trend rls_trend_of(const uint64_t *values, size_t count)
{
	float slopes[PAIRS_MAX]; /* 7 digits are more than a slope is known to */
	struct rls_trend trend = {0};
	size_t pairs = 0;
	double s = 0, sigma;

	if (count > RLS_TREND_VALUES_MAX) {
		values += count - RLS_TREND_VALUES_MAX;
		count = RLS_TREND_VALUES_MAX;
	}
	if (count < 2)
		return trend;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = i + 1; k < count; k++) {
			s += (values[k] > values[i]) - (values[k] < values[i]);
			slopes[pairs++] =
				(float)(difference(values[k], values[i]) / (double)(k - i));
		}
	}
	trend.slope = median(slopes, pairs);
	sigma = deviation(values, count);
	if (sigma > 0 && s != 0)
		trend.z = (s > 0 ? s - 1 : s + 1) / sigma;
	return trend;
}

double rls_normal_share(double z)
{
	return erfc(-z / sqrt(2)) / 2;
}
