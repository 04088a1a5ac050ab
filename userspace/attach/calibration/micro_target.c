#include "userspace/attach/calibration/micro_target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/wire/maps.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/attach/features.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/clock.h"

#define HOT_SINGLE_STEP_CALLS 20 /* each takes some 10 us in a virtual machine */
#define COLD_CALLS 40
#define COLD_SINGLE_STEP_CALLS 10
/* Of the median call. A hit among other work costs at most that of the call and the work after it. */
#define INTERRUPTED_TIMES 3

/* Between two calls of the cold measurement, and after each: what a hit drove out is paid for by and by, all of
 * it after some 250 steps. Chosen so that hits cost what they do in PyTorch's training loops in the mean. */
#define COLD_STEPS 600
#define AFTER_STEPS 60

/* A single step leaves the virtual machine twice, where others' code and data fill all caches: what that costs
 * shows much later, and is the more the larger what was in them. */
#define SINGLE_STEP_STEPS 6000

/* Two functions that begin with the same instruction, on lines of their own: one to be
 * probed, one not. In assembler, so that they stay what they are. */
#define ONE(name, first)                                                                           \
	void name(void);                                                                           \
	asm(".text\n.p2align 6\n.globl " #name "\n"                                                \
	    ".hidden " #name "\n"                                                                  \
	    ".type " #name ", @function\n" #name ":\n" first "\n\tret\n.size " #name               \
	    ", . - " #name "\n")
#define TARGET(name, first)                                                                        \
	ONE(rls_probed_##name, first);                                                             \
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

/* By path; what one is probed with is in micro_target_attach(). */
static const struct {
	const char *name;
	void (*probed)(void), (*plain)(void);
} targets[RLS_PATH_MAX] = {
	[RLS_PATH_NOP5_ENTRY] = {"nop5.entry", rls_probed_nop5, rls_plain_nop5},
	[RLS_PATH_EMULATED_ENTRY] = {"emulated.entry", rls_probed_push, rls_plain_push},
	[RLS_PATH_SINGLE_STEP_ENTRY] = {"single-step.entry", rls_probed_mov, rls_plain_mov},
	[RLS_PATH_RETURN] = {"return", rls_probed_return, rls_plain_return},
	[RLS_PATH_EVENT] = {"event", rls_probed_event, rls_plain_event},
	[RLS_PATH_USDT] = {"usdt", rls_probed_usdt, rls_plain_usdt},
	[RLS_PATH_EDGE] = {"annotation.edge", rls_probed_edge, rls_plain_edge},
};

_Static_assert(RLS_PATH_NOP5_ENTRY == (int)RLS_SITE_NOP5 &&
		       RLS_PATH_EMULATED_ENTRY == (int)RLS_SITE_EMULATED &&
		       RLS_PATH_SINGLE_STEP_ENTRY == (int)RLS_SITE_SINGLE_STEP,
	       "paths begin with the classes");

const char *rls_path_name(enum rls_calibrated_path path)
{
	return targets[path].name;
}

/* ---- the record of an annotated thread, as the kernel side reads it ---- */

static _Thread_local struct rls_thread_record *annotated;
static struct rls_thread_record edges;
static const struct rls_name edges_name = {.length = 4, .text = "none"};
static bool edges_count; /* calls without probes make them in vain: nobody would read them */

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

/* ---- calling ---- */

/* By the thread's own clock, which stands while others have the CPU. */
static double hot_ns(void (*function)(void), void (*before)(void), int calls)
{
	double begin_ns = (double)rls_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < calls; i++) {
		before();
		function();
	}
	return ((double)rls_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / calls;
}

/* One call amid other work: what the hit drives out of the caches is paid for afterwards. To read the thread's own clock
 * is a system call, which would bring the kernel into the caches; so others' turns are left out of the means. */
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

static int order_times(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* Without those calls that something else interrupted: they take several times as long. */
static double uninterrupted_mean(double *ns, size_t count)
{
	double sum = 0;
	size_t kept = 0;

	qsort(ns, count, sizeof(*ns), order_times);
	while (kept < count && ns[kept] <= INTERRUPTED_TIMES * ns[count / 2])
		sum += ns[kept++];
	return sum / (double)kept;
}

static void do_nothing(void)
{
}

static int hot_calls(enum rls_calibrated_path path)
{
	if (path == RLS_PATH_EDGE)
		return RLS_HOT_CALLS * RLS_EDGES_COLD /
		       RLS_EDGE_FLUSH; /* what they send is to find room */
	return path == RLS_PATH_SINGLE_STEP_ENTRY ? HOT_SINGLE_STEP_CALLS : RLS_HOT_CALLS;
}

struct rls_batch rls_micro_target_cold(enum rls_calibrated_path path, struct rls_disturb *disturb)
{
	void (*before)(void) = path == RLS_PATH_EDGE ? make_few_edges : do_nothing;
	bool stepped = path == RLS_PATH_SINGLE_STEP_ENTRY;
	unsigned int before_steps = stepped ? SINGLE_STEP_STEPS : COLD_STEPS;
	unsigned int after_steps = stepped ? SINGLE_STEP_STEPS : AFTER_STEPS;
	int calls = stepped ? COLD_SINGLE_STEP_CALLS : COLD_CALLS;
	double plain_ns[COLD_CALLS], probed_ns[COLD_CALLS], mean_ns;

	for (int i = 0; i < calls; i++) {
		edges_count = false;
		plain_ns[i] =
			cold_ns(targets[path].plain, before, disturb, before_steps, after_steps);
		edges_count = true;
		probed_ns[i] =
			cold_ns(targets[path].probed, before, disturb, before_steps, after_steps);
	}
	mean_ns = uninterrupted_mean(plain_ns, (size_t)calls);
	return (struct rls_batch){uninterrupted_mean(probed_ns, (size_t)calls) - mean_ns, mean_ns};
}

struct rls_batch rls_micro_target_hot(enum rls_calibrated_path path)
{
	void (*before)(void) = path == RLS_PATH_EDGE ? make_many_edges : do_nothing;
	double plain_ns;

	edges_count = false;
	plain_ns = hot_ns(targets[path].plain, before, hot_calls(path));
	edges_count = true;
	return (struct rls_batch){hot_ns(targets[path].probed, before, hot_calls(path)) - plain_ns,
				  plain_ns};
}

/* ---- probing ---- */

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

static int micro_target_attach(struct rls_kernel *kernel)
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

int rls_micro_target_begin(struct rls_kernel *kernel)
{
	const struct rls_wire_process settings = {
		.annotate_offset =
			(uint64_t)((uintptr_t)&annotated - (uintptr_t)__builtin_thread_pointer()),
		.flags = RLS_PROCESS_ANNOTATED,
	};
	uint64_t ignored_ns;
	int r;

	memset(&edges, 0, sizeof(edges));
	annotated = &edges;
	r = rls_kernel_track(kernel, getpid(), &settings);
	if (!r)
		r = micro_target_attach(kernel);
	return r ? r : rls_kernel_start(kernel, &ignored_ns);
}

int rls_micro_target_end(struct rls_kernel *kernel, size_t mark)
{
	rls_kernel_pause(kernel);
	rls_kernel_detach_since(kernel, mark);
	rls_kernel_untrack(kernel, getpid());
	rls_kernel_forget_drops(kernel);
	annotated = NULL;
	return rls_kernel_consume(kernel) < 0 ? -EIO : 0;
}
