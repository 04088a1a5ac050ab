#include "userspace/record/samples/verify_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_NAMED 5
#define NAME_BYTES_SHOWN 80

void rls_share_interval(uint64_t hits, uint64_t trials, double *low, double *high)
{
	const double z = 1.959964;  /* of the normal distribution at 97.5 % */
	double n = (double)trials, share, middle, half;

	if (!trials) {
		*low = 0;
		*high = 1;
		return;
	}
	share = (double)hits / n;
	middle = (share + z * z / (2 * n)) / (1 + z * z / n);
	half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
	*low = hits ? fmax(middle - half, 0) : 0;
	*high = fmin(middle + half, 1);
}

/* ---- sums over the table ---- */

static bool is_judged(enum rls_leaf leaf)
{
	return leaf != RLS_LEAF_KERNEL && leaf != RLS_LEAF_PROBE;
}

static uint64_t count_state(const struct rls_verify_counts *counts, enum rls_category state)
{
	uint64_t sum = 0;

	for (int leaf = 0; leaf < RLS_LEAF_MAX; leaf++)
		sum += is_judged(leaf) ? counts->by[state][leaf] : 0;
	return sum;
}

static uint64_t count_judged(const struct rls_verify_counts *counts)
{
	uint64_t sum = 0;

	for (int state = 0; state < RLS_CATEGORY_MAX; state++)
		sum += count_state(counts, state);
	return sum;
}

static uint64_t count_leaf(const struct rls_verify_counts *counts, enum rls_leaf leaf)
{
	uint64_t sum = 0;

	for (int state = 0; state < RLS_CATEGORY_MAX; state++)
		sum += counts->by[state][leaf];
	return sum;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* "0.42 % (95 % interval 0.33 to 0.53 %): 52 of 12345 samples" */
static void print_share(FILE *out, uint64_t hits, uint64_t trials)
{
	double low, high;

	rls_share_interval(hits, trials, &low, &high);
	fprintf(out, "%.2f %% (95 %% interval %.2f to %.2f %%): %" PRIu64 " of %" PRIu64 " samples",
		percent(hits, trials), 100 * low, 100 * high, hits, trials);
}

/* ---- the sentences ---- */

static void print_functions(FILE *out, const struct rls_hot_function *functions, size_t count)
{
	for (size_t i = 0; i < count && i < FUNCTIONS_NAMED; i++) {
		const struct rls_hot_function *function = &functions[i];

		fputs(i ? ", " : "; most in ", out);
		if (function->name)
			fprintf(out, "%.*s of %s", NAME_BYTES_SHOWN, function->name,
				function->file);
		else
			fprintf(out, "0x%" PRIx64 " of %s", function->vaddr, function->file);
		fprintf(out, " (%zu)", function->samples);
	}
}

char *rls_verify_blind_text(const struct rls_verify_counts *counts,
			    const struct rls_hot_function *functions, size_t count)
{
	uint64_t blind = 0, judged = count_judged(counts);
	enum rls_category should;
	char *text = NULL;
	size_t length;
	FILE *out;

	if (!judged)
		return strdup("verify: blind spot not measured: no traced thread was found running");
	out = open_memstream(&text, &length);
	if (!out)
		return NULL;
	for (int leaf = 0; leaf < RLS_LEAF_MAX; leaf++) {
		if (rls_leaf_has_category(leaf, &should))
			blind += counts->by[RLS_CATEGORY_PYTHON][leaf];
	}
	fputs("verify: blind spot ", out);
	print_share(out, blind, judged);
	fputs(" are in code of a simulator, backend, CUDA or native library while the trace says python",
	      out);
	print_functions(out, functions, count);
	return fclose(out) ? NULL : text;
}

char *rls_verify_missed_callbacks_text(const struct rls_verify_counts *counts)
{
	uint64_t missed = 0, judged = count_judged(counts);
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	for (int state = RLS_CATEGORY_SIMULATOR; state < RLS_CATEGORY_MAX; state++)
		missed += counts->by[state][RLS_LEAF_EVALUATION];
	fputs("verify: missed callbacks ", out);
	print_share(out, missed, judged);
	fputs(" are in the interpreter's evaluation loop while the trace does not say python", out);
	for (int state = RLS_CATEGORY_SIMULATOR; state < RLS_CATEGORY_MAX; state++) {
		if (counts->by[state][RLS_LEAF_EVALUATION])
			fprintf(out, ", %s %" PRIu64, rls_category_name(state),
				counts->by[state][RLS_LEAF_EVALUATION]);
	}
	return fclose(out) ? NULL : text;
}

static void print_left_out(FILE *out, const struct rls_verify_counts *counts)
{
	uint64_t probe = count_leaf(counts, RLS_LEAF_PROBE);
	uint64_t kernel = count_leaf(counts, RLS_LEAF_KERNEL);
	uint64_t all = count_judged(counts) + probe + kernel;

	fprintf(out, "; of all %" PRIu64 " samples left out: %.1f %% probes' own, %.1f %% kernel",
		all, percent(probe, all), percent(kernel, all));
	if (counts->untraced)
		fprintf(out, ", and %" PRIu64 " of threads that met no probe", counts->untraced);
	if (counts->unplaced)
		fprintf(out, ", and %" PRIu64 " of processes already gone", counts->unplaced);
}

/* Leaf libraries beside states: what has no category of its own (libc, NumPy, ...) is
 * backend when the backend calls it, so the leaf's share is the state's lower bound. */
char *rls_verify_shares_text(const struct rls_verify_counts *counts)
{
	uint64_t judged = count_judged(counts), rest = judged;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	enum rls_category category;

	if (!out)
		return NULL;
	fputs("verify: samples by leaf library:", out);
	for (int leaf = 0; leaf < RLS_LEAF_MAX; leaf++) {
		uint64_t here = count_leaf(counts, leaf);

		if (!rls_leaf_has_category(leaf, &category) || !here)
			continue;
		rest -= here;
		fprintf(out, " %s %.1f %%,", rls_category_name(category), percent(here, judged));
	}
	fprintf(out, " the rest %.1f %%; by the trace:", percent(rest, judged));
	for (int state = RLS_CATEGORY_MAX - 1; state >= 0; state--) {
		uint64_t here = count_state(counts, state);

		if (here)
			fprintf(out, " %s %.1f %%,", rls_category_name(state),
				percent(here, judged));
	}
	fprintf(out, " where the leaf has no category");
	for (int state = RLS_CATEGORY_MAX - 1; state >= 0; state--) {
		uint64_t here = counts->by[state][RLS_LEAF_OTHER] +
				counts->by[state][RLS_LEAF_INTERPRETER] +
				counts->by[state][RLS_LEAF_EVALUATION];

		if (here)
			fprintf(out, " %s %.1f %%", rls_category_name(state),
				percent(here, judged));
	}
	print_left_out(out, counts);
	return fclose(out) ? NULL : text;
}
