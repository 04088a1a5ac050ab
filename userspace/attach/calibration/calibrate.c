#include "userspace/attach/calibration/calibrate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/attach/hit_costs.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/base/clock.h"

#define ROUNDS_MAX 99

/* Of fewer rounds a median says nothing. */
#define ROUNDS_LEAST 3
#define NICE_LEAST (-20)

/* A figure that is not known better than that, of itself and of a hot entry, is estimated as on quiet machines: among
 * other work by the hot one, and that by a hot entry. The entry of a pair finds the caches cold, its return does not. */
#define ERROR_MAX 0.4
#define ERROR_OF_ENTRY_MAX 0.15
#define ESTIMATED_ERROR 0.5
static const double amid_of_hot[RLS_PATH_MAX] = {
	[RLS_PATH_NOP5_ENTRY] = 2.3,
	[RLS_PATH_EMULATED_ENTRY] = 2.2,
	[RLS_PATH_SINGLE_STEP_ENTRY] = 3,
	[RLS_PATH_RETURN] = 1,
	[RLS_PATH_EVENT] = 2,
	[RLS_PATH_USDT] = 2.2,
	[RLS_PATH_EDGE] = 5,
};

static const double hot_of_entry[RLS_PATH_MAX] = {
	[RLS_PATH_NOP5_ENTRY] = 0.8,
	[RLS_PATH_EMULATED_ENTRY] = 1,
	[RLS_PATH_SINGLE_STEP_ENTRY] = 11,
	[RLS_PATH_RETURN] = 0.8,
	[RLS_PATH_EVENT] = 0.1,
	[RLS_PATH_USDT] = 0.8,
	[RLS_PATH_EDGE] = 0.03,
};
/* Where nothing can be measured. */
#define DEFAULT_HOT_NS 600
#define DEFAULT_INSIDE_NS 500

#define CHECK_MEMORIES 5
#define CHECK_HOT_BATCHES 3 /* amid each */
#define CHECK_COLD_BATCHES 7

/* Of the time. While others run in between, hits among other work cost more, and everything takes longer. */
#define RAN_SHARE_MIN 0.9

#define COLD_BYTES (8U << 20)

/* Memory that was just written lies in nearer caches than that which was used for a while; the first path that is
 * measured amid it is to find what the others do. */
#define MIX_STEPS 60000

/* Single steps evict caches (micro_target.c), and training jobs have several times as much in them as our steps do.
 * This factor applies to what theirs cost beyond a hot one. */
#define SINGLE_STEP_POLLUTION 1.8

/* The hits of training jobs cost up to this share more than the cold figure. */
#define MORE_THAN_COLD 0.45

/* Of a return probe's cost, before its time is taken. */
#define SHARE_BEFORE 0.6

/* What one call of a target costs more with its probes than without. */
struct figure {
	double median_ns, half_width_ns;
};

/* ---- measuring ---- */

/* Beside others on its CPU a measurement takes many times as long, and counts their turns as the cost of hits: for
 * the seconds that it takes it goes first, where it may. Returns the priority of before. */
static int priority_raise(void)
{
	int before = getpriority(PRIO_PROCESS, 0);

	setpriority(PRIO_PROCESS, 0, NICE_LEAST);
	return before;
}

static void priority_restore(const int *before)
{
	setpriority(PRIO_PROCESS, 0, *before);
}
#define _first_ __attribute__((cleanup(priority_restore), unused)) int before = priority_raise()

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

void rls_median_interval(double *values, size_t count, double *median, double *half_width)
{
	/* The ranks between which the median lies in 95 of 100 cases: count/2 -+ 0.98 sqrt(count). */
	double reach = 0.98 * sqrt((double)count);
	size_t low, high;

	qsort(values, count, sizeof(*values), compare_doubles);
	low = (double)count / 2 > reach ? (size_t)((double)count / 2 - reach) : 0;
	high = count - 1 - low;
	*median = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
	*half_width = fmax(values[high] - *median, *median - values[low]);
}

size_t rls_quieter_half(double *values, const double *plain_ns, size_t count)
{
	double sorted[ROUNDS_MAX];
	size_t kept = 0;

	memcpy(sorted, plain_ns, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	for (size_t i = 0; i < count; i++) {
		if (plain_ns[i] <= sorted[count / 2])
			values[kept++] = values[i];
	}
	return kept;
}

static struct figure figure_of(double *values, const double *plain_ns, size_t count)
{
	struct figure figure;

	rls_median_interval(values, rls_quieter_half(values, plain_ns, count), &figure.median_ns,
			    &figure.half_width_ns);
	return figure;
}

static int start_disturb(struct rls_disturb *disturb)
{
	int r = rls_disturb_init(disturb, COLD_BYTES);

	if (!r)
		rls_disturb_run(disturb, MIX_STEPS);
	return r;
}

/* Reads what the batches amid it sent, too; r: how they went. */
static int end_disturb(struct rls_disturb *disturb, struct rls_kernel *kernel, int r)
{
	rls_disturb_clear(disturb);
	return !r && rls_kernel_consume(kernel) < 0 ? -EIO : r;
}

#define GAPS_MAX (2 * RLS_HOT_CALLS)

/* Gaps between the events of the EVENT target, from an entry to its return: of one round's hot calls. */
struct gaps {
	uint64_t last_ns;
	double inside_ns[GAPS_MAX];
	size_t inside;
};

static int collect_gap(const struct rls_wire_header *record, size_t size, void *context)
{
	const struct rls_wire_category *event = (const void *)record;
	struct gaps *gaps = context;
	double gap_ns;

	if (record->kind != RLS_WIRE_CATEGORY || size < sizeof(*event))
		return 0;
	gap_ns = (double)(record->time_ns - gaps->last_ns);
	if (gaps->last_ns && event->category == RLS_CATEGORY_PYTHON && gaps->inside < GAPS_MAX)
		gaps->inside_ns[gaps->inside++] = gap_ns;
	gaps->last_ns = record->time_ns;
	return 0;
}

static double median_gap(struct gaps *gaps)
{
	if (!gaps->inside)
		return 0;
	qsort(gaps->inside_ns, gaps->inside, sizeof(gaps->inside_ns[0]), compare_doubles);
	return gaps->inside_ns[gaps->inside / 2];
}

struct clocks {
	uint64_t wall_ns, cpu_ns;
};

static struct clocks clocks_now(void)
{
	struct timespec cpu;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (struct clocks){rls_monotonic_ns(),
			       (uint64_t)cpu.tv_sec * 1000000000ULL + (uint64_t)cpu.tv_nsec};
}

static bool others_ran(struct clocks since)
{
	struct clocks now = clocks_now();

	return (double)(now.cpu_ns - since.cpu_ns) <
	       RAN_SHARE_MIN * (double)(now.wall_ns - since.wall_ns);
}

/* What whole calls took in each round. */
struct rounds {
	double hot_ns[RLS_PATH_MAX][ROUNDS_MAX], cold_ns[RLS_PATH_MAX][ROUNDS_MAX];
	double inside_ns[ROUNDS_MAX];
	double plain_ns
		[ROUNDS_MAX]; /* all that had no probes, amid other work: how fast the machine was */
	size_t count;
	bool busy; /* others had the CPU for some of the time */
};

static int measure_hot(struct rls_kernel *kernel, struct gaps *gaps, struct rounds *rounds)
{
	gaps->last_ns = 0;
	gaps->inside = 0;
	for (int path = 0; path < RLS_PATH_MAX; path++) {
		rls_micro_target_hot(path); /* warm */
		rounds->hot_ns[path][rounds->count] = rls_micro_target_hot(path).more_ns;
	}
	if (rls_kernel_consume(kernel) < 0)
		return -EIO;
	rounds->inside_ns[rounds->count] = median_gap(gaps);
	return 0;
}

/* Amid other memory each time, as where that lies in the caches is good for some percent. */
static int measure_cold(struct rls_kernel *kernel, struct rounds *rounds)
{
	struct rls_disturb disturb = {0};
	int r = start_disturb(&disturb);
	double plain_ns = 0;

	for (int path = 0; !r && path < RLS_PATH_MAX; path++) {
		struct rls_batch batch = rls_micro_target_cold(path, &disturb);

		rounds->cold_ns[path][rounds->count] = batch.more_ns;
		plain_ns += batch.plain_ns;
	}
	rounds->plain_ns[rounds->count] = plain_ns;
	return end_disturb(&disturb, kernel, r);
}

static bool wants_more(const struct rls_calibration_effort *effort, size_t count, uint64_t spent_ns)
{
	size_t most = effort->rounds < ROUNDS_MAX ? effort->rounds : ROUNDS_MAX;

	return count < most && spent_ns < effort->most_ns &&
	       (count < effort->enough || spent_ns < effort->time_ns);
}

static int calibrate_measure(struct rls_kernel *kernel, const struct rls_calibration_effort *effort,
			     struct rounds *rounds)
{
	static struct gaps gaps;
	struct clocks begun = clocks_now();
	int r = rls_kernel_set_handler(kernel, collect_gap, &gaps);

	if (!r)
		r = rls_micro_target_begin(kernel);
	rounds->count = 0;
	while (!r && wants_more(effort, rounds->count, rls_monotonic_ns() - begun.wall_ns)) {
		r = measure_hot(kernel, &gaps, rounds);
		if (!r)
			r = measure_cold(kernel, rounds);
		rounds->count += !r;
	}
	rounds->busy = others_ran(begun);
	return !r && rounds->count < ROUNDS_LEAST ? -ETIME : r;
}

/* ---- from the measurements to the figures ---- */

/* a - b */
static struct figure less(struct figure a, struct figure b)
{
	return (struct figure){a.median_ns - b.median_ns, hypot(a.half_width_ns, b.half_width_ns)};
}

static struct figure divided(struct figure a, double by)
{
	return (struct figure){a.median_ns / by, a.half_width_ns / by};
}

/* What was measured of whole calls becomes what each path costs by itself. */
static void split(struct figure paths[RLS_PATH_MAX], unsigned int edges_a_hit)
{
	struct figure entry = paths[RLS_PATH_EMULATED_ENTRY];

	/* An entry and a return that each emit, less the same two silent. */
	paths[RLS_PATH_EVENT] = divided(less(paths[RLS_PATH_EVENT], paths[RLS_PATH_RETURN]), 2);
	paths[RLS_PATH_RETURN] = less(paths[RLS_PATH_RETURN], entry);
	paths[RLS_PATH_EDGE] = divided(less(paths[RLS_PATH_EDGE], entry), edges_a_hit);
}

static struct figure calibrate_evicted_cost(struct figure hot, struct figure cold)
{
	return (struct figure){
		hot.median_ns + SINGLE_STEP_POLLUTION * fmax(cold.median_ns - hot.median_ns, 0),
		hypot(SINGLE_STEP_POLLUTION * cold.half_width_ns, hot.half_width_ns)};
}

/* entry_ns: what a hot entry costs, 0 where that is not known. */
static bool is_known(struct figure figure, double entry_ns)
{
	return figure.half_width_ns <=
	       fmax(ERROR_MAX * figure.median_ns, ERROR_OF_ENTRY_MAX * entry_ns);
}

static struct figure estimated(double ns)
{
	return (struct figure){ns, ESTIMATED_ERROR * ns};
}

/* busy: what others leave in the caches makes hits among other work look up to three times as expensive. */
static void estimate_unknown(struct figure hot[RLS_PATH_MAX], struct figure cold[RLS_PATH_MAX],
			     bool busy)
{
	double entry_ns = hot[RLS_PATH_EMULATED_ENTRY].median_ns;

	if (!is_known(hot[RLS_PATH_EMULATED_ENTRY], 0))
		return;
	for (int path = 0; path < RLS_PATH_MAX; path++) {
		if (!is_known(hot[path], entry_ns))
			hot[path] = estimated(hot_of_entry[path] * entry_ns);
		if (busy || !is_known(cold[path], entry_ns))
			cold[path] = estimated(amid_of_hot[path] * fmax(hot[path].median_ns, 0));
	}
}

static void calibrate_conclude(struct rounds *rounds, struct rls_calibration *out)
{
	struct figure hot[RLS_PATH_MAX], cold[RLS_PATH_MAX];

	for (int path = 0; path < RLS_PATH_MAX; path++) {
		hot[path] = figure_of(rounds->hot_ns[path], rounds->plain_ns, rounds->count);
		cold[path] = figure_of(rounds->cold_ns[path], rounds->plain_ns, rounds->count);
	}
	out->inside_ns = figure_of(rounds->inside_ns, rounds->plain_ns, rounds->count).median_ns;
	cold[RLS_PATH_SINGLE_STEP_ENTRY] = calibrate_evicted_cost(hot[RLS_PATH_SINGLE_STEP_ENTRY],
								  cold[RLS_PATH_SINGLE_STEP_ENTRY]);
	split(hot, RLS_EDGE_FLUSH);
	split(cold, RLS_EDGES_COLD);
	estimate_unknown(hot, cold, rounds->busy);
	for (int path = 0; path < RLS_PATH_MAX; path++)
		out->paths[path] = (struct rls_calibrated){
			.value_ns = fmax(cold[path].median_ns, 0),
			.error_ns = cold[path].half_width_ns,
			.hot_ns = fmax(hot[path].median_ns, 0),
			.hot_error_ns = hot[path].half_width_ns,
		};
}

void rls_calibration_default(struct rls_calibration *out)
{
	*out = (struct rls_calibration){.inside_ns = DEFAULT_INSIDE_NS};
	for (int path = 0; path < RLS_PATH_MAX; path++) {
		double hot_ns = hot_of_entry[path] * DEFAULT_HOT_NS,
		       ns = amid_of_hot[path] * hot_ns;

		out->paths[path] = (struct rls_calibrated){ns, ns, hot_ns, hot_ns};
	}
}

int rls_calibrate(struct rls_kernel *kernel, const struct rls_calibration_effort *effort,
		  struct rls_calibration *out)
{
	static struct rounds measured;
	struct rls_calibration result = {0};
	size_t mark = rls_kernel_mark(kernel);
	_first_;
	int r, ended;

	r = calibrate_measure(kernel, effort, &measured);
	ended = rls_micro_target_end(kernel, mark);
	if (r || ended)
		return r ? r : ended;
	calibrate_conclude(&measured, &result);
	*out = result;
	return 0;
}

/* ---- looking whether a calibration still holds ---- */

/* What an entry and its return took, hot and amid other work, and what work without probes did then. */
struct pairs {
	double hot_ns[CHECK_MEMORIES * CHECK_HOT_BATCHES];
	double cold_ns[CHECK_MEMORIES * CHECK_COLD_BATCHES],
		plain_ns[CHECK_MEMORIES * CHECK_COLD_BATCHES];
	size_t hot, cold;
};

static int check_once(struct rls_kernel *kernel, struct pairs *pairs)
{
	struct rls_disturb disturb = {0};
	int r;

	rls_micro_target_hot(RLS_PATH_RETURN); /* warm */
	for (int i = 0; i < CHECK_HOT_BATCHES; i++)
		pairs->hot_ns[pairs->hot++] = rls_micro_target_hot(RLS_PATH_RETURN).more_ns;
	r = start_disturb(&disturb);
	for (int i = 0; !r && i < CHECK_COLD_BATCHES; i++) {
		struct rls_batch batch = rls_micro_target_cold(RLS_PATH_RETURN, &disturb);

		pairs->cold_ns[pairs->cold] = batch.more_ns;
		pairs->plain_ns[pairs->cold++] = batch.plain_ns;
	}
	return end_disturb(&disturb, kernel, r);
}

/* Until it is known, or others are seen to run. */
static int check_until(struct rls_kernel *kernel, struct pairs *pairs, bool *busy)
{
	struct clocks begin = clocks_now();
	int r = 0;

	*busy = false;
	for (int memory = 0; !r && !*busy && memory < CHECK_MEMORIES; memory++) {
		r = check_once(kernel, pairs);
		*busy = others_ran(begin);
	}
	return r;
}

/* Infinite where nothing is known to compare with. */
static double share_of(double now_ns, double entry_ns, double return_ns)
{
	return entry_ns + return_ns > 0 ? now_ns / (entry_ns + return_ns) : INFINITY;
}

static int calibrate_check(struct rls_kernel *kernel, const struct rls_calibration *calibration,
			   struct rls_calibration_check *out)
{
	const struct rls_calibrated *entry = &calibration->paths[RLS_PATH_EMULATED_ENTRY];
	const struct rls_calibrated *leave = &calibration->paths[RLS_PATH_RETURN];
	struct pairs pairs = {0};
	double hot_ns, half_width_ns, cold_ns;
	bool busy;
	int r = check_until(kernel, &pairs, &busy);

	if (r)
		return r;
	rls_median_interval(pairs.hot_ns, pairs.hot, &hot_ns, &half_width_ns);
	cold_ns = busy ? NAN : figure_of(pairs.cold_ns, pairs.plain_ns, pairs.cold).median_ns;
	*out = (struct rls_calibration_check){
		.hot_share = share_of(hot_ns, entry->hot_ns, leave->hot_ns),
		.cold_share = share_of(cold_ns, entry->value_ns, leave->value_ns),
	};
	return 0;
}

static int ignore(const struct rls_wire_header *record, size_t size, void *context)
{
	(void)record;
	(void)size;
	(void)context;
	return 0;
}

int rls_calibrate_check(struct rls_kernel *kernel, const struct rls_calibration *calibration,
			struct rls_calibration_check *out)
{
	struct rls_calibration_check seen = {0};
	size_t mark = rls_kernel_mark(kernel);
	_first_;
	int r, ended;

	r = rls_kernel_set_handler(kernel, ignore, NULL);
	if (!r)
		r = rls_micro_target_begin(kernel);
	if (!r)
		r = calibrate_check(kernel, calibration, &seen);
	ended = rls_micro_target_end(kernel, mark);
	if (r || ended)
		return r ? r : ended;
	*out = seen;
	return 0;
}

/* What of a pair falls inside the call is what of the entry comes after its event and what
 * of the return comes before its own; only the difference of the two befores matters to
 * calls one after another. The return's is taken to be a fair share. The events' times are those
 * of the hot loop; what cold hits cost more is inside and outside alike, as what one drives out of the
 * caches is missed after it: so categories got what samples say of them. */
static void calibrate_divide(const struct rls_calibration *calibration, struct rls_hit_costs *costs)
{
	const struct rls_calibrated *paths = calibration->paths;
	double hot_ns = paths[RLS_PATH_EMULATED_ENTRY].hot_ns + paths[RLS_PATH_RETURN].hot_ns +
			2 * paths[RLS_PATH_EVENT].hot_ns;
	double entry_ns = costs->ns[RLS_SITE_EMULATED][0] + costs->event_ns;
	double return_ns = costs->ns[RLS_SITE_EMULATED][1] + costs->event_ns;
	double before_return_ns = return_ns * SHARE_BEFORE;
	double inside_ns, before_entry_ns;

	if (!(hot_ns > 0) || !(calibration->inside_ns > 0))
		return;
	inside_ns = calibration->inside_ns + (entry_ns + return_ns - hot_ns) / 2;
	before_entry_ns = before_return_ns + entry_ns - inside_ns;
	costs->before_ns[1] = (uint32_t)lround(before_return_ns);
	costs->before_ns[0] = (uint32_t)lround(fmin(fmax(before_entry_ns, 0), entry_ns));
}

struct rls_hit_costs rls_calibration_costs(const struct rls_calibration *calibration)
{
	const struct rls_calibrated *paths = calibration->paths;
	struct rls_hit_costs costs = {
		.event_ns = (uint32_t)lround(paths[RLS_PATH_EVENT].value_ns),
		.edge_ns = (uint32_t)lround(paths[RLS_PATH_EDGE].value_ns),
		.later_edge_ns = (uint32_t)lround(paths[RLS_PATH_EDGE].hot_ns),
	};

	for (int i = 0; i < RLS_SITE_CLASS_MAX; i++) {
		costs.ns[i][0] = (uint32_t)lround(paths[i].value_ns);
		costs.ns[i][1] = (uint32_t)lround(paths[RLS_PATH_RETURN].value_ns);
	}
	calibrate_divide(calibration, &costs);
	return costs;
}

struct rls_calibrated rls_calibration_mean_hit(const struct rls_calibration *calibration)
{
	const struct rls_calibrated *entry = &calibration->paths[RLS_PATH_EMULATED_ENTRY];
	const struct rls_calibrated *leave = &calibration->paths[RLS_PATH_RETURN];
	const struct rls_calibrated *event = &calibration->paths[RLS_PATH_EVENT];
	struct rls_calibrated hit = {
		.value_ns = (entry->value_ns + leave->value_ns) / 2 + event->value_ns,
		.hot_ns = (entry->hot_ns + leave->hot_ns) / 2 + event->hot_ns,
	};

	hit.error_ns = hypot(fmax(hit.value_ns - hit.hot_ns, MORE_THAN_COLD * hit.value_ns),
			     (entry->error_ns + leave->error_ns) / 2 + event->error_ns);
	hit.hot_error_ns = (entry->hot_error_ns + leave->hot_error_ns) / 2 + event->hot_error_ns;
	return hit;
}

double rls_calibrated_excess(const struct rls_calibrated *hit)
{
	return fmax(hit->value_ns - hit->hot_ns, 0);
}
