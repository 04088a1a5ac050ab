#include "userspace/commands/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cleanup.h"
#include "userspace/commands/own_library.h"
#include "userspace/log.h"

#define STATUS_CANNOT_EXECUTE 126
#define STATUS_NOT_FOUND 127

/* Long enough for a signal to have reached all of a process group. */
#define GROUP_DELIVERY_NS 20000000

#define CUDA_INJECTION "CUDA_INJECTION64_PATH"
#define BRIDGE "librlscope_cupti.so"
#define BRIDGE_WAIT "RLSCOPE_CUPTI_AWAIT_MS" /* in cuInit, until we have found it: cupti_bridge/README.md */
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
		rls_warning("%s is set to %s, so our CUPTI bridge is not loaded and GPU times will be missing",
			    CUDA_INJECTION, named);
}

static void hold_then_execute(int go_fd, char **command)
{
	sigset_t none;
	char byte;
	int error;

	if (read(go_fd, &byte, 1) != 1)
		_exit(STATUS_CANNOT_EXECUTE); /* the profiler gave up */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Header-only NVTX shows its ranges to a library named so; libcuda loads one when it is
	 * initialised. */
	offer("NVTX_INJECTION64_PATH", "librlscope_annotate.so");
	offer(CUDA_INJECTION, BRIDGE);
	setenv(BRIDGE_WAIT, BRIDGE_WAIT_MS, 0);
	execvp(command[0], command);
	error = errno;
	rls_error("cannot run %s: %s", command[0], strerror(error));
	_exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE);
}

/* Keeps what it is sent pending, for rls_launch_signal to look at; ends with us. */
static void witness(void)
{
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	close_range(0, UINT_MAX, 0);
	for (;;)
		pause();
}

int rls_launch_hold(char **command, struct rls_launch *out)
{
	struct rls_launch launch = { .witness = -1 };
	int pipe_fds[2];

	warn_of_other_injection();
	if (pipe2(pipe_fds, O_CLOEXEC))
		return rls_error_r(-errno, "cannot make a pipe: %s", strerror(errno));
	launch.pid = fork();
	if (launch.pid < 0) {
		int error = errno;

		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return rls_error_r(-error, "cannot start a process: %s", strerror(error));
	}
	if (!launch.pid) {
		close(pipe_fds[1]);
		hold_then_execute(pipe_fds[0], command);
	}
	close(pipe_fds[0]);
	launch.witness = fork();
	if (!launch.witness)
		witness();
	launch.go_fd = pipe_fds[1];
	*out = launch;
	return 0;
}

void rls_launch_let_go(struct rls_launch *launch)
{
	ssize_t written = write(launch->go_fd, "g", 1);

	(void)written; /* it may be dead already: waitpid tells */
}

/* Whether the witness has been sent this signal too. */
static bool sent_to_group(const struct rls_launch *launch, int signal)
{
	const struct timespec delivery = { .tv_nsec = GROUP_DELIVERY_NS };
	_cleanup_fclose_ FILE *status = NULL;
	unsigned long long pending = 0;
	char path[64], line[256];

	if (launch->witness < 0)
		return false;
	nanosleep(&delivery, NULL);
	snprintf(path, sizeof(path), "/proc/%d/status", launch->witness);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "ShdPnd: %llx", &pending) == 1)
			break;
	}
	return pending & (1ULL << (signal - 1));
}

bool rls_launch_signal(struct rls_launch *launch, int signal, bool from_terminal)
{
	if (launch->signalled)
		return false;
	launch->signalled = true;
	if (!from_terminal && !sent_to_group(launch, signal))
		kill(launch->pid, signal);
	return true;
}

void rls_launch_reap(struct rls_launch *launch)
{
	const struct timespec tick = { .tv_nsec = 20000000 };
	sigset_t signals;

	close(launch->go_fd);
	launch->go_fd = -1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	while (waitpid(launch->pid, &launch->status, WNOHANG) == 0) {
		siginfo_t info;

		if (sigtimedwait(&signals, &info, &tick) > 0)
			rls_launch_signal(launch, info.si_signo, info.si_code == SI_KERNEL);
	}
	if (launch->witness > 0) {
		kill(launch->witness, SIGKILL);
		waitpid(launch->witness, NULL, 0);
		launch->witness = -1;
	}
}

int rls_launch_status(const struct rls_launch *launch)
{
	if (WIFSIGNALED(launch->status))
		return 128 + WTERMSIG(launch->status);
	return WEXITSTATUS(launch->status);
}
