/* Curves of live bytes: what is kept in bounded memory, how it is reduced, and its trend. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/memory/live_curve.h"
#include "analysis/memory/reduce_curve.h"
#include "analysis/memory/trend.h"

#define SECOND 1000000000ull
#define POINTS 5000
#define MOST 100

/* Whatever the length and the start: of a figure that rises, each period has what it began with. */
static void test_curve_follows(void **unused)
{
	static const uint64_t lengths[] = {1, 1000000, SECOND, 3600 * SECOND, INT64_MAX / 2};

	for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
		struct rls_live_curve curve = {.start_ns = 77};
		uint64_t step = lengths[k] / 1000 ? lengths[k] / 1000 : 1, end = 77 + lengths[k];

		for (uint64_t i = 0; 77 + i * step <= end; i++)
			rls_live_curve_set(&curve, 77 + i * step, i);
		rls_live_curve_finish(&curve, end);
		assert_true(curve.count <= RLS_LIVE_CURVE_POINTS);
		if (lengths[k] >= SECOND)
			assert_true(curve.count >= RLS_LIVE_CURVE_POINTS / 2);
		for (uint32_t i = 0; i < curve.count; i++) {
			uint64_t began = i * curve.period_ns;

			assert_int_equal(curve.least[i], began / step);
		}
	}
}

/* What lasts for a moment is not in it. */
static void test_curve_has_the_least(void **unused)
{
	struct rls_live_curve curve = {0};

	for (uint64_t i = 0; i < 100000; i++)
		rls_live_curve_set(&curve, i * SECOND / 1000, i % 7 ? 1000 + i : 1000);
	rls_live_curve_finish(&curve, 100 * SECOND);
	for (uint32_t i = 1; i < curve.count; i++)
		assert_int_equal(curve.least[i], 1000);
	assert_int_equal(curve.now_bytes, 1000 + 99999);
	assert_int_equal(rls_live_curve_max(&curve), curve.now_bytes);
}

static void test_curves_add_up(void **unused)
{
	struct rls_live_curve a = {0}, b = {0}, both = {0}, later = {.start_ns = 5 * SECOND};
	uint64_t in_a = 0, in_b = 0;

	for (uint64_t t = 0; t < 10 * SECOND; t += SECOND / 97) {
		rls_live_curve_set(&a, t, in_a += (uint64_t)rand() % 100);
		rls_live_curve_set(&b, t, in_b += (uint64_t)rand() % 100);
		rls_live_curve_set(&both, t, in_a + in_b);
	}
	rls_live_curve_finish(&a, 10 * SECOND);
	rls_live_curve_finish(&b, 10 * SECOND);
	rls_live_curve_finish(&both, 10 * SECOND);
	rls_live_curve_add(&a, &b);
	assert_int_equal(a.count, both.count);
	assert_memory_equal(a.least, both.least, both.count * sizeof(*both.least));
	assert_int_equal(a.now_bytes, both.now_bytes);
	assert_int_equal(rls_live_curve_max(&a), a.now_bytes);
	/* Of a pid that was used twice the later curve stays. */
	rls_live_curve_set(&later, 6 * SECOND, 9);
	rls_live_curve_finish(&later, 7 * SECOND);
	rls_live_curve_add(&a, &later);
	assert_int_equal(rls_live_curve_max(&a), 9);
	rls_live_curve_add(&a, &both);
	assert_int_equal(rls_live_curve_max(&a), 9);
}

static void test_trend(void **unused)
{
	uint64_t line[60], steps[60], jump[60], ties[] = {1, 1, 2, 2, 3};
	struct rls_trend trend;

	for (uint64_t i = 0; i < 60; i++) {
		line[i] = 1000 + 7 * i;
		steps[i] = 1000 + i / 10 * 64;
		jump[i] = 1000 + 3 * i + (i == 30 ? 1000000 : 0);
	}
	trend = rls_trend_of(line, 60);
	assert_true(fabs(trend.slope - 7) < 1e-6 && trend.z > 8);
	trend = rls_trend_of(steps, 60);
	assert_true(fabs(trend.slope - 6.4) < 0.5 && trend.z > 5);
	trend = rls_trend_of(jump, 60); /* one value of sixty says nothing */
	assert_true(fabs(trend.slope - 3) < 0.1);
	/* S = 8, sigma² = (5·4·15 - 2·2·1·9) / 18 */
	trend = rls_trend_of(ties, 5);
	assert_true(fabs(trend.z - 7 / sqrt((300 - 36) / 18.0)) < 1e-9);
	assert_true(rls_trend_of(line, 1).z == 0 && rls_trend_of(line, 1).slope == 0);
	for (int i = 0; i < 60; i++)
		line[i] = UINT64_MAX - (uint64_t)i;
	trend = rls_trend_of(line, 60);
	assert_true(fabs(trend.slope + 1) < 1e-6 && trend.z < -8);
	assert_true(fabs(rls_normal_share(0) - 0.5) < 1e-12);
	assert_true(fabs(rls_normal_share(1.96) - 0.975) < 1e-3);
}

/* Values without a trend have a z like that of a normal distribution. */
static void test_no_trend(void **unused)
{
	double sum = 0, squares = 0;

	srand(1);
	for (int round = 0; round < 500; round++) {
		uint64_t values[40];
		double z;

		for (int i = 0; i < 40; i++)
			values[i] = (uint64_t)rand() % 1000;
		z = rls_trend_of(values, 40).z;
		sum += z;
		squares += z * z;
	}
	assert_true(fabs(sum / 500) < 0.2);
	assert_true(fabs(squares / 500 - 1) < 0.25);
}

static size_t count_kept(const bool *kept, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += kept[i];
	return sum;
}

/* How far the curve through the kept points is from the others at worst. */
static double worst_gap(const struct rls_curve_point *points, const bool *kept, size_t count)
{
	double worst = 0;

	for (size_t first = 0, last; first + 1 < count; first = last) {
		for (last = first + 1; !kept[last]; last++)
			;
		for (size_t i = first; i <= last; i++) {
			double share = (double)(points[i].time_ns - points[first].time_ns) /
				       (double)(points[last].time_ns - points[first].time_ns);
			double line =
				(double)points[first].bytes +
				share * ((double)points[last].bytes - (double)points[first].bytes);

			worst = fmax(worst, fabs((double)points[i].bytes - line));
		}
	}
	return worst;
}

static void test_reduction(void **unused)
{
	static struct rls_curve_point points[POINTS];
	static bool kept[POINTS];
	uint64_t bytes = 1 << 20, most = 0;

	for (size_t i = 0; i < POINTS; i++) {
		bytes += (uint64_t)rand() % 1000;
		if (i % 700 == 0)
			bytes /= 2;
		points[i] = (struct rls_curve_point){i * SECOND / 10, bytes};
		most = bytes > most ? bytes : most;
	}
	points[1234].bytes = most * 4; /* for one value only */
	assert_int_equal(rls_reduce_curve(points, POINTS, MOST, kept), 0);
	assert_true(count_kept(kept, POINTS) <= MOST);
	assert_true(kept[0] && kept[1234] && kept[POINTS - 1]);
	assert_true(worst_gap(points, kept, POINTS) < (double)most / 20);
}

static void test_reduction_of_little(void **unused)
{
	struct rls_curve_point points[MOST] = {{0}};
	bool kept[MOST];

	assert_int_equal(rls_reduce_curve(points, 0, MOST, kept), 0);
	for (size_t count = 1; count <= 4; count++) {
		assert_int_equal(rls_reduce_curve(points, count, MOST, kept), 0);
		assert_true(kept[0] && kept[count - 1]);
	}
	/* What lies on a line is no point; instants may be equal. */
	for (size_t i = 0; i < MOST; i++)
		points[i] = (struct rls_curve_point){i / 2 * 1000, 10 + i / 2 * 5};
	assert_int_equal(rls_reduce_curve(points, MOST, MOST, kept), 0);
	assert_true(count_kept(kept, MOST) <= 3);
	points[40].bytes += 100;
	assert_int_equal(rls_reduce_curve(points, MOST, MOST, kept), 0);
	assert_true(kept[40] && count_kept(kept, MOST) >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_curve_follows),
		cmocka_unit_test(test_curve_has_the_least),
		cmocka_unit_test(test_curves_add_up),
		cmocka_unit_test(test_trend),
		cmocka_unit_test(test_no_trend),
		cmocka_unit_test(test_reduction),
		cmocka_unit_test(test_reduction_of_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
