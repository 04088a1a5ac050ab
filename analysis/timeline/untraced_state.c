#include "analysis/timeline/untraced_state.h"

#include <math.h>
#include <string.h>

#include "analysis/base/student.h"

#define SIGMAS 1.96
#define WAITED_NS_A_SAMPLE 4e6 /* bpf/category_sample.bpf.h */
#define CONFIDENCE 0.95
/* An inferred category is held to be right with the weight of so many samples, of which such a share may still have
 * been something else: 0.1 to 2 % were in training jobs. */
#define TRUST_SAMPLES 10.0
#define TRUST_ERROR 0.03
/* A moment in which inferred categories have much in common. */
#define MOMENT_NS 50000000ULL

uint64_t rls_category_samples_sum(const uint64_t *values)
{
	uint64_t sum = 0;

	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		sum += values[i];
	return sum;
}

double rls_category_samples_waits(const struct rls_category_samples *waits)
{
	return fmax((double)rls_category_samples_sum(waits->count),
		    (double)rls_category_samples_sum(waits->ns) / WAITED_NS_A_SAMPLE);
}

void rls_category_samples_add(struct rls_category_samples *samples, enum rls_category inferred,
			      uint64_t ns)
{
	samples->count[inferred]++;
	samples->ns[inferred] += ns;
}

void rls_truth_end_moment(struct rls_truth *truth)
{
	for (int g = 0; g < RLS_CATEGORY_MAX; g++) {
		double samples = 0;

		for (int c = 0; c < RLS_CATEGORY_MAX; c++)
			samples += truth->now[g][c];
		for (int c = 0; c < RLS_CATEGORY_MAX; c++) {
			truth->squared[g][c] += (double)truth->now[g][c] * truth->now[g][c];
			truth->by_samples[g][c] += truth->now[g][c] * samples;
		}
		truth->samples_squared[g] += samples * samples;
		truth->moments[g] += samples > 0;
	}
	memset(truth->now, 0, sizeof(truth->now));
}

void rls_truth_add(struct rls_truth *truth, enum rls_category inferred, enum rls_category category,
		   uint64_t time_ns, uint32_t window)
{
	if (truth->window != window || time_ns - truth->since_ns >= MOMENT_NS) {
		rls_truth_end_moment(truth);
		truth->since_ns = time_ns;
		truth->window = window;
	}
	truth->count[inferred][category]++;
	truth->now[inferred][category]++;
}

/* P(category | inferred), and from how many samples it is known. */
double rls_truth_share(const struct rls_truth *truth, enum rls_category inferred,
		       enum rls_category category, double *known)
{
	double count = (double)rls_category_samples_sum(truth->count[inferred]);
	double trust = inferred == RLS_CATEGORY_UNKNOWN ? 0 : TRUST_SAMPLES;

	*known = count + trust;
	if (*known <= 0)
		return inferred == category;
	return ((double)truth->count[inferred][category] + (inferred == category ? trust : 0)) /
	       *known;
}

/* By how moments differ: of a ratio of sums over them, as of counts below. One sample that is unlike
 * all others tells nothing of that. */
static double variance_by_moments(const struct rls_truth *truth, int inferred, int category)
{
	double samples = (double)rls_category_samples_sum(truth->count[inferred]),
	       moments = truth->moments[inferred];
	double count = (double)truth->count[inferred][category];
	double p, squares, quantile;

	if (moments < 2 || count < 2 || samples - count < 2)
		return 0;
	p = count / samples;
	squares = truth->squared[inferred][category] -
		  2 * p * truth->by_samples[inferred][category] +
		  p * p * truth->samples_squared[inferred];
	quantile = rls_student_quantile(CONFIDENCE, moments - 1) / SIGMAS;
	return quantile * quantile * fmax(squares, 0) * moments / (moments - 1) /
	       (samples * samples);
}

/* That nothing else was seen is not that there is none. */
double rls_truth_variance(const struct rls_truth *truth, enum rls_category inferred,
			  enum rls_category category)
{
	double known, p = rls_truth_share(truth, inferred, category, &known);
	double error_share = TRUST_ERROR * TRUST_SAMPLES / fmax(known, TRUST_SAMPLES);
	double about = fmin(fmax(p, error_share), 1 - error_share);

	return fmax(about * (1 - about) / (known + 1),
		    variance_by_moments(truth, inferred, category));
}
