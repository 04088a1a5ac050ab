/* What a traced entry and return cost beside an empty pair of probes: scripts/bench/hits.
 *
 *     hit_speed           ours, silent and emitting, and programs of two instructions, as a pair
 *                         and as a session, each on a function of its own, turn about: JSON
 *     hit_speed loop      calls rls_stepped for a second, again and again, and prints ns per
 *                         call: for other tools to probe
 *     hit_speed own       the same with our probes on rls_stepped, where the planner would put them
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/features.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_sites.h"

/* enum bpf_attach_type of kernels 6.6 and 6.13, and the flag of return probes. */
#define ATTACH_TYPE_UPROBE_MULTI 48
#define ATTACH_TYPE_UPROBE_SESSION 57
#define FLAG_RETURN 1

#define ROUNDS 301
#define CALLS 300

#define FUNCTION(name, first)                                                                      \
	void name(void);                                                                           \
	asm(".text\n.p2align 6\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" first  \
	    "\n\tret\n.size " #name ", . - " #name "\n")
#define PUSH "\tpush %rbp\n\tpop %rbp"

FUNCTION(rls_plain, PUSH);
FUNCTION(rls_empty, PUSH);
FUNCTION(rls_session, PUSH);
FUNCTION(rls_silent, PUSH);
FUNCTION(rls_emitting, PUSH);
/* As compilers begin functions where control-flow protection is on: single-stepped there. */
FUNCTION(rls_stepped, "\tendbr64\n" PUSH);
#define ENDBR64_BYTES 4

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double call_ns(void (*function)(void))
{
	double begin_ns = now_ns();

	for (int i = 0; i < CALLS; i++)
		function();
	return (now_ns() - begin_ns) / CALLS;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static unsigned long offset_of(void (*function)(void))
{
	unsigned long offset;

	if (rls_own_file_offset((const void *)(uintptr_t)function, &offset)) {
		fputs("hit_speed: cannot find its own functions\n", stderr);
		exit(1);
	}
	return offset;
}

/* What bpf(BPF_LINK_CREATE) takes: libbpf 1.4 does not know of sessions. */
struct link_create {
	uint32_t program, target, type, no_flags;
	uint64_t path, offsets, counters, cookies;
	uint32_t count, flags, pid, reserved;
};

/* `return 0` on entries, returns, or with a session on both. */
static int attach_empty(void (*function)(void), int type, unsigned int flags)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = (enum bpf_attach_type)type);
	unsigned long offset = offset_of(function);
	struct link_create create = {
		.program = (uint32_t)bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rls_empty", "GPL",
						   instructions, 2, &load),
		.type = (uint32_t)type,
		.path = (uintptr_t) "/proc/self/exe",
		.offsets = (uintptr_t)&offset,
		.count = 1,
		.flags = flags,
	};

	return (int)syscall(SYS_bpf, BPF_LINK_CREATE, &create, sizeof(create));
}

static int ignore(const struct rls_wire_header *record, size_t size, void *context)
{
	(void)record;
	(void)size;
	(void)context;
	return 0;
}

static int attach_own(struct rls_kernel **kernel)
{
	const struct rls_kernel_options options = {.transitions_bytes = 4 << 20,
						   .control_bytes = 1 << 20};
	const struct rls_wire_process settings = {0};
	struct rls_site sites[] = {
		{.file_offset = offset_of(rls_silent), .category = RLS_CATEGORY_PYTHON},
		{.file_offset = offset_of(rls_emitting), .category = RLS_CATEGORY_BACKEND},
		{.file_offset = offset_of(rls_stepped) + ENDBR64_BYTES,
		 .category = RLS_CATEGORY_BACKEND},
	};
	uint64_t ignored_ns;
	size_t attached;
	int r = rls_kernel_open(&options, kernel);

	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		sites[i].site_class = RLS_SITE_EMULATED;
		sites[i].exit = RLS_EXIT_RETURN_PROBE;
		sites[i].from_python = true;
	}
	if (!r)
		r = rls_kernel_set_handler(*kernel, ignore, NULL);
	if (!r)
		r = rls_kernel_track(*kernel, getpid(), &settings);
	if (!r)
		r = rls_kernel_attach_sites(*kernel, "/proc/self/exe", sites, 3, 0, &attached);
	return r ? r : rls_kernel_start(*kernel, &ignored_ns);
}

/* [0] is the plain function; the others' figures are what they take more in the same round. */
static void measure(struct rls_kernel *kernel)
{
	static void (*const functions[])(void) = {rls_plain, rls_empty, rls_session, rls_silent,
						  rls_emitting};
	static const char *const names[] = {"empty", "session", "silent", "emitting"};
	static double pairs_ns[5][ROUNDS], ratios[5][ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 5; i++)
			pairs_ns[i][round] = call_ns(functions[i]) - (i ? pairs_ns[0][round] : 0);
		for (int i = 1; i < 5; i++)
			ratios[i][round] = pairs_ns[i][round] / pairs_ns[1][round];
		rls_kernel_consume(kernel);
	}
	printf("{");
	for (int i = 1; i < 5; i++) {
		qsort(pairs_ns[i], ROUNDS, sizeof(double), compare);
		qsort(ratios[i], ROUNDS, sizeof(double), compare);
		printf("%s\"%s\": {\"pair_ns\": %.1f, \"ratio\": %.3f, \"ratio_low\": %.3f, "
		       "\"ratio_high\": %.3f}",
		       i > 1 ? ", " : "", names[i - 1], pairs_ns[i][ROUNDS / 2],
		       ratios[i][ROUNDS / 2], ratios[i][ROUNDS / 4], ratios[i][ROUNDS * 3 / 4]);
	}
	printf("}\n");
}

static void loop(struct rls_kernel *kernel)
{
	for (;;) {
		double end_ns = now_ns() + 1e9, sum_ns = 0;
		int batches = 0;

		while (now_ns() < end_ns) {
			sum_ns += call_ns(rls_stepped);
			batches++;
			if (kernel)
				rls_kernel_consume(kernel);
		}
		printf("%.1f\n", sum_ns / batches);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct rls_kernel *kernel = NULL;

	if (strcmp(what, "loop") && attach_own(&kernel))
		return 1;
	if (*what) {
		loop(kernel);
	} else {
		if (attach_empty(rls_empty, ATTACH_TYPE_UPROBE_MULTI, 0) < 0 ||
		    attach_empty(rls_empty, ATTACH_TYPE_UPROBE_MULTI, FLAG_RETURN) < 0) {
			perror("hit_speed: cannot attach empty programs");
			return 1;
		}
		if (attach_empty(rls_session, ATTACH_TYPE_UPROBE_SESSION, 0) < 0)
			fputs("hit_speed: this kernel has no session probes\n", stderr);
		measure(kernel);
	}
	rls_kernel_close(kernel);
	return 0;
}
