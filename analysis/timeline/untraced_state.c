#include "analysis/timeline/untraced_state.h"

#include <math.h>
#include <string.h>

#include "analysis/base/student.h"

#define SIGMAS 1.96
#define WAITED_NS_A_SAMPLE 4e6 /* bpf/category_sample.bpf.h */
#define CONFIDENCE 0.95
/* A guess is held to be right with the weight of so many looks, of which such a share may still have
 * been something else: 0.1 to 2 % were in training jobs. */
#define TRUST_LOOKS 10.0
#define TRUST_DOUBT 0.03
/* A moment in which guesses have much in common. */
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

void rls_category_samples_add(struct rls_category_samples *looks, enum rls_category guess,
			      uint64_t ns)
{
	looks->count[guess]++;
	looks->ns[guess] += ns;
}

void rls_truth_end_moment(struct rls_truth *truth)
{
	for (int g = 0; g < RLS_CATEGORY_MAX; g++) {
		double looks = 0;

		for (int c = 0; c < RLS_CATEGORY_MAX; c++)
			looks += truth->now[g][c];
		for (int c = 0; c < RLS_CATEGORY_MAX; c++) {
			truth->squared[g][c] += (double)truth->now[g][c] * truth->now[g][c];
			truth->by_looks[g][c] += truth->now[g][c] * looks;
		}
		truth->looks_squared[g] += looks * looks;
		truth->moments[g] += looks > 0;
	}
	memset(truth->now, 0, sizeof(truth->now));
}

void rls_truth_add(struct rls_truth *truth, enum rls_category guess, enum rls_category category,
		   uint64_t time_ns, uint32_t window)
{
	if (truth->window != window || time_ns - truth->since_ns >= MOMENT_NS) {
		rls_truth_end_moment(truth);
		truth->since_ns = time_ns;
		truth->window = window;
	}
	truth->count[guess][category]++;
	truth->now[guess][category]++;
}

/* P(category | guess), and from how many looks it is known. */
double rls_truth_share(const struct rls_truth *truth, enum rls_category guess,
		       enum rls_category category, double *known)
{
	double count = (double)rls_category_samples_sum(truth->count[guess]);
	double trust = guess == RLS_CATEGORY_UNKNOWN ? 0 : TRUST_LOOKS;

	*known = count + trust;
	if (*known <= 0)
		return guess == category;
	return ((double)truth->count[guess][category] + (guess == category ? trust : 0)) / *known;
}

/* By how moments differ: of a ratio of sums over them, as of counts below. One look that is unlike
 * all others tells nothing of that. */
static double variance_by_moments(const struct rls_truth *truth, int guess, int category)
{
	double looks = (double)rls_category_samples_sum(truth->count[guess]),
	       moments = truth->moments[guess];
	double count = (double)truth->count[guess][category];
	double p, squares, quantile;

	if (moments < 2 || count < 2 || looks - count < 2)
		return 0;
	p = count / looks;
	squares = truth->squared[guess][category] - 2 * p * truth->by_looks[guess][category] +
		  p * p * truth->looks_squared[guess];
	quantile = rls_student_quantile(CONFIDENCE, moments - 1) / SIGMAS;
	return quantile * quantile * fmax(squares, 0) * moments / (moments - 1) / (looks * looks);
}

/* That nothing else was seen is not that there is none. */
double rls_truth_variance(const struct rls_truth *truth, enum rls_category guess,
			  enum rls_category category)
{
	double known, p = rls_truth_share(truth, guess, category, &known);
	double doubt = TRUST_DOUBT * TRUST_LOOKS / fmax(known, TRUST_LOOKS);
	double about = fmin(fmax(p, doubt), 1 - doubt);

	return fmax(about * (1 - about) / (known + 1), variance_by_moments(truth, guess, category));
}
