#include "userspace/inject/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "analysis/base/cleanup.h"

#define GET_FILTER 0x420c /* PTRACE_SECCOMP_GET_FILTER */
#define INSTRUCTIONS_MAX 65536
#define FILTERS_MAX 256
#define THREAD_FLAGS 0x3d0f00 /* of the C library's clone() for a thread */

/* What making a thread, loading a library and the bridge's own thread ask the kernel for. */
static const struct rls_sandbox_call needed[] = {
	{SYS_mmap, 0},
	{SYS_mprotect, 0},
	{SYS_munmap, 0},
	{SYS_madvise, 0},
	{SYS_brk, 0},
	{SYS_clone3, 0},
	{SYS_clone, THREAD_FLAGS},
	{SYS_rseq, 0},
	{SYS_set_robust_list, 0},
	{SYS_rt_sigprocmask, 0},
	{SYS_sched_yield, 0},
	{SYS_futex, 0},
	{SYS_exit, 0},
	{SYS_openat, 0},
	{SYS_read, 0},
	{SYS_pread64, 0},
	{SYS_fstat, 0},
	{SYS_newfstatat, 0},
	{SYS_close, 0},
	{SYS_getrandom, 0},
	{SYS_getpid, 0},
	{SYS_prctl, PR_SET_NAME},
	{SYS_prctl, PR_SET_TIMERSLACK},
	{SYS_clock_nanosleep, 0},
	{SYS_process_vm_readv, 0},
};

/* ---- one filter: what seccomp(2) allows of classic BPF ---- */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	struct seccomp_data data;
};

static uint32_t calculate(uint32_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : 0;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return -a; /* BPF_NEG */
	}
}

static bool sandbox_compare(uint32_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return a & b; /* BPF_JSET */
	}
}

/* False: an access outside of what there is. */
static bool sandbox_load(const struct machine *machine, const struct sock_filter *at, uint32_t *out)
{
	switch (BPF_MODE(at->code)) {
	case BPF_IMM:
		*out = at->k;
		return true;
	case BPF_MEM:
		if (at->k < BPF_MEMWORDS)
			*out = machine->memory[at->k];
		return at->k < BPF_MEMWORDS;
	case BPF_LEN:
		*out = sizeof(machine->data);
		return true;
	default: /* BPF_ABS */
		if (at->k > sizeof(machine->data) - sizeof(*out))
			return false;
		memcpy(out, (const char *)&machine->data + at->k, sizeof(*out));
		return true;
	}
}

/* All but jumps and returns. */
static bool execute(struct machine *machine, const struct sock_filter *at)
{
	switch (BPF_CLASS(at->code)) {
	case BPF_LD:
		return sandbox_load(machine, at, &machine->a);
	case BPF_LDX:
		return sandbox_load(machine, at, &machine->x);
	case BPF_ST:
	case BPF_STX:
		if (at->k < BPF_MEMWORDS)
			machine->memory[at->k] =
				BPF_CLASS(at->code) == BPF_ST ? machine->a : machine->x;
		return at->k < BPF_MEMWORDS;
	case BPF_ALU:
		machine->a = calculate(BPF_OP(at->code), machine->a,
				       BPF_SRC(at->code) == BPF_X ? machine->x : at->k);
		return true;
	default: /* BPF_MISC */
		if (BPF_MISCOP(at->code) == BPF_TAX)
			machine->x = machine->a;
		else
			machine->a = machine->x;
		return true;
	}
}

uint32_t rls_sandbox_run(const struct sock_filter *program, size_t length,
			 const struct rls_sandbox_call *call)
{
	struct machine machine = {
		.data = {.nr = (int)call->number, .arch = AUDIT_ARCH_X86_64, .args = {call->first}},
	};

	for (size_t i = 0; i < length; i++) { /* jumps lead forward only */
		const struct sock_filter *at = &program[i];

		if (BPF_CLASS(at->code) == BPF_RET)
			return BPF_RVAL(at->code) == BPF_A ? machine.a : at->k;
		if (BPF_CLASS(at->code) != BPF_JMP) {
			if (!execute(&machine, at))
				break;
		} else if (BPF_OP(at->code) == BPF_JA) {
			i += at->k;
		} else {
			i += sandbox_compare(BPF_OP(at->code), machine.a,
					     BPF_SRC(at->code) == BPF_X ? machine.x : at->k)
				     ? at->jt
				     : at->jf;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* ---- all of them ---- */

static bool is_allowed(uint32_t answer)
{
	uint32_t action = answer & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

static bool is_harmless(const struct sock_filter *program, size_t length)
{
	const struct rls_sandbox_call way_back = {SYS_rt_sigreturn, 0};

	if (!is_allowed(rls_sandbox_run(program, length, &way_back)))
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		uint32_t answer = rls_sandbox_run(program, length, &needed[i]);

		if (!is_allowed(answer) && (answer & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO)
			return false;
	}
	return true;
}

static bool has_filters(pid_t pid, pid_t tid)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[64], line[256];
	unsigned int mode = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Seccomp: %u", &mode) == 1)
			return mode;
	}
	return !file; /* a kernel without seccomp has no such line */
}

/* 0: harmless; 1: there is no filter of this number; -errno. */
static int check_filter(pid_t tid, unsigned long number)
{
	_cleanup_free_ struct sock_filter *program = NULL;
	long length = ptrace(GET_FILTER, tid, number, NULL);

	if (length < 0)
		return errno == ENOENT && number ? 1 : -EACCES;
	if (length > INSTRUCTIONS_MAX)
		return -EACCES;
	program = calloc((size_t)length + 1, sizeof(*program));
	if (!program)
		return -ENOMEM;
	if (ptrace(GET_FILTER, tid, number, program) != length)
		return -EACCES;
	return is_harmless(program, (size_t)length) ? 0 : -EPERM;
}

int rls_sandbox_check(pid_t pid, pid_t tid)
{
	if (!has_filters(pid, tid))
		return 0;
	for (unsigned long i = 0; i < FILTERS_MAX; i++) {
		int r = check_filter(tid, i);

		if (r)
			return r > 0 ? 0 : r;
	}
	return -EPERM;
}
