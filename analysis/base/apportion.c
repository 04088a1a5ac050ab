#include "analysis/base/apportion.h"

#include <math.h>

/* Each fraction is carried on to the next part. The largest takes what rounding leaves: the
 * last one may be without a share. */
void rls_apportion(uint64_t total, const double *weights, size_t count, uint64_t *parts)
{
	uint64_t rest = total;
	size_t largest = 0;
	double left = 0;

	for (size_t i = 0; i < count; i++) {
		left += weights[i];
		largest = weights[i] > weights[largest] ? i : largest;
	}
	for (size_t i = 0; i < count; i++) {
		double part = left > 0 ? (double)rest * fmin(weights[i] / left, 1) : 0;

		parts[i] = weights[i] > 0 ? (uint64_t)llround(part) : 0;
		if (parts[i] > rest)
			parts[i] = rest;
		rest -= parts[i];
		left -= weights[i];
	}
	parts[largest] += rest;
}
