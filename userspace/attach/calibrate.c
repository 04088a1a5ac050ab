#include "userspace/attach/calibrate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "userspace/attach/features.h"

#define BATCHES 15
#define CALLS 200
#define CALLS_SINGLE_STEP 20    /* each takes some 10 us in a virtual machine */

/* What a busy target adds to a hot loop's figure: misses on the probe's own data. */
#define COLD_SHARE 0.15

/* Of a return probe's cost, before its time is taken. */
#define SHARE_BEFORE 0.6

/* One function per class, each beginning with an instruction of it, and two more for what
 * a return probe and an emitted event add. In assembler, so that they stay what they are. */
#define TARGET(name, first)                          \
	void name(void);                             \
	asm(".text\n.p2align 4\n.globl " #name "\n"  \
	    ".hidden " #name "\n"                     \
	    ".type " #name ", @function\n" #name ":\n" \
	    first "\n\tret\n.size " #name ", . - " #name "\n")

TARGET(rls_target_nop5, "\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00");
TARGET(rls_target_push, "\tpush %rbp\n\tpop %rbp");
TARGET(rls_target_mov, "\tmov %rdi, %rax");
TARGET(rls_target_return, "\tpush %rbp\n\tpop %rbp");
TARGET(rls_target_event, "\tpush %rbp\n\tpop %rbp");

enum target { NOP5, EMULATED, SINGLE_STEP, RETURN, EVENT, TARGETS };

static void (*const functions[TARGETS])(void) = {
	[NOP5] = rls_target_nop5,     [EMULATED] = rls_target_push,
	[SINGLE_STEP] = rls_target_mov, [RETURN] = rls_target_return,
	[EVENT] = rls_target_event,
};

_Static_assert(NOP5 == (int)RLS_SITE_NOP5 && EMULATED == (int)RLS_SITE_EMULATED &&
		       SINGLE_STEP == (int)RLS_SITE_SINGLE_STEP,
	       "targets begin with the classes");

struct figure {
	double median_ns, spread_ns;
};

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double batch_ns(void (*function)(void), int calls)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < calls; i++)
		function();
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
	       calls;
}

static struct figure measure(enum target target)
{
	void (*function)(void) = functions[target];
	int calls = target == SINGLE_STEP ? CALLS_SINGLE_STEP : CALLS;
	double batches[BATCHES];

	batch_ns(function, calls); /* warm */
	for (int i = 0; i < BATCHES; i++)
		batches[i] = batch_ns(function, calls);
	qsort(batches, BATCHES, sizeof(batches[0]), compare_doubles);
	return (struct figure){ batches[BATCHES / 2],
				(batches[BATCHES * 3 / 4] - batches[BATCHES / 4]) / 2 };
}

static int make_sites(struct rls_site sites[TARGETS])
{
	for (int i = 0; i < TARGETS; i++) {
		unsigned long offset;
		int r = rls_own_file_offset((const void *)(uintptr_t)functions[i], &offset);

		if (r)
			return r;
		sites[i] = (struct rls_site){
			.file_offset = offset,
			.kind = RLS_SITE_ENTER,
			.site_class = i < (int)RLS_SITE_CLASS_MAX ? i : (int)RLS_SITE_EMULATED,
			.exit = i < RETURN ? RLS_EXIT_UNSEEN : RLS_EXIT_RETURN_PROBE,
			/* From Python into Python changes nothing; into a backend it is an event. */
			.category = i == EVENT ? RLS_CATEGORY_BACKEND : RLS_CATEGORY_PYTHON,
			.from_python = true,
		};
	}
	return 0;
}

static void add(struct rls_calibration *out, const char *name, double value_ns, double spread_ns)
{
	out->figures[out->count++] = (struct rls_calibrated){
		.name = name,
		.value_ns = fmax(value_ns, 0),
		.error_ns = hypot(spread_ns, COLD_SHARE * value_ns),
	};
}

/* Gaps between the events of the EVENT target, from an entry to its return. */
struct gaps {
	uint64_t last_ns;
	double inside_ns[BATCHES * CALLS];
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
	if (gaps->last_ns && event->category == RLS_CATEGORY_PYTHON && gaps->inside < BATCHES * CALLS)
		gaps->inside_ns[gaps->inside++] = gap_ns;
	gaps->last_ns = record->time_ns;
	return 0;
}

/* What of a pair falls inside the call is what of the entry comes after its event and what
 * of the return comes before its own; only the difference of the two befores matters to
 * calls one after another. The return's is taken to be a fair share. */
static void divide(struct gaps *gaps, struct rls_hit_costs *costs)
{
	double entry_ns = costs->ns[RLS_SITE_EMULATED][0] + costs->event_ns;
	double return_ns = costs->ns[RLS_SITE_EMULATED][1] + costs->event_ns;
	double inside_ns, before_return_ns, before_entry_ns;

	if (!gaps->inside)
		return;
	qsort(gaps->inside_ns, gaps->inside, sizeof(gaps->inside_ns[0]), compare_doubles);
	inside_ns = gaps->inside_ns[gaps->inside / 2];
	before_return_ns = return_ns * SHARE_BEFORE;
	before_entry_ns = before_return_ns + entry_ns - inside_ns;
	costs->before_ns[1] = (uint32_t)lround(before_return_ns);
	costs->before_ns[0] = (uint32_t)lround(fmin(fmax(before_entry_ns, 0), entry_ns));
}

/* plain[]: without probes. */
static void conclude(const struct figure plain[TARGETS], const struct figure probed[TARGETS],
		     struct rls_calibration *out)
{
	static const char *const names[] = { "nop5.entry", "emulated.entry", "single-step.entry" };
	double cost[TARGETS], spread[TARGETS];

	for (int i = 0; i < TARGETS; i++) {
		cost[i] = probed[i].median_ns - plain[i].median_ns;
		spread[i] = probed[i].spread_ns + plain[i].spread_ns;
	}
	for (int i = 0; i < RLS_SITE_CLASS_MAX; i++)
		add(out, names[i], cost[i], spread[i]);
	add(out, "return", cost[RETURN] - cost[EMULATED], spread[RETURN]);
	/* An entry and a return that each emit, less the same two silent. */
	add(out, "event", (cost[EVENT] - cost[RETURN]) / 2, spread[EVENT] / 2);

	for (int i = 0; i < RLS_SITE_CLASS_MAX; i++) {
		out->costs.ns[i][0] = (uint32_t)lround(out->figures[i].value_ns);
		out->costs.ns[i][1] = (uint32_t)lround(out->figures[RLS_SITE_CLASS_MAX].value_ns);
	}
	out->costs.event_ns = (uint32_t)lround(out->figures[RLS_SITE_CLASS_MAX + 1].value_ns);
}

int rls_calibrate(struct rls_kernel *kernel, struct rls_calibration *out)
{
	static struct gaps gaps;
	const struct rls_wire_process settings = { 0 };
	struct figure plain[TARGETS], probed[TARGETS];
	struct rls_calibration result = { 0 };
	struct rls_site sites[TARGETS];
	size_t mark = rls_kernel_mark(kernel), attached;
	uint64_t ignored_ns;
	int r = make_sites(sites);

	gaps = (struct gaps){ 0 };
	if (!r)
		r = rls_kernel_set_handler(kernel, collect_gap, &gaps);
	for (int i = 0; i < TARGETS; i++)
		plain[i] = measure(i);
	if (!r)
		r = rls_kernel_track(kernel, getpid(), &settings);
	if (!r)
		r = rls_kernel_attach_sites(kernel, "/proc/self/exe", sites, TARGETS, 0, &attached);
	if (!r)
		r = rls_kernel_start(kernel, &ignored_ns);
	for (int i = 0; !r && i < TARGETS; i++)
		probed[i] = measure(i);
	rls_kernel_pause(kernel);
	rls_kernel_detach_since(kernel, mark);
	rls_kernel_untrack(kernel, getpid());
	if (!r && rls_kernel_consume(kernel) < 0)
		r = -EIO;
	if (r)
		return r;
	conclude(plain, probed, &result);
	divide(&gaps, &result.costs);
	*out = result;
	return 0;
}
