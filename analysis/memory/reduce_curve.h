/* Reduction of a curve to few points by Ramer, Douglas and Peucker, keeping its maximum.
 *
 * The point farthest from the straight line between two kept ones is kept, if it is farther than a
 * tolerance. Distances are vertical, because the axes have different units. The tolerance is the
 * least at which few enough points remain. So the result depends on the points alone.
 * (U. Ramer, Comput. Graph. Image Process. 1, 1972; D. H. Douglas and T. K. Peucker, Cartographica
 * 10, 1973)
 */
#ifndef RLS_REDUCE_CURVE_H
#define RLS_REDUCE_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rls_curve_point {
	uint64_t time_ns;
	uint64_t bytes;
};

/* Sets kept[i] for at most `most` (>= 3) of the points, which are in order of time: the first, the
 * last and the first of the largest are among them. 0, or -ENOMEM. */
int rls_reduce_curve(const struct rls_curve_point *points, size_t count, size_t most, bool *kept);

#endif
