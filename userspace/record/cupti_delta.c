#include "userspace/record/cupti_delta.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/grow.h"
#include "analysis/student.h"

/* More names than CUDA has entry points that launch, copy or allocate are made up. */
#define NAMES_MAX 512
#define CALLS_MIN 5             /* of a name in a stretch, for a mean of it */
#define STRETCHES_MIN 3         /* of either kind */
#define CONFIDENCE 0.95
/* A cost that is less certain than that share of itself is worth less than none: calls that wait
 * for a GPU take as long as that does. */
#define CERTAIN 0.5

struct side {
	size_t stretches;
	double mean_ns, squares;        /* of the stretches' means (Welford) */
	uint64_t calls;
};

struct rls_cupti_calls {
	rls_string_id name;
	double sum_ns;                  /* of the stretch under way */
	uint64_t count;
	struct side sides[2];           /* plain, armed */
};

void rls_cupti_delta_clear(struct rls_cupti_delta *delta)
{
	free(delta->calls);
	*delta = (struct rls_cupti_delta){ 0 };
}

static void forget_stretch(struct rls_cupti_delta *delta)
{
	for (size_t i = 0; i < delta->count; i++) {
		delta->calls[i].sum_ns = 0;
		delta->calls[i].count = 0;
	}
}

void rls_cupti_delta_begin(struct rls_cupti_delta *delta, uint64_t from_ns, bool armed)
{
	forget_stretch(delta);
	delta->from_ns = from_ns;
	delta->armed = armed;
}

static void take_mean(struct side *side, double mean_ns, uint64_t calls)
{
	double off = mean_ns - side->mean_ns;

	side->stretches++;
	side->mean_ns += off / (double)side->stretches;
	side->squares += off * (mean_ns - side->mean_ns);
	side->calls += calls;
}

void rls_cupti_delta_end(struct rls_cupti_delta *delta)
{
	for (size_t i = 0; delta->from_ns && i < delta->count; i++) {
		struct rls_cupti_calls *calls = &delta->calls[i];

		if (calls->count >= CALLS_MIN)
			take_mean(&calls->sides[delta->armed],
				  calls->sum_ns / (double)calls->count, calls->count);
	}
	forget_stretch(delta);
	delta->from_ns = 0;
}

static int find(struct rls_cupti_delta *delta, rls_string_id name, struct rls_cupti_calls **out)
{
	for (size_t i = 0; i < delta->count; i++) {
		if (delta->calls[i].name == name) {
			*out = &delta->calls[i];
			return 0;
		}
	}
	*out = NULL;
	if (delta->count == NAMES_MAX)
		return 0;
	if (rls_grow(&delta->calls, &delta->room, delta->count))
		return -ENOMEM;
	*out = &delta->calls[delta->count++];
	**out = (struct rls_cupti_calls){ .name = name };
	return 0;
}

int rls_cupti_delta_add(struct rls_cupti_delta *delta, rls_string_id name, uint64_t start_ns,
			uint64_t duration_ns)
{
	struct rls_cupti_calls *calls;
	int r;

	if (!delta->from_ns || start_ns < delta->from_ns)
		return 0;
	r = find(delta, name, &calls);
	if (r || !calls)
		return r;
	calls->sum_ns += (double)duration_ns;
	calls->count++;
	return 0;
}

static double variance_of_mean(const struct side *side)
{
	double n = (double)side->stretches;

	return side->squares / (n - 1) / n;
}

/* The difference of the two means, by Welch. False: it is not known. */
static bool compare(const struct rls_cupti_calls *calls, struct rls_cupti_cost *out)
{
	const struct side *plain = &calls->sides[0], *armed = &calls->sides[1];
	double variances[2], sum, freedom;

	if (plain->stretches < STRETCHES_MIN || armed->stretches < STRETCHES_MIN)
		return false;
	variances[0] = variance_of_mean(plain);
	variances[1] = variance_of_mean(armed);
	sum = variances[0] + variances[1];
	freedom = sum > 0 ? sum * sum / (variances[0] * variances[0] / (double)(plain->stretches - 1) +
					 variances[1] * variances[1] / (double)(armed->stretches - 1)) :
			    1;
	*out = (struct rls_cupti_cost){
		.name = calls->name,
		.ns = armed->mean_ns - plain->mean_ns,
		.error_ns = rls_student_quantile(CONFIDENCE, freedom) * sqrt(sum),
		.plain_ns = plain->mean_ns,
		.calls = plain->calls + armed->calls,
	};
	return out->ns > 0 && out->error_ns <= CERTAIN * out->ns;
}

static int by_calls(const void *left, const void *right)
{
	const struct rls_cupti_calls *a = *(const struct rls_cupti_calls *const *)left;
	const struct rls_cupti_calls *b = *(const struct rls_cupti_calls *const *)right;
	uint64_t more = a->sides[0].calls + a->sides[1].calls;
	uint64_t less = b->sides[0].calls + b->sides[1].calls;

	return (more < less) - (more > less);
}

size_t rls_cupti_delta_conclude(const struct rls_cupti_delta *delta, struct rls_cupti_cost *out,
				size_t max)
{
	const struct rls_cupti_calls *sorted[NAMES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < delta->count; i++)
		sorted[i] = &delta->calls[i];
	if (delta->count)
		qsort(sorted, delta->count, sizeof(sorted[0]), by_calls);
	for (size_t i = 0; i < delta->count && count < max; i++)
		count += compare(sorted[i], &out[count]);
	return count;
}
