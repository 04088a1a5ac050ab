#include "userspace/attach/calibrate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/annotate/annotate_wire.h"
#include "userspace/attach/disturb.h"
#include "userspace/attach/features.h"
#include "userspace/monotonic.h"

#define BATCHES_MAX 99

/* On a slow or busy machine so many must do, after so long: who calibrates waits for it. */
#define BATCHES_ENOUGH 25
#define COLD_NS_MAX 4000000000ULL

#define LOOK_HOT_BATCHES 15
#define LOOK_MEMORIES 5
#define LOOK_COLD_BATCHES 7     /* amid each */

/* Of a look's time. Where others run in between, hits amid other work are dearer in that moment, and all takes long. */
#define RAN_SHARE_MIN 0.9

#define HOT_CALLS 200
#define COLD_CALLS 40
#define COLD_SINGLE_STEP_CALLS 10
#define SINGLE_STEP_CALLS 20    /* each takes some 10 us in a virtual machine */

/* Between two calls of the cold measurement, and after each: what a hit drove out is paid for by and by, all of
 * it after some 250 steps. Chosen so that hits cost what they do in PyTorch's training loops in the mean:
 * scripts/bench/README.md. */
#define COLD_STEPS 600
#define COLD_BYTES (8U << 20)
#define AFTER_STEPS 60

/* Memory that was just written lies in nearer caches than that which was used for a while; the first path that is
 * measured amid it is to find what the others do. */
#define MIX_STEPS 60000

/* A single step leaves the virtual machine twice, where others' code and data fill all caches: what that costs
 * shows much later, and is the more the larger what was in them. Training jobs have several times what steps of
 * ours have; beyond a hot one's cost theirs take so many times as much. */
#define SINGLE_STEP_STEPS 6000
#define SINGLE_STEP_SPILL 1.8

/* By how much, of the cold figure, the hits of training jobs were seen to cost more than that:
 * scripts/bench/README.md. */
#define MORE_THAN_COLD 0.45

/* Of a return probe's cost, before its time is taken. */
#define SHARE_BEFORE 0.6

/* Two functions that begin with the same instruction, on lines of their own: one to be
 * probed, one not. In assembler, so that they stay what they are. */
#define ONE(name, first)                               \
	void name(void);                               \
	asm(".text\n.p2align 6\n.globl " #name "\n"    \
	    ".hidden " #name "\n"                       \
	    ".type " #name ", @function\n" #name ":\n" \
	    first "\n\tret\n.size " #name ", . - " #name "\n")
#define TARGET(name, first)                  \
	ONE(rls_probed_##name, first);       \
	ONE(rls_plain_##name, first)

#define NOP5 "\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00"
#define PUSH "\tpush %rbp\n\tpop %rbp"

TARGET(nop5, NOP5);
TARGET(push, PUSH);
TARGET(mov, "\tmov %rdi, %rax");
TARGET(return, PUSH);
TARGET(event, PUSH);
TARGET(usdt, NOP5);
TARGET(edge, PUSH);

/* By path; what one is probed with is in attach(). */
static const struct {
	const char *name;
	void (*probed)(void), (*plain)(void);
} targets[RLS_PATH_MAX] = {
	[RLS_PATH_NOP5_ENTRY] = { "nop5.entry", rls_probed_nop5, rls_plain_nop5 },
	[RLS_PATH_EMULATED_ENTRY] = { "emulated.entry", rls_probed_push, rls_plain_push },
	[RLS_PATH_SINGLE_STEP_ENTRY] = { "single-step.entry", rls_probed_mov, rls_plain_mov },
	[RLS_PATH_RETURN] = { "return", rls_probed_return, rls_plain_return },
	[RLS_PATH_EVENT] = { "event", rls_probed_event, rls_plain_event },
	[RLS_PATH_USDT] = { "usdt", rls_probed_usdt, rls_plain_usdt },
	[RLS_PATH_EDGE] = { "annotation.edge", rls_probed_edge, rls_plain_edge },
};

_Static_assert(RLS_PATH_NOP5_ENTRY == (int)RLS_SITE_NOP5 &&
		       RLS_PATH_EMULATED_ENTRY == (int)RLS_SITE_EMULATED &&
		       RLS_PATH_SINGLE_STEP_ENTRY == (int)RLS_SITE_SINGLE_STEP,
	       "paths begin with the classes");

const char *rls_path_name(enum rls_calibrated_path path)
{
	return targets[path].name;
}

/* What one call of a target costs more with its probes than without. */
struct figure {
	double median_ns, half_width_ns;
};

struct figures {
	struct figure hot, cold;
};

/* ---- the record of an annotated thread, as the kernel side reads it ---- */

static _Thread_local struct rls_thread_record *annotated;
static struct rls_thread_record edges;
static const struct rls_name edges_name = { .length = 4, .text = "none" };
static bool edges_count;        /* calls without probes make them in vain: nobody would read them */

static void make_edges(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		edges.edges[(edges.head + i) % RLS_EDGE_RING] = (struct rls_edge){
			.time_ns = rls_monotonic_ns(),
			.name = (uintptr_t)&edges_name,
			.kind = RLS_EDGE_POP,
		};
	__atomic_store_n(&edges.head, edges.head + (edges_count ? count : 0), __ATOMIC_RELEASE);
}

/* A hit amid other work finds few of them, a flush in a busy loop many, which are sent together. */
static void make_few_edges(void)
{
	make_edges(RLS_EDGES_COLD);
}

static void make_many_edges(void)
{
	make_edges(RLS_EDGE_FLUSH);
}

/* ---- measuring ---- */

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
	*median = count % 2 ? values[count / 2] :
			      (values[count / 2 - 1] + values[count / 2]) / 2;
	*half_width = fmax(values[high] - *median, *median - values[low]);
}

static double hot_ns(void (*function)(void), void (*before)(void), int calls)
{
	double begin_ns = (double)rls_monotonic_ns();

	for (int i = 0; i < calls; i++) {
		before();
		function();
	}
	return ((double)rls_monotonic_ns() - begin_ns) / calls;
}

/* One call amid other work: what the hit drives out of the caches is paid for afterwards. */
static double cold_ns(void (*function)(void), void (*before)(void), struct rls_disturb *disturb,
		      unsigned int before_steps, unsigned int after_steps)
{
	double begin_ns;

	rls_disturb_run(disturb, before_steps);
	before();
	begin_ns = (double)rls_monotonic_ns();
	function();
	rls_disturb_run(disturb, after_steps);
	return (double)rls_monotonic_ns() - begin_ns;
}

static void do_nothing(void)
{
}

static int hot_calls(enum rls_calibrated_path path)
{
	if (path == RLS_PATH_EDGE)
		return HOT_CALLS * RLS_EDGES_COLD / RLS_EDGE_FLUSH; /* what they send is to find room */
	return path == RLS_PATH_SINGLE_STEP_ENTRY ? SINGLE_STEP_CALLS : HOT_CALLS;
}

/* What calls with probes take more than calls without: the mean of some, turn about. */
static double cold_batch_ns(enum rls_calibrated_path path, struct rls_disturb *disturb)
{
	void (*before)(void) = path == RLS_PATH_EDGE ? make_few_edges : do_nothing;
	bool stepped = path == RLS_PATH_SINGLE_STEP_ENTRY;
	unsigned int before_steps = stepped ? SINGLE_STEP_STEPS : COLD_STEPS;
	unsigned int after_steps = stepped ? SINGLE_STEP_STEPS : AFTER_STEPS;
	int calls = stepped ? COLD_SINGLE_STEP_CALLS : COLD_CALLS;
	double sum_ns = 0;

	for (int i = 0; i < calls; i++) {
		edges_count = false;
		sum_ns -= cold_ns(targets[path].plain, before, disturb, before_steps, after_steps);
		edges_count = true;
		sum_ns += cold_ns(targets[path].probed, before, disturb, before_steps, after_steps);
	}
	return sum_ns / calls;
}

static double hot_batch_ns(enum rls_calibrated_path path)
{
	void (*before)(void) = path == RLS_PATH_EDGE ? make_many_edges : do_nothing;
	double sum_ns;

	edges_count = false;
	sum_ns = hot_ns(targets[path].plain, before, hot_calls(path));
	edges_count = true;
	return hot_ns(targets[path].probed, before, hot_calls(path)) - sum_ns;
}

static struct figure figure_of(double *differences, unsigned int batches)
{
	struct figure figure;

	rls_median_interval(differences, batches, &figure.median_ns, &figure.half_width_ns);
	return figure;
}

static struct figure measure_hot(enum rls_calibrated_path path, unsigned int batches)
{
	double differences[BATCHES_MAX];

	hot_batch_ns(path); /* warm */
	for (unsigned int i = 0; i < batches; i++)
		differences[i] = hot_batch_ns(path);
	return figure_of(differences, batches);
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

/* Turn about, as the machine changes its speed; and amid other memory each time, as where that lies in the caches
 * is good for some percent. */
static int measure_cold(struct rls_kernel *kernel, unsigned int batches, struct figures figures[RLS_PATH_MAX])
{
	double differences[RLS_PATH_MAX][BATCHES_MAX];
	uint64_t end_ns = rls_monotonic_ns() + COLD_NS_MAX;
	unsigned int done = 0;

	while (done < batches && (done < BATCHES_ENOUGH || rls_monotonic_ns() < end_ns)) {
		struct rls_disturb disturb = { 0 };
		int r = start_disturb(&disturb);

		for (int path = 0; !r && path < RLS_PATH_MAX; path++)
			differences[path][done] = cold_batch_ns(path, &disturb);
		r = end_disturb(&disturb, kernel, r);
		if (r)
			return r;
		done++;
	}
	for (int path = 0; path < RLS_PATH_MAX; path++)
		figures[path].cold = figure_of(differences[path], done);
	return 0;
}

static int make_site(enum rls_calibrated_path path, struct rls_site *site)
{
	bool returns = path == RLS_PATH_RETURN || path == RLS_PATH_EVENT;
	unsigned long offset;
	int r = rls_own_file_offset((const void *)(uintptr_t)targets[path].probed, &offset);

	if (r)
		return r;
	*site = (struct rls_site){
		.file_offset = offset,
		.kind = RLS_SITE_ENTER,
		.site_class = path < (int)RLS_SITE_CLASS_MAX ? (int)path : (int)RLS_SITE_EMULATED,
		.exit = returns ? RLS_EXIT_RETURN_PROBE : RLS_EXIT_UNSEEN,
		/* From Python into Python changes nothing; into a backend it is an event. */
		.category = path == RLS_PATH_EVENT ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON,
		.from_python = true,
	};
	return 0;
}

static int attach(struct rls_kernel *kernel)
{
	struct rls_site sites[RLS_PATH_MAX];
	size_t count = 0, attached;
	unsigned long flush;
	int r = rls_own_file_offset((const void *)(uintptr_t)targets[RLS_PATH_USDT].probed, &flush);

	for (int path = 0; !r && path < RLS_PATH_MAX; path++) {
		if (path != RLS_PATH_USDT)
			r = make_site(path, &sites[count++]);
	}
	if (!r)
		r = rls_kernel_attach_flush(kernel, "/proc/self/exe", flush, 0);
	if (!r)
		r = rls_kernel_attach_sites(kernel, "/proc/self/exe", sites, count, 0, &attached);
	return r;
}

/* Tracks this process, its record of edges too. */
static int begin(struct rls_kernel *kernel)
{
	const struct rls_wire_process settings = {
		.annotate_offset = (uint64_t)((uintptr_t)&annotated -
					      (uintptr_t)__builtin_thread_pointer()),
		.flags = RLS_PROCESS_ANNOTATED,
	};
	uint64_t ignored_ns;
	int r;

	memset(&edges, 0, sizeof(edges));
	annotated = &edges;
	r = rls_kernel_track(kernel, getpid(), &settings);
	if (!r)
		r = attach(kernel);
	return r ? r : rls_kernel_start(kernel, &ignored_ns);
}

static int end(struct rls_kernel *kernel, size_t mark)
{
	rls_kernel_pause(kernel);
	rls_kernel_detach_since(kernel, mark);
	rls_kernel_untrack(kernel, getpid());
	rls_kernel_forget_drops(kernel);
	annotated = NULL;
	return rls_kernel_consume(kernel) < 0 ? -EIO : 0;
}

/* ---- how a pair's cost is divided ---- */

/* Gaps between the events of the EVENT target, from an entry to its return. */
struct gaps {
	uint64_t last_ns;
	double inside_ns[BATCHES_MAX * HOT_CALLS];
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
	if (gaps->last_ns && event->category == RLS_CATEGORY_PYTHON &&
	    gaps->inside < BATCHES_MAX * HOT_CALLS)
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

/* ---- from the measurements to the figures ---- */

/* a - share * b */
static struct figure less(struct figure a, struct figure b)
{
	return (struct figure){ a.median_ns - b.median_ns, hypot(a.half_width_ns, b.half_width_ns) };
}

static struct figure divided(struct figure a, double by)
{
	return (struct figure){ a.median_ns / by, a.half_width_ns / by };
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

static struct figure spilt(struct figure hot, struct figure cold)
{
	return (struct figure){ hot.median_ns + SINGLE_STEP_SPILL * fmax(cold.median_ns - hot.median_ns, 0),
				hypot(SINGLE_STEP_SPILL * cold.half_width_ns, hot.half_width_ns) };
}

static void conclude(const struct figures measured[RLS_PATH_MAX], struct rls_calibration *out)
{
	struct figure hot[RLS_PATH_MAX], cold[RLS_PATH_MAX];

	for (int path = 0; path < RLS_PATH_MAX; path++) {
		hot[path] = measured[path].hot;
		cold[path] = measured[path].cold;
	}
	cold[RLS_PATH_SINGLE_STEP_ENTRY] = spilt(hot[RLS_PATH_SINGLE_STEP_ENTRY], cold[RLS_PATH_SINGLE_STEP_ENTRY]);
	split(hot, RLS_EDGE_FLUSH);
	split(cold, RLS_EDGES_COLD);
	for (int path = 0; path < RLS_PATH_MAX; path++)
		out->paths[path] = (struct rls_calibrated){
			.value_ns = fmax(cold[path].median_ns, 0),
			.error_ns = cold[path].half_width_ns,
			.hot_ns = fmax(hot[path].median_ns, 0),
			.hot_error_ns = hot[path].half_width_ns,
		};
}

int rls_calibrate(struct rls_kernel *kernel, unsigned int batches, struct rls_calibration *out)
{
	static struct gaps gaps;
	struct figures measured[RLS_PATH_MAX];
	struct rls_calibration result = { 0 };
	size_t mark = rls_kernel_mark(kernel);
	int r, ended;

	if (batches > BATCHES_MAX)
		batches = BATCHES_MAX;
	gaps = (struct gaps){ 0 };
	r = rls_kernel_set_handler(kernel, collect_gap, &gaps);
	if (!r)
		r = begin(kernel);
	for (int path = 0; !r && path < RLS_PATH_MAX; path++)
		measured[path].hot = measure_hot(path, batches);
	if (!r && rls_kernel_consume(kernel) < 0)
		r = -EIO;
	result.inside_ns = median_gap(&gaps);
	if (!r)
		r = measure_cold(kernel, batches, measured);
	ended = end(kernel, mark);
	if (r || ended)
		return r ? r : ended;
	conclude(measured, &result);
	*out = result;
	return 0;
}

/* ---- looking whether a calibration still holds ---- */

struct clocks {
	uint64_t wall_ns, cpu_ns;
};

static struct clocks clocks_now(void)
{
	struct timespec cpu;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (struct clocks){ rls_monotonic_ns(), (uint64_t)cpu.tv_sec * 1000000000ULL + (uint64_t)cpu.tv_nsec };
}

static bool others_ran(struct clocks since)
{
	struct clocks now = clocks_now();

	return (double)(now.cpu_ns - since.cpu_ns) < RAN_SHARE_MIN * (double)(now.wall_ns - since.wall_ns);
}

/* What a pair costs amid other work; no number where others ran. */
static int look_cold(struct rls_kernel *kernel, double *pair_ns)
{
	double differences[LOOK_MEMORIES * LOOK_COLD_BATCHES];
	struct clocks begin = clocks_now();
	unsigned int count = 0;

	for (int memory = 0; memory < LOOK_MEMORIES; memory++) {
		struct rls_disturb disturb = { 0 };
		int r = start_disturb(&disturb);

		for (int i = 0; !r && i < LOOK_COLD_BATCHES; i++)
			differences[count++] = cold_batch_ns(RLS_PATH_RETURN, &disturb);
		r = end_disturb(&disturb, kernel, r);
		if (r)
			return r;
		if (others_ran(begin)) {
			*pair_ns = NAN;
			return 0;
		}
	}
	*pair_ns = figure_of(differences, count).median_ns;
	return 0;
}

/* Infinite where nothing is known to compare with. */
static double share_of(double now_ns, double entry_ns, double return_ns)
{
	return entry_ns + return_ns > 0 ? now_ns / (entry_ns + return_ns) : INFINITY;
}

static int look(struct rls_kernel *kernel, const struct rls_calibration *calibration,
		struct rls_calibration_look *out)
{
	const struct rls_calibrated *entry = &calibration->paths[RLS_PATH_EMULATED_ENTRY];
	const struct rls_calibrated *leave = &calibration->paths[RLS_PATH_RETURN];
	double hot_ns = measure_hot(RLS_PATH_RETURN, LOOK_HOT_BATCHES).median_ns, cold_ns;
	int r = look_cold(kernel, &cold_ns);

	if (r)
		return r;
	*out = (struct rls_calibration_look){
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

int rls_calibrate_look(struct rls_kernel *kernel, const struct rls_calibration *calibration,
		       struct rls_calibration_look *out)
{
	struct rls_calibration_look seen = { 0 };
	size_t mark = rls_kernel_mark(kernel);
	int r, ended;

	r = rls_kernel_set_handler(kernel, ignore, NULL);
	if (!r)
		r = begin(kernel);
	if (!r)
		r = look(kernel, calibration, &seen);
	ended = end(kernel, mark);
	if (r || ended)
		return r ? r : ended;
	*out = seen;
	return 0;
}

/* What of a pair falls inside the call is what of the entry comes after its event and what
 * of the return comes before its own; only the difference of the two befores matters to
 * calls one after another. The return's is taken to be a fair share. The events' times are those
 * of the hot loop; what cold hits cost more is inside and outside alike, as what one drives out of the
 * caches is missed after it: so categories got what samples say of them (scripts/bench/README.md). */
static void divide(const struct rls_calibration *calibration, struct rls_hit_costs *costs)
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
	divide(calibration, &costs);
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
