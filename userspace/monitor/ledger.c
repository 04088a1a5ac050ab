#include "userspace/monitor/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/apportion.h"
#include "analysis/base/grow.h"

/* Of samples, at each settling, and of rates, at each that has seen a window: jobs change. */
#define SAMPLES_KEEP 0.5
#define RATE_KEEP 0.95
/* Fewer samples than these stand for say less than what was traced. */
#define SAMPLES_NS_MIN 20e6
#define RATE_NS_MIN 1e6
/* Inferred categories are assumed to be as good in a scope as in the whole job, with the weight of so many samples. */
#define TRUST_SAMPLES 10.0
/* What hits cost may be off by so much. */
#define COST_ERROR 0.3
/* So little is left of running time at least when the probes' cost is taken from it: what they are
 * held to cost may be half as much again as they do. */
#define RATE_LEFT_MIN 0.3

static void names_clear(struct rls_ledger_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->texts[i]);
	free(names->texts);
}

void rls_ledger_clear(struct rls_ledger *ledger)
{
	names_clear(&ledger->operations);
	names_clear(&ledger->phases);
	for (size_t i = 0; i < ledger->count; i++) {
		free(ledger->scopes[i]->gpus);
		free(ledger->scopes[i]);
	}
	free(ledger->scopes);
	free(ledger->rows);
	free(ledger->transitions);
	*ledger = (struct rls_ledger){0};
}

/* ---- names and scopes ---- */

/* The name's place, the last one for all beyond `most`. "" is no name and takes none away. */
static int find_name(struct rls_ledger_names *names, const char *text, size_t most,
		     bool *has_others, uint16_t *out)
{
	size_t i;

	if (!text)
		text = RLS_LEDGER_OTHER;
	for (i = 0; i < names->count; i++) {
		if (!strcmp(names->texts[i], text))
			break;
	}
	if (i == names->count && names->count >= most + 1 && text[0] &&
	    strcmp(text, RLS_LEDGER_OTHER)) {
		*has_others = true;
		return find_name(names, RLS_LEDGER_OTHER, SIZE_MAX - 1, has_others, out);
	}
	if (i == names->count) {
		if (rls_grow(&names->texts, &names->room, names->count))
			return -ENOMEM;
		names->texts[i] = strdup(text);
		if (!names->texts[i])
			return -ENOMEM;
		names->count++;
	}
	*out = (uint16_t)i;
	return 0;
}

static struct rls_ledger_scope *find_scope(const struct rls_ledger *ledger, uint16_t operation,
					   uint16_t phase)
{
	for (size_t i = 0; i < ledger->count; i++) {
		if (ledger->scopes[i]->operation == operation && ledger->scopes[i]->phase == phase)
			return ledger->scopes[i];
	}
	return NULL;
}

int rls_ledger_scope(struct rls_ledger *ledger, const char *operation, const char *phase,
		     struct rls_ledger_scope **out)
{
	struct rls_ledger_scope *scope;
	bool *has_others = &ledger->has_others;
	uint16_t o, p, none;
	int r = find_name(&ledger->operations, "", RLS_LEDGER_OPERATIONS, has_others, &none);

	if (!r)
		r = find_name(&ledger->phases, "", RLS_LEDGER_PHASES, has_others, &none);
	if (!r)
		r = find_name(&ledger->operations, operation, RLS_LEDGER_OPERATIONS, has_others,
			      &o);
	if (!r)
		r = find_name(&ledger->phases, phase, RLS_LEDGER_PHASES, has_others, &p);
	if (r)
		return r;
	scope = find_scope(ledger, o, p);
	if (!scope && ledger->count >= RLS_LEDGER_SCOPES &&
	    strcmp(ledger->operations.texts[o], RLS_LEDGER_OTHER)) {
		ledger->has_others = true;
		return rls_ledger_scope(ledger, NULL, NULL, out);
	}
	if (!scope) {
		if (rls_grow(&ledger->scopes, &ledger->room, ledger->count))
			return -ENOMEM;
		scope = calloc(1, sizeof(*scope));
		if (!scope)
			return -ENOMEM;
		scope->operation = o;
		scope->phase = p;
		ledger->scopes[ledger->count++] = scope;
	}
	*out = scope;
	return 0;
}

/* ---- what comes in ---- */

void rls_ledger_add(struct rls_ledger *ledger, struct rls_ledger_scope *scope, uint32_t category,
		    const struct rls_wire_cell *more)
{
	/* The kernel side adds to both while they are read. */
	uint64_t waited_ns = more->off_cpu_ns < more->ns ? more->off_cpu_ns : more->ns;

	ledger->hits += more->hits;
	ledger->cost_ns += more->cost_ns;
	if (category == RLS_TOTALS_CLOSED) {
		scope->closed.ran_ns += more->ns - waited_ns;
		scope->closed.waited_ns += waited_ns;
		scope->closed.cost_ns += more->cost_ns;
		return;
	}
	if (category >= RLS_CATEGORY_MAX)
		category = RLS_CATEGORY_UNKNOWN;
	scope->traced_lately |= more->ns != 0;
	scope->wall_ns[category] += more->ns;
	scope->off_cpu_ns[category] += waited_ns;
	scope->waits_ns[category] += (double)waited_ns;
	scope->cost_ns[category] += more->cost_ns;
	scope->rate_ns += (double)(more->ns - waited_ns);
	scope->rate_cost_ns += (double)more->cost_ns;
	scope->traced.ran_ns += (double)(more->ns - waited_ns);
	scope->traced.cost_ns += (double)more->cost_ns;
	for (int to = 0; to < RLS_CATEGORY_MAX; to++) {
		scope->transitions[category][to] += more->to[to];
		scope->rate_counts[category][to] += (double)more->to[to];
		scope->traced.count += (double)more->to[to];
	}
}

void rls_ledger_sample(struct rls_ledger *ledger, struct rls_ledger_scope *scope, uint32_t category,
		       enum rls_category inferred, uint64_t ns)
{
	if (category == RLS_TOTALS_CLOSED)
		scope->samples_ns[inferred] += (double)ns;
	if (!category || category >= RLS_CATEGORY_MAX)
		return;
	scope->truth.count[inferred][category]++;
	ledger->truth.count[inferred][category]++;
}

int rls_ledger_gpu(struct rls_ledger_scope *scope, size_t place, uint64_t start_ns, uint64_t end_ns)
{
	while (scope->gpu_count <= place) {
		if (rls_grow(&scope->gpus, &scope->gpu_room, scope->gpu_count))
			return -ENOMEM;
		scope->gpus[scope->gpu_count++] = (struct rls_gpu_busy){0};
	}
	rls_gpu_busy_add(&scope->gpus[place], start_ns, end_ns);
	return 0;
}

/* ---- closed time ---- */

static double sum_of(const double *values)
{
	double sum = 0;

	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		sum += values[i];
	return sum;
}

/* P(category | inferred) in the scope; of none: in all of the job. */
static double truth_of(const struct rls_ledger *ledger, const struct rls_ledger_scope *scope,
		       int inferred, int category)
{
	double known, share = rls_truth_share(&ledger->truth, (enum rls_category)inferred,
					      (enum rls_category)category, &known);

	known = 0;
	for (int i = 0; scope && i < RLS_CATEGORY_MAX; i++)
		known += (double)scope->truth.count[inferred][i];
	if (known <= 0)
		return share;
	return ((double)scope->truth.count[inferred][category] + TRUST_SAMPLES * share) /
	       (known + TRUST_SAMPLES);
}

static bool by_samples(const struct rls_ledger *ledger, const struct rls_ledger_scope *scope,
		       const double *samples_ns, double *of)
{
	double total = sum_of(samples_ns);

	if (total < SAMPLES_NS_MIN)
		return false;
	memset(of, 0, RLS_CATEGORY_MAX * sizeof(*of));
	for (int inferred = 0; inferred < RLS_CATEGORY_MAX; inferred++) {
		for (int i = 0; samples_ns[inferred] > 0 && i < RLS_CATEGORY_MAX; i++)
			of[i] +=
				samples_ns[inferred] / total * truth_of(ledger, scope, inferred, i);
	}
	return true;
}

static bool by_traced(const struct rls_ledger_scope *scope, double *of)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		of[i] = (double)(scope->wall_ns[i] - scope->off_cpu_ns[i] - scope->sampled_ns[i]);
	of[RLS_CATEGORY_UNKNOWN] = 0;
	return sum_of(of) > 0;
}

/* The samples of all scopes together: other operations of the same job. */
static void all_samples(const struct rls_ledger *ledger, double *samples_ns)
{
	for (size_t s = 0; s < ledger->count; s++) {
		for (int i = 0; i < RLS_CATEGORY_MAX; i++)
			samples_ns[i] += ledger->scopes[s]->samples_ns[i];
	}
}

static bool find_shares(const struct rls_ledger *ledger, const struct rls_ledger_scope *scope,
			const double *others_ns, bool last, double *of)
{
	if (by_samples(ledger, scope, scope->samples_ns, of) || by_traced(scope, of) ||
	    by_samples(ledger, NULL, others_ns, of))
		return true;
	memset(of, 0, RLS_CATEGORY_MAX * sizeof(*of));
	of[RLS_CATEGORY_UNKNOWN] = 1;
	return last;
}

static void ledger_divide(struct rls_ledger_scope *scope, const double *of)
{
	const double *waiting = sum_of(scope->waits_ns) > 0 ? scope->waits_ns : of;
	uint64_t ran[RLS_CATEGORY_MAX], waited[RLS_CATEGORY_MAX], costs[RLS_CATEGORY_MAX];

	rls_apportion(scope->closed.ran_ns, of, RLS_CATEGORY_MAX, ran);
	rls_apportion(scope->closed.waited_ns, waiting, RLS_CATEGORY_MAX, waited);
	rls_apportion(scope->closed.cost_ns, of, RLS_CATEGORY_MAX, costs);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		scope->wall_ns[i] += ran[i] + waited[i];
		scope->off_cpu_ns[i] += waited[i];
		scope->sampled_ns[i] += ran[i];
		scope->is_sampled[i] |= ran[i] || waited[i];
		scope->cost_ns[i] += costs[i];
	}
	if (scope->closed.ran_ns > scope->closed.cost_ns)
		scope->unscaled_ns += (double)(scope->closed.ran_ns - scope->closed.cost_ns);
	memset(&scope->closed, 0, sizeof(scope->closed));
}

static double without_cost(double ran_ns, double cost_ns)
{
	return fmax(ran_ns - cost_ns, RATE_LEFT_MIN * ran_ns);
}

/* As often as lately while it was traced. */
static void scale(struct rls_ledger_scope *scope)
{
	double factor;

	if (scope->unscaled_ns <= 0 || scope->rate_ns < RATE_NS_MIN)
		return;
	factor = scope->unscaled_ns / without_cost(scope->rate_ns, scope->rate_cost_ns);
	for (int from = 0; from < RLS_CATEGORY_MAX; from++) {
		for (int to = 0; to < RLS_CATEGORY_MAX; to++)
			scope->scaled[from][to] += factor * scope->rate_counts[from][to];
	}
	scope->unscaled_ns = 0;
}

static void age(struct rls_ledger_scope *scope)
{
	for (int i = 0; i < RLS_CATEGORY_MAX; i++)
		scope->samples_ns[i] *= SAMPLES_KEEP;
	if (!scope->traced_lately)
		return;
	scope->traced_lately = false;
	if (scope->traced.ran_ns > 0)
		rls_rate_add(&scope->rate, scope->traced.count,
			     without_cost(scope->traced.ran_ns, scope->traced.cost_ns));
	memset(&scope->traced, 0, sizeof(scope->traced));
	rls_rate_age(&scope->rate, RATE_KEEP);
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		scope->waits_ns[i] *= RATE_KEEP;
		for (int to = 0; to < RLS_CATEGORY_MAX; to++)
			scope->rate_counts[i][to] *= RATE_KEEP;
	}
	scope->rate_ns *= RATE_KEEP;
	scope->rate_cost_ns *= RATE_KEEP;
}

void rls_ledger_apportion(struct rls_ledger *ledger, bool last)
{
	double others_ns[RLS_CATEGORY_MAX] = {0}, of[RLS_CATEGORY_MAX];

	all_samples(ledger, others_ns);
	for (size_t s = 0; s < ledger->count; s++) {
		struct rls_ledger_scope *scope = ledger->scopes[s];

		if (!(scope->closed.ran_ns + scope->closed.waited_ns) ||
		    !find_shares(ledger, scope, others_ns, last, of))
			continue;
		ledger_divide(scope, of);
		scale(scope);
		age(scope);
	}
}

/* ---- what is shown ---- */

static int show_row(struct rls_ledger *ledger, struct rls_ledger_scope *scope, int category)
{
	uint64_t wall_ns = scope->wall_ns[category], cost_ns = scope->cost_ns[category];
	uint64_t corrected_ns = wall_ns > cost_ns ? wall_ns - cost_ns : 0;

	if (!wall_ns)
		return 0;
	if (rls_grow(&ledger->rows, &ledger->row_room, ledger->row_count))
		return -ENOMEM;
	/* Costs are reported after the time that they are part of. */
	if (corrected_ns > scope->corrected_ns[category])
		scope->corrected_ns[category] = corrected_ns;
	ledger->rows[ledger->row_count++] = (struct rls_snapshot_row){
		.phase = ledger->phases.texts[scope->phase],
		.operation = ledger->operations.texts[scope->operation],
		.category = (enum rls_category)category,
		.resource = RLS_RESOURCE_CPU,
		.method = scope->is_sampled[category] ? RLS_METHOD_SAMPLED : RLS_METHOD_TRACED,
		.wall_ns = wall_ns,
		.on_cpu_ns = wall_ns - scope->off_cpu_ns[category],
		.corrected_ns = scope->corrected_ns[category],
	};
	return 0;
}

static int show_gpu_row(struct rls_ledger *ledger, const struct rls_ledger_scope *scope)
{
	uint64_t busy_ns = 0;

	for (size_t i = 0; i < scope->gpu_count; i++)
		busy_ns += rls_gpu_busy_total(&scope->gpus[i]);
	if (!busy_ns)
		return 0;
	if (rls_grow(&ledger->rows, &ledger->row_room, ledger->row_count))
		return -ENOMEM;
	ledger->rows[ledger->row_count++] = (struct rls_snapshot_row){
		.phase = ledger->phases.texts[scope->phase],
		.operation = ledger->operations.texts[scope->operation],
		.resource = RLS_RESOURCE_GPU,
		.method = RLS_METHOD_TRACED,
		.wall_ns = busy_ns,
		.corrected_ns = busy_ns,
	};
	return 0;
}

/* Over the phases of an operation. */
static int show_transitions(struct rls_ledger *ledger, uint16_t operation)
{
	double sums[RLS_CATEGORY_MAX][RLS_CATEGORY_MAX] = {0};

	for (size_t s = 0; s < ledger->count; s++) {
		const struct rls_ledger_scope *scope = ledger->scopes[s];

		for (int i = 0; scope->operation == operation && i < RLS_CATEGORY_MAX; i++) {
			for (int k = 0; k < RLS_CATEGORY_MAX; k++)
				sums[i][k] +=
					(double)scope->transitions[i][k] + scope->scaled[i][k];
		}
	}
	for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
		for (int k = 0; k < RLS_CATEGORY_MAX; k++) {
			if (sums[i][k] < 1)
				continue;
			if (rls_grow(&ledger->transitions, &ledger->transition_room,
				     ledger->transition_count))
				return -ENOMEM;
			ledger->transitions[ledger->transition_count++] =
				(struct rls_snapshot_transition){
					.operation = ledger->operations.texts[operation],
					.from = (enum rls_category)i,
					.to = (enum rls_category)k,
					.count = (uint64_t)sums[i][k],
				};
		}
	}
	return 0;
}

static double scaled_error(const struct rls_ledger_scope *scope)
{
	double left_ns = without_cost(scope->rate_ns, scope->rate_cost_ns);
	double of_cost = left_ns > 0 ? COST_ERROR * scope->rate_cost_ns / left_ns : 0;

	return fmin(hypot(rls_rate_error(&scope->rate), of_cost), 1);
}

/* As if all scopes were off in the same direction. */
static double transitions_error(const struct rls_ledger *ledger)
{
	double all = 0, wrong = 0;

	for (size_t s = 0; s < ledger->count; s++) {
		const struct rls_ledger_scope *scope = ledger->scopes[s];
		double scaled = 0;

		for (int i = 0; i < RLS_CATEGORY_MAX; i++) {
			scaled += sum_of(scope->scaled[i]);
			for (int k = 0; k < RLS_CATEGORY_MAX; k++)
				all += (double)scope->transitions[i][k];
		}
		all += scaled;
		wrong += scaled > 0 ? scaled * scaled_error(scope) : 0;
	}
	return all > 0 ? wrong / all : 0;
}

int rls_ledger_show(struct rls_ledger *ledger)
{
	int r = 0;

	ledger->transitions_error = transitions_error(ledger);

	ledger->row_count = ledger->transition_count = 0;
	for (size_t s = 0; !r && s < ledger->count; s++) {
		for (int i = 0; !r && i < RLS_CATEGORY_MAX; i++)
			r = show_row(ledger, ledger->scopes[s], i);
		if (!r)
			r = show_gpu_row(ledger, ledger->scopes[s]);
	}
	for (uint16_t o = 0; !r && o < ledger->operations.count; o++)
		r = show_transitions(ledger, o);
	return r;
}
