#include "analysis/base/student.h"

#include <math.h>

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

/* By Fisher's expansion, good to a per cent from 3 degrees on; exactly for 1 and 2, the lower
 * of which is taken for anything below 3. */
double rls_student_quantile(double confidence, double freedom)
{
	double z, z3, z5, z7;

	if (freedom < 2)
		return tan(M_PI / 2 * confidence);
	if (freedom < 3)
		return confidence * sqrt(2 / (1 - confidence * confidence));
	z = normal_quantile(confidence);
	z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
	return z + (z3 + z) / (4 * freedom) +
	       (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}
