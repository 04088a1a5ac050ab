#include "userspace/commands/shared/child_command.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/commands/shared/executable.h"
#include "userspace/host/own_library.h"

/* Long enough for a signal to have reached all of a process group. */
#define GROUP_DELIVERY_NS 20000000
#define COUNTING_WAITS 50

#define CUDA_INJECTION "CUDA_INJECTION64_PATH"
#define BRIDGE "librlscope_cupti.so"
#define BRIDGE_WAIT                                                                                \
	"RLSCOPE_CUPTI_AWAIT_MS" /* in cuInit, until we have found it: cupti_bridge/README.md */
#define BRIDGE_WAIT_MS "500"

/* What loads a library named in a variable is shown ours, unless the user has named one. */
static void offer(const char *variable, const char *library)
{
	char path[RLS_OWN_LIBRARY_BYTES];

	rls_own_library(library, path);
	if (path[0])
		setenv(variable, path, 0);
}

static void warn_of_other_injection(void)
{
	const char *named = getenv(CUDA_INJECTION);

	if (named && !strstr(named, BRIDGE))
		rls_warning("%s is set to %s, so our CUPTI bridge is not loaded and GPU times will "
			    "be missing",
			    CUDA_INJECTION, named);
}

static void hold_then_execute(int go_fd, char **command, const struct sigaction *child_ended)
{
	sigset_t none;
	char byte;
	int error;

	if (read(go_fd, &byte, 1) != 1)
		_exit(rls_executable_status(0)); /* the profiler gave up */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	sigaction(SIGCHLD, child_ended, NULL);
	/* Header-only NVTX shows its ranges to a library named so; libcuda loads one when it is
	 * initialised. */
	offer("NVTX_INJECTION64_PATH", "librlscope_annotate.so");
	offer(CUDA_INJECTION, BRIDGE);
	setenv(BRIDGE_WAIT, BRIDGE_WAIT_MS, 0);
	execvp(command[0], command);
	error = errno;
	rls_error("cannot run %s: %s", command[0], strerror(error));
	send(go_fd, &error, sizeof(error), MSG_NOSIGNAL);
	_exit(rls_executable_status(error));
}

/* Counts what it is sent, for rls_child_command_signal to look at; ends with us. */
static void witness(struct rls_child_command_counts *counts)
{
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_range(0, UINT_MAX, 0);
	for (;;) {
		int signal = sigwaitinfo(&all, NULL);

		if (signal > 0 && signal < RLS_LAUNCH_SIGNALS)
			atomic_fetch_add(&counts->sent[signal], 1);
	}
}

/* Without one, what a group was sent reaches the command twice. */
static void start_witness(struct rls_child_command *launch)
{
	struct rls_child_command_counts *counts = mmap(
		NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;

	if (counts == MAP_FAILED)
		return;
	/* None may end it before it blocks them. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	launch->witness = fork();
	if (!launch->witness)
		witness(counts);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (launch->witness > 0)
		launch->counts = counts;
	else
		munmap(counts, sizeof(*counts));
}

static void end_witness(struct rls_child_command *launch)
{
	if (launch->witness <= 0)
		return;
	kill(launch->witness, SIGKILL);
	waitpid(launch->witness, NULL, 0);
	munmap(launch->counts, sizeof(*launch->counts));
	launch->witness = -1;
	launch->counts = NULL;
}

int rls_child_command_hold(char **command, struct rls_child_command *out)
{
	struct rls_child_command launch = {.witness = -1};
	/* Ignored, which is inherited, would have the kernel throw the command's status away. */
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	struct sigaction child_ended;
	int fds[2];

	warn_of_other_injection();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return rls_error_r(-errno, "cannot make a socket: %s", rls_reason(errno));
	sigaction(SIGCHLD, &usual, &child_ended);
	launch.pid = fork();
	if (launch.pid < 0) {
		int error = errno;

		close(fds[0]);
		close(fds[1]);
		return rls_error_r(-error, "cannot start a process: %s", rls_reason(error));
	}
	if (!launch.pid) {
		close(fds[1]);
		hold_then_execute(fds[0], command, &child_ended);
	}
	close(fds[0]);
	start_witness(&launch);
	launch.go_fd = fds[1];
	*out = launch;
	return 0;
}

void rls_child_command_let_go(struct rls_child_command *launch)
{
	send(launch->go_fd, "g", 1, MSG_NOSIGNAL); /* it may be dead already: waitpid shows it */
}

/* The witness has been sent it and has not counted it yet. */
static bool is_on_its_way(const struct rls_child_command *launch, int signal)
{
	_cleanup_fclose_ FILE *status = NULL;
	unsigned long long pending = 0;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", launch->witness);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "ShdPnd: %llx", &pending) == 1)
			break;
	}
	return pending & (1ULL << (signal - 1));
}

/* Whether the witness has been sent this signal too, since it was last asked about it. */
static bool sent_to_group(struct rls_child_command *launch, int signal)
{
	const struct timespec delivery = {.tv_nsec = GROUP_DELIVERY_NS};
	unsigned int sent, before = launch->seen[signal];

	if (!launch->counts)
		return false;
	nanosleep(&delivery, NULL);
	for (int i = 0; i < COUNTING_WAITS && is_on_its_way(launch, signal); i++)
		nanosleep(&delivery, NULL); /* CPUs are short */
	sent = atomic_load(&launch->counts->sent[signal]);
	launch->seen[signal] = sent;
	return sent != before;
}

bool rls_child_command_signal(struct rls_child_command *launch, int signal, bool from_terminal)
{
	bool first = !launch->signalled;

	launch->signalled = true;
	/* The witness is asked about a terminal's too: they are not to be taken for later ones. */
	if (!sent_to_group(launch, signal) && !from_terminal)
		kill(launch->pid, signal);
	return first;
}

int rls_child_command_reap(struct rls_child_command *launch)
{
	const struct timespec tick = {.tv_nsec = 20000000};
	sigset_t signals;
	pid_t ended;
	int error;

	shutdown(launch->go_fd, SHUT_WR);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	while ((ended = waitpid(launch->pid, &launch->status, WNOHANG)) == 0 ||
	       (ended < 0 && errno == EINTR)) {
		siginfo_t info;

		if (sigtimedwait(&signals, &info, &tick) > 0)
			rls_child_command_signal(launch, info.si_signo, info.si_code == SI_KERNEL);
	}
	error = ended < 0 ? errno : 0;
	if (recv(launch->go_fd, &launch->exec_error, sizeof(int), MSG_DONTWAIT) != sizeof(int))
		launch->exec_error = 0;
	close(launch->go_fd);
	launch->go_fd = -1;
	end_witness(launch);
	return error ? rls_error_r(-error, "cannot find out how the command ended: %s",
				   strerror(error))
		     : 0;
}

int rls_child_command_status(const struct rls_child_command *launch)
{
	if (WIFSIGNALED(launch->status))
		return 128 + WTERMSIG(launch->status);
	return WEXITSTATUS(launch->status);
}
