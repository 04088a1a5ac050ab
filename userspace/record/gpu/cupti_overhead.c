#include "userspace/record/gpu/cupti_overhead.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/base/student.h"
#include "userspace/base/jitter.h"

/* More than CUDA has entry points that launch, copy or allocate. */
#define NAMES_MAX 512
#define CALLS_MIN 5 /* of a name in a period, for a mean of it */
#define CALLS_KEPT 4096 /* of more, so many are drawn */
#define PAIRS_MIN 3
#define CONFIDENCE 0.95
/* Costs with a larger relative error are not used: calls that wait for a GPU take as long as its work. */
#define CERTAIN 0.5

struct rls_cupti_calls {
	rls_string_id name;
	uint64_t *kept_ns; /* durations in the current period */
	size_t kept, room;
	uint64_t count;
	double before_ns; /* its mean in the period before; 0: none, or it is in a pair already */
	bool before_armed;
	size_t pairs;
	double more_ns, squares; /* of pairs: what it takes longer armed (Welford) */
	double plain_ns; /* sum of the pairs' */
	uint64_t calls;
};

void rls_cupti_overhead_clear(struct rls_cupti_overhead *overhead)
{
	for (size_t i = 0; i < overhead->count; i++)
		free(overhead->calls[i].kept_ns);
	free(overhead->calls);
	*overhead = (struct rls_cupti_overhead){0};
}

static void forget_period(struct rls_cupti_overhead *overhead)
{
	for (size_t i = 0; i < overhead->count; i++) {
		overhead->calls[i].kept = 0;
		overhead->calls[i].count = 0;
	}
}

void rls_cupti_overhead_begin(struct rls_cupti_overhead *overhead, uint64_t from_ns, bool armed)
{
	forget_period(overhead);
	overhead->from_ns = from_ns;
	overhead->armed = armed;
	if (!overhead->random)
		overhead->random = from_ns | 1;
}

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* The mean of the quicker half. Sorts what was kept. */
static double quicker_mean(struct rls_cupti_calls *calls)
{
	size_t half = (calls->kept + 1) / 2;
	double sum_ns = 0;

	qsort(calls->kept_ns, calls->kept, sizeof(*calls->kept_ns), compare_numbers);
	for (size_t i = 0; i < half; i++)
		sum_ns += (double)calls->kept_ns[i];
	return sum_ns / (double)half;
}

/* Two neighbouring periods are a pair: what the machine does for longer affects both. */
static void take_pair(struct rls_cupti_calls *calls, double plain_ns, double armed_ns)
{
	double off = armed_ns - plain_ns - calls->more_ns;

	calls->pairs++;
	calls->more_ns += off / (double)calls->pairs;
	calls->squares += off * (armed_ns - plain_ns - calls->more_ns);
	calls->plain_ns += plain_ns;
}

static void take_mean(struct rls_cupti_calls *calls, double mean_ns, bool armed)
{
	calls->calls += calls->count;
	if (calls->before_ns > 0 && calls->before_armed != armed) {
		take_pair(calls, armed ? calls->before_ns : mean_ns,
			  armed ? mean_ns : calls->before_ns);
		calls->before_ns = 0;
	} else {
		calls->before_ns = mean_ns;
		calls->before_armed = armed;
	}
}

void rls_cupti_overhead_end(struct rls_cupti_overhead *overhead)
{
	for (size_t i = 0; overhead->from_ns && i < overhead->count; i++) {
		struct rls_cupti_calls *calls = &overhead->calls[i];

		if (calls->count >= CALLS_MIN)
			take_mean(calls, quicker_mean(calls), overhead->armed);
		else
			calls->before_ns = 0;
	}
	forget_period(overhead);
	overhead->from_ns = 0;
}

static int find(struct rls_cupti_overhead *overhead, rls_string_id name,
		struct rls_cupti_calls **out)
{
	for (size_t i = 0; i < overhead->count; i++) {
		if (overhead->calls[i].name == name) {
			*out = &overhead->calls[i];
			return 0;
		}
	}
	*out = NULL;
	if (overhead->count == NAMES_MAX)
		return 0;
	if (rls_grow(&overhead->calls, &overhead->room, overhead->count))
		return -ENOMEM;
	*out = &overhead->calls[overhead->count++];
	**out = (struct rls_cupti_calls){.name = name};
	return 0;
}

/* Of many calls each is kept with the same probability (reservoir sampling; Vitter, 1985, algorithm R). */
static int keep(struct rls_cupti_overhead *overhead, struct rls_cupti_calls *calls,
		uint64_t duration_ns)
{
	calls->count++;
	if (calls->kept == CALLS_KEPT) {
		uint64_t place = rls_random_between(&overhead->random, 0, calls->count);

		if (place < CALLS_KEPT)
			calls->kept_ns[place] = duration_ns;
		return 0;
	}
	if (rls_grow(&calls->kept_ns, &calls->room, calls->kept))
		return -ENOMEM;
	calls->kept_ns[calls->kept++] = duration_ns;
	return 0;
}

int rls_cupti_overhead_add(struct rls_cupti_overhead *overhead, rls_string_id name,
			   uint64_t start_ns, uint64_t duration_ns)
{
	struct rls_cupti_calls *calls;
	int r;

	if (!overhead->from_ns || start_ns < overhead->from_ns)
		return 0;
	r = find(overhead, name, &calls);
	if (r || !calls)
		return r;
	return keep(overhead, calls, duration_ns);
}

/* The mean of the pairs' differences. False: it is not known. */
static bool compare(const struct rls_cupti_calls *calls, struct rls_cupti_cost *out)
{
	double pairs = (double)calls->pairs;

	if (calls->pairs < PAIRS_MIN)
		return false;
	*out = (struct rls_cupti_cost){
		.name = calls->name,
		.ns = calls->more_ns,
		.error_ns = rls_student_quantile(CONFIDENCE, pairs - 1) *
			    sqrt(calls->squares / (pairs - 1) / pairs),
		.plain_ns = calls->plain_ns / pairs,
		.calls = calls->calls,
	};
	return out->ns > 0 && out->error_ns <= CERTAIN * out->ns;
}

static int by_calls(const void *left, const void *right)
{
	const struct rls_cupti_calls *a = *(const struct rls_cupti_calls *const *)left;
	const struct rls_cupti_calls *b = *(const struct rls_cupti_calls *const *)right;

	return (a->calls < b->calls) - (a->calls > b->calls);
}

size_t rls_cupti_overhead_conclude(const struct rls_cupti_overhead *overhead,
				   struct rls_cupti_cost *out, size_t max)
{
	const struct rls_cupti_calls *sorted[NAMES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < overhead->count; i++)
		sorted[i] = &overhead->calls[i];
	if (overhead->count)
		qsort(sorted, overhead->count, sizeof(sorted[0]), by_calls);
	for (size_t i = 0; i < overhead->count && count < max; i++)
		count += compare(sorted[i], &out[count]);
	return count;
}
