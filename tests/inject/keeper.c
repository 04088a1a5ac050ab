/* keeper THREADS: threads that have something in every register, in the vector registers, in the
 * red zone, in the flags and in their signal mask, and look again and again whether it is there.
 *
 * Says "ready"; ends when its standard input does, with "kept" and status 0, or with what was lost.
 * Second arguments: "sleep", its only thread waits instead; "errors" and "kills", in a sandbox that
 * lets clone3() fail, or in which the C library's ways to make threads kill; "guards", its next thread gets
 * a stack with guard pages in the mapping itself, as glibc 2.42 makes them.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUND 20000

static atomic_bool is_over;
static atomic_ulong lost, rounds;

/* 1 when all is as it was. Everything that is kept is loaded, ROUND turns are spent, all of it is
 * compared. The carry flag is on meanwhile; `dec` and `jnz` leave it alone. */
__attribute__((noinline)) static uint64_t keep(uint64_t seed)
{
	uint64_t same = 0;

	__asm__ volatile("movq %[seed], -8(%%rsp)\n\t"
			 "movq %[seed], -128(%%rsp)\n\t"
			 "movq %[seed], %%xmm0\n\t"
			 "movq %[seed], %%xmm15\n\t"
			 "lea 1(%[seed]), %%rax\n\t"
			 "lea 2(%[seed]), %%rbx\n\t"
			 "lea 3(%[seed]), %%rdx\n\t"
			 "lea 4(%[seed]), %%rdi\n\t"
			 "lea 5(%[seed]), %%r8\n\t"
			 "lea 6(%[seed]), %%r9\n\t"
			 "lea 7(%[seed]), %%r10\n\t"
			 "lea 8(%[seed]), %%r11\n\t"
			 "lea 9(%[seed]), %%r12\n\t"
			 "lea 10(%[seed]), %%r13\n\t"
			 "lea 11(%[seed]), %%r14\n\t"
			 "lea 12(%[seed]), %%r15\n\t"
			 "movl %[round], %%ecx\n\t"
			 "stc\n"
			 "1:\n\t"
			 "dec %%ecx\n\t"
			 "jnz 1b\n\t"
			 "jnc 2f\n\t"
			 "dec %%rax\n\t"
			 "cmp %[seed], %%rax\n\t"
			 "jne 2f\n\t"
			 "sub $2, %%rbx\n\t"
			 "cmp %[seed], %%rbx\n\t"
			 "jne 2f\n\t"
			 "sub $3, %%rdx\n\t"
			 "cmp %[seed], %%rdx\n\t"
			 "jne 2f\n\t"
			 "sub $4, %%rdi\n\t"
			 "cmp %[seed], %%rdi\n\t"
			 "jne 2f\n\t"
			 "sub $5, %%r8\n\t"
			 "cmp %[seed], %%r8\n\t"
			 "jne 2f\n\t"
			 "sub $6, %%r9\n\t"
			 "cmp %[seed], %%r9\n\t"
			 "jne 2f\n\t"
			 "sub $7, %%r10\n\t"
			 "cmp %[seed], %%r10\n\t"
			 "jne 2f\n\t"
			 "sub $8, %%r11\n\t"
			 "cmp %[seed], %%r11\n\t"
			 "jne 2f\n\t"
			 "sub $9, %%r12\n\t"
			 "cmp %[seed], %%r12\n\t"
			 "jne 2f\n\t"
			 "sub $10, %%r13\n\t"
			 "cmp %[seed], %%r13\n\t"
			 "jne 2f\n\t"
			 "sub $11, %%r14\n\t"
			 "cmp %[seed], %%r14\n\t"
			 "jne 2f\n\t"
			 "sub $12, %%r15\n\t"
			 "cmp %[seed], %%r15\n\t"
			 "jne 2f\n\t"
			 "cmp %[seed], -8(%%rsp)\n\t"
			 "jne 2f\n\t"
			 "cmp %[seed], -128(%%rsp)\n\t"
			 "jne 2f\n\t"
			 "movq %%xmm0, %%rax\n\t"
			 "cmp %[seed], %%rax\n\t"
			 "jne 2f\n\t"
			 "movq %%xmm15, %%rax\n\t"
			 "cmp %[seed], %%rax\n\t"
			 "jne 2f\n\t"
			 "movl $1, %%eax\n\t"
			 "jmp 3f\n"
			 "2:\n\t"
			 "xorl %%eax, %%eax\n"
			 "3:\n\t"
			 "movq %%rax, %[seed]\n\t"
			 : [seed] "+&S"(seed)
			 : [round] "i"(ROUND)
			 : "rax", "rbx", "rcx", "rdx", "rdi", "r8", "r9", "r10", "r11", "r12",
			   "r13", "r14", "r15", "xmm0", "xmm15", "cc", "memory");
	same = seed;
	return same;
}

/* The same for the upper halves of the wide registers. */
__attribute__((noinline, target("avx"))) static uint64_t keep_wide(uint64_t seed)
{
	uint64_t pattern[4] = {seed, ~seed, seed * 3, seed * 5}, after[4] = {0};

	__asm__ volatile("vmovdqu %[pattern], %%ymm7\n\t"
			 "movl %[round], %%ecx\n"
			 "1:\n\t"
			 "dec %%ecx\n\t"
			 "jnz 1b\n\t"
			 "vmovdqu %%ymm7, %[after]\n\t"
			 "vzeroupper\n\t"
			 : [after] "=m"(after)
			 : [pattern] "m"(pattern), [round] "i"(ROUND)
			 : "rcx", "xmm7", "cc");
	return !memcmp(pattern, after, sizeof(after));
}

/* Every thread has signals and a signal stack of its own. */
static void *run(void *number)
{
	static _Thread_local char stack[32768];
	const stack_t mine = {.ss_sp = stack, .ss_size = sizeof(stack)};
	bool has_avx = __builtin_cpu_supports("avx");
	uint64_t seed = (uint64_t)(uintptr_t)number * 0x9e3779b97f4a7c15 + 77;
	sigset_t mask, now;
	stack_t found;

	sigemptyset(&mask);
	sigaddset(&mask, (uintptr_t)number % 2 ? SIGUSR1 : SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaltstack(&mine, NULL);
	while (!is_over) {
		if (!keep(seed) || (has_avx && !keep_wide(seed)))
			lost++;
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		sigaltstack(NULL, &found);
		if (memcmp(&now, &mask, 8) || found.ss_sp != stack ||
		    found.ss_size != sizeof(stack))
			lost++;
		free(malloc(1000 + seed % 100000)); /* the C library's locks, now and then */
		rounds++;
		seed += rounds;
	}
	return NULL;
}

static void enter_sandbox(uint32_t answer)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {4, program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
		perror("seccomp");
}

#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL, Linux 6.13 */
#define GUARD_BYTES 65536

static void *find_stack(void *lowest)
{
	pthread_attr_t attributes;
	size_t bytes;

	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, lowest, &bytes);
		pthread_attr_destroy(&attributes);
	}
	return NULL;
}

/* The C library gives the stack of a thread that has ended to the next one. */
static void guard_next_stack(void)
{
	pthread_t thread;
	void *lowest = NULL;

	if (pthread_create(&thread, NULL, find_stack, &lowest) || pthread_join(thread, NULL) ||
	    !lowest)
		perror("pthread_create");
	else if (madvise(lowest, GUARD_BYTES, GUARD_INSTALL))
		perror("no guard pages within a mapping here");
}

/* After our threads are there: all of them are in it. */
static void enter(const char *kind)
{
	if (!strcmp(kind, "errors"))
		enter_sandbox(SECCOMP_RET_ERRNO | 38);
	else if (!strcmp(kind, "kills"))
		enter_sandbox(SECCOMP_RET_KILL_PROCESS);
	else if (!strcmp(kind, "guards"))
		guard_next_stack();
}

int main(int argc, char **argv)
{
	bool sleeps = argc > 2 && !strcmp(argv[2], "sleep");
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
	pthread_t threads[64];
	char byte;

	count = count < 64 ? count : 64;
	for (size_t i = 0; !sleeps && i < count; i++)
		pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i);
	enter(argc > 2 ? argv[2] : "");
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) == 1)
		;
	is_over = true;
	for (size_t i = 0; !sleeps && i < count; i++)
		pthread_join(threads[i], NULL);
	printf(lost ? "lost %lu of %lu\n" : "kept\n", lost, rounds);
	return lost ? 1 : 0;
}
