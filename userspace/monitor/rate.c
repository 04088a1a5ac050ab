#include "userspace/monitor/rate.h"

#include <math.h>

#include "analysis/base/student.h"

#define CONFIDENCE 0.95

void rls_rate_add(struct rls_rate *rate, double count, double time_ns)
{
	rate->stretches++;
	rate->counts += count;
	rate->time_ns += time_ns;
	rate->counts_squared += count * count;
	rate->counts_by_time += count * time_ns;
	rate->time_squared += time_ns * time_ns;
}

void rls_rate_age(struct rls_rate *rate, double keep)
{
	rate->stretches *= keep;
	rate->counts *= keep;
	rate->time_ns *= keep;
	rate->counts_squared *= keep;
	rate->counts_by_time *= keep;
	rate->time_squared *= keep;
}

double rls_rate_error(const struct rls_rate *rate)
{
	double per_ns, squares, freedom = rate->stretches - 1;

	if (freedom < 1 || rate->counts <= 0 || rate->time_ns <= 0)
		return 1;
	per_ns = rate->counts / rate->time_ns;
	squares = rate->counts_squared - 2 * per_ns * rate->counts_by_time +
		  per_ns * per_ns * rate->time_squared;
	squares *= rate->stretches / freedom;
	return fmin(rls_student_quantile(CONFIDENCE, freedom) * sqrt(fmax(squares, rate->counts)) /
			    rate->counts,
		    1);
}
