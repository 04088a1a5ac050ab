#include "userspace/record/memory/code_trial.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 10
#define BREAKPOINT 0xcc

static volatile size_t step_now;

struct tracing {
	const struct rls_code_trial *trial;
	pid_t child;
	uint64_t words[RLS_TRIAL_SITES_MAX]; /* at each site, without breakpoints */
	size_t step; /* of the last hit */
	unsigned int repeats[RLS_TRIAL_SITES_MAX]; /* hits in that step */
	bool reaped; /* its number may be another process's by now */
};

/* Moves pages onto others, by no function of a library: its code may be what they are. */
static bool move_pages(void *from, void *to, size_t bytes)
{
	register unsigned long flags __asm__("r10") = MREMAP_MAYMOVE | MREMAP_FIXED;
	register void *target __asm__("r8") = to;
	long result = SYS_mremap;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(from), "S"(bytes), "d"(bytes), "r"(flags), "r"(target)
			 : "rcx", "r11", "memory");
	return result == (long)to;
}

/* The code becomes memory of no file. Else the kernel would take a breakpoint for a probe that anybody has at that
 * place of the file, and pass over it. */
static bool leave_file(const struct rls_code_trial *trial)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = UINT64_MAX, end = 0;
	void *copy;

	for (size_t i = 0; i < trial->site_count; i++) {
		if (trial->sites[i] < start)
			start = trial->sites[i];
		if (trial->sites[i] > end)
			end = trial->sites[i];
	}
	if (!trial->site_count)
		return true;
	start &= ~(page - 1);
	end = (end & ~(page - 1)) + page;
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, (const void *)start, end - start); /* NOLINT: an address of ours */
	if (mprotect(copy, end - start, PROT_READ | PROT_EXEC))
		return false;
	return move_pages(copy, (void *)start, end - start); /* NOLINT: the same */
}

/* Other threads of ours are not there: what is done must need none of them. */
static _Noreturn void be_child(const struct rls_code_trial *trial)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	signal(SIGALRM, SIG_DFL);
	alarm(CHILD_SECONDS);
	if (!leave_file(trial) || ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	for (size_t i = 0; i < trial->steps; i++) {
		step_now = i;
		trial->act(i);
	}
	_exit(0);
}

static int peek(pid_t child, uint64_t address, uint64_t *out)
{
	errno = 0;
	*out = (uint64_t)ptrace(PTRACE_PEEKDATA, child, address, NULL);
	return -errno;
}

/* One byte: sites may be neighbours. */
static int put_byte(pid_t child, uint64_t address, uint8_t byte)
{
	uint64_t word;
	int r = peek(child, address, &word);

	if (r)
		return r;
	word = (word & ~0xffULL) | byte;
	return ptrace(PTRACE_POKEDATA, child, address, word) ? -errno : 0;
}

/* True: it stopped for a signal. */
static bool wait_for_stop(struct tracing *tracing, int *status)
{
	pid_t answer;

	do
		answer = waitpid(tracing->child, status, 0);
	while (answer < 0 && errno == EINTR);
	tracing->reaped = answer == tracing->child && !WIFSTOPPED(*status);
	return answer == tracing->child && !tracing->reaped;
}

static int begin(struct tracing *tracing)
{
	int r = 0, status;

	if (!wait_for_stop(tracing, &status))
		return -ECHILD;
	if (ptrace(PTRACE_SETOPTIONS, tracing->child, NULL, PTRACE_O_EXITKILL))
		return -errno;
	for (size_t i = 0; !r && i < tracing->trial->site_count; i++)
		r = peek(tracing->child, tracing->trial->sites[i], &tracing->words[i]);
	for (size_t i = 0; !r && i < tracing->trial->site_count; i++)
		r = put_byte(tracing->child, tracing->trial->sites[i], BREAKPOINT);
	return r;
}

static int report_hit(struct tracing *tracing, size_t site,
		      const struct user_regs_struct *registers)
{
	const struct rls_code_trial *trial = tracing->trial;
	uint64_t step;
	int r = peek(tracing->child, (uintptr_t)&step_now, &step);

	if (!r && step >= trial->steps)
		r = -ECHILD;
	if (r)
		return r;
	if (step != tracing->step)
		memset(tracing->repeats, 0, sizeof(tracing->repeats));
	tracing->step = step;
	tracing->repeats[site]++;
	trial->hit(trial->context, site, step, registers);
	return 0;
}

/* It stopped behind a breakpoint: executes what was there. */
static int pass_site(struct tracing *tracing)
{
	const struct rls_code_trial *trial = tracing->trial;
	struct user_regs_struct registers;
	size_t site = 0;
	int r, status;

	if (ptrace(PTRACE_GETREGS, tracing->child, NULL, &registers))
		return -errno;
	while (site < trial->site_count && trial->sites[site] != registers.rip - 1)
		site++;
	if (site == trial->site_count)
		return -ECHILD;
	registers.rip--;
	r = report_hit(tracing, site, &registers);
	if (!r && ptrace(PTRACE_SETREGS, tracing->child, NULL, &registers))
		r = -errno;
	if (!r)
		r = put_byte(tracing->child, trial->sites[site], (uint8_t)tracing->words[site]);
	if (!r && ptrace(PTRACE_SINGLESTEP, tracing->child, NULL, NULL))
		r = -errno;
	if (!r && (!wait_for_stop(tracing, &status) || WSTOPSIG(status) != SIGTRAP))
		r = -ECHILD;
	if (r || tracing->repeats[site] >= RLS_TRIAL_REPEATS)
		return r;
	return put_byte(tracing->child, trial->sites[site], BREAKPOINT);
}

static int trace(struct tracing *tracing)
{
	int r = begin(tracing), status = 0;

	for (size_t hits = 0; !r; hits++) {
		if (ptrace(PTRACE_CONT, tracing->child, NULL, NULL))
			return -errno;
		if (!wait_for_stop(tracing, &status))
			return tracing->reaped && WIFEXITED(status) && !WEXITSTATUS(status)
				       ? 0
				       : -ECHILD;
		if (WSTOPSIG(status) != SIGTRAP || hits >= RLS_TRIAL_HITS_MAX)
			return -ECHILD;
		r = pass_site(tracing);
	}
	return r;
}

int rls_code_trial_run(const struct rls_code_trial *trial)
{
	struct tracing tracing = {.trial = trial};
	int r;

	if (trial->site_count > RLS_TRIAL_SITES_MAX)
		return -EINVAL;
	tracing.child = fork();
	if (tracing.child < 0)
		return -errno;
	if (!tracing.child)
		be_child(trial);
	r = trace(&tracing);
	if (!tracing.reaped) {
		kill(tracing.child, SIGKILL);
		while (waitpid(tracing.child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r;
}
