#include "analysis/memory/reduce_curve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

/* A stretch between two kept points, and the point in it that is farthest from the line. */
struct stretch {
	size_t first, last, farthest;
	double distance; /* negative: nothing lies between */
};

static double distance_at(const struct rls_curve_point *points, size_t first, size_t last, size_t i)
{
	double width = (double)(points[last].time_ns - points[first].time_ns);
	double share = width > 0 ? (double)(points[i].time_ns - points[first].time_ns) / width : 0;
	double on_line = (double)points[first].bytes +
			 share * ((double)points[last].bytes - (double)points[first].bytes);

	return fabs((double)points[i].bytes - on_line);
}

static struct stretch stretch_of(const struct rls_curve_point *points, size_t first, size_t last)
{
	struct stretch stretch = {first, last, first, -1};

	for (size_t i = first + 1; i < last; i++) {
		double distance = distance_at(points, first, last, i);

		if (distance > stretch.distance) {
			stretch.distance = distance;
			stretch.farthest = i;
		}
	}
	return stretch;
}

static size_t largest(const struct rls_curve_point *points, size_t count)
{
	size_t best = 0;

	for (size_t i = 1; i < count; i++) {
		if (points[i].bytes > points[best].bytes)
			best = i;
	}
	return best;
}

/* The stretch to be divided next: that with the farthest point, the first of equals. */
static size_t worst_of(const struct stretch *stretches, size_t count)
{
	size_t worst = 0;

	for (size_t i = 1; i < count; i++) {
		if (stretches[i].distance > stretches[worst].distance ||
		    (stretches[i].distance == stretches[worst].distance &&
		     stretches[i].first < stretches[worst].first))
			worst = i;
	}
	return worst;
}

/* Divides stretches, the worst first, until there are enough points or each lies on its line: the
 * recursion at the largest distance that is left. */
int rls_reduce_curve(const struct rls_curve_point *points, size_t count, size_t most, bool *kept)
{
	_cleanup_free_ struct stretch *stretches = calloc(most + 1, sizeof(*stretches));
	size_t peak = largest(points, count), stretch_count = 0, have = 0;

	if (!stretches)
		return -ENOMEM;
	memset(kept, 0, count * sizeof(*kept));
	if (!count)
		return 0;
	kept[0] = kept[peak] = kept[count - 1] = true;
	have = (size_t)1 + (peak != 0) + (count > 1 && peak != count - 1);
	if (peak)
		stretches[stretch_count++] = stretch_of(points, 0, peak);
	if (peak != count - 1)
		stretches[stretch_count++] = stretch_of(points, peak, count - 1);
	while (have < most && stretch_count) {
		struct stretch *worst = &stretches[worst_of(stretches, stretch_count)];
		struct stretch divided = *worst;

		if (divided.distance <= 0)
			break;
		kept[divided.farthest] = true;
		have++;
		*worst = stretch_of(points, divided.first, divided.farthest);
		stretches[stretch_count++] = stretch_of(points, divided.farthest, divided.last);
	}
	return 0;
}
