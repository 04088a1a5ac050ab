/* Rate: how often something happens in a time, estimated from random windows, and its error. Pure.
 *
 * A ratio estimate over windows of unequal length (Cochran, Sampling Techniques, ch. 6): the rate is all
 * counts over all time, and its error comes from how the windows' counts differ from it.
 */
#ifndef RLS_MONITOR_RATE_H
#define RLS_MONITOR_RATE_H

/* Zeroed is empty. */
struct rls_rate {
	double stretches, counts, time_ns;
	double counts_squared, counts_by_time, time_squared;
};

void rls_rate_add(struct rls_rate *rate, double count, double time_ns);

/* What was known counts for so much of itself. */
void rls_rate_age(struct rls_rate *rate, double keep);

/* Half width of 95 %, as a share of the rate; 1, all of it, where nothing can be said. */
double rls_rate_error(const struct rls_rate *rate);

#endif
