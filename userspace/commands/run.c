/* rlscope-bpf run: run a command, record it from its first instruction, then report. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cleanup.h"
#include "userspace/commands/commands.h"
#include "userspace/commands/recording.h"
#include "userspace/log.h"

#define STATUS_CANNOT_EXECUTE 126
#define STATUS_NOT_FOUND 127

struct run_options {
	struct rls_record_options record;
	char **command;
	bool help;
};

static const struct argp_option option_table[] = {
	{ "help", 'h', NULL, 0, "Print this", 5 },
	{ 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct run_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->record;
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
		options->help = true;
		return 0;
	case ARGP_KEY_ARG:
		/* The command begins: all the rest is its own. */
		options->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->command && !options->help) {
			rls_error("which command? name it after --");
			return EINVAL;
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &rls_record_argp, 0, NULL, 0 }, { 0 } };

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "-- COMMAND [ARGUMENT...]",
	.doc = "Run a command and record it from its first instruction.\v"
	       "The command keeps its stdin, stdout and stderr; the report follows on stdout when it has "
	       "ended (--report FILE puts it elsewhere). The exit status is the command's own, 128 + "
	       "signal when it was killed.",
	.children = children,
};

/* The command's process, held before its exec until the probes are in place. */
struct launch {
	pid_t pid;
	int go_fd;      /* one byte lets it go; closed without, it exits */
	bool signalled;
	bool recorded;
	int status;     /* of waitpid */
};

/* Header-only NVTX shows its ranges to the library named here, if one is at start. */
static void offer_nvtx(void)
{
	static const char *const places[] = { "/librlscope_annotate.so",
					      "/../" RLS_LIBDIR "/librlscope_annotate.so" };
	char self[PATH_MAX], path[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (length <= 0)
		return;
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		if (!access(path, R_OK)) {
			setenv("NVTX_INJECTION64_PATH", path, 0);
			return;
		}
	}
}

static void hold_then_execute(int go_fd, char **command)
{
	sigset_t none;
	char byte;

	if (read(go_fd, &byte, 1) != 1)
		_exit(STATUS_CANNOT_EXECUTE); /* the profiler gave up */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	offer_nvtx();
	execvp(command[0], command);
	rls_error("cannot run %s: %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE);
}

static int launch_held(char **command, struct launch *out)
{
	int pipe_fds[2];
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return rls_error_r(-errno, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return rls_error_r(-errno, "cannot start a process: %s", strerror(errno));
	}
	if (!pid) {
		close(pipe_fds[1]);
		hold_then_execute(pipe_fds[0], command);
	}
	close(pipe_fds[0]);
	*out = (struct launch){ .pid = pid, .go_fd = pipe_fds[1] };
	return 0;
}

static void let_go(void *context)
{
	struct launch *launch = context;
	ssize_t written = write(launch->go_fd, "g", 1);

	(void)written; /* it may be dead already: waitpid tells */
}

/* Waits for the command, passing on what we are sent meanwhile. */
static void reap(struct launch *launch)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	sigset_t signals;

	close(launch->go_fd);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	while (waitpid(launch->pid, &launch->status, WNOHANG) == 0) {
		siginfo_t info;

		if (sigtimedwait(&signals, &info, &pause) > 0 && info.si_code != SI_KERNEL)
			kill(launch->pid, info.si_signo);
	}
}

static int own_status(const struct launch *launch)
{
	if (WIFSIGNALED(launch->status))
		return 128 + WTERMSIG(launch->status);
	return WEXITSTATUS(launch->status);
}

/* The first signal is the command's: from the terminal it has it already. Whoever sends
 * a second one wants the recording to end now. */
static bool pass_on_signal(void *context, int signal, bool from_terminal)
{
	struct launch *launch = context;

	if (launch->signalled)
		return false;
	launch->signalled = true;
	if (!from_terminal)
		kill(launch->pid, signal);
	return true;
}

static int record(struct run_options *options, struct launch *launch)
{
	const struct rls_recorder_hooks hooks = { let_go, pass_on_signal, launch };
	struct rls_recorder *recorder;
	enum rls_stop why;
	int r = rls_recording_open(&options->record, launch->pid, &recorder);

	if (r)
		return r;
	r = rls_recorder_add_launch(recorder, launch->pid);
	if (!r)
		r = rls_recorder_run(recorder, &hooks, &why);
	launch->recorded = !r;
	if (!r)
		r = rls_recorder_finish(recorder);
	rls_recorder_free(recorder);
	return r;
}

static int run(struct run_options *options)
{
	struct launch launch;
	int r, status;

	/* Started before the recorder blocks signals, held until it records. */
	if (launch_held(options->command, &launch))
		return RLS_EXIT_FAILED;
	r = record(options, &launch);
	reap(&launch);
	if (!launch.recorded)
		return RLS_EXIT_FAILED;
	status = rls_recording_report(&options->record);
	return r || status ? RLS_EXIT_FAILED : own_status(&launch);
}

int rls_command_run(int argc, char **argv)
{
	struct run_options options = { 0 };
	int status = RLS_EXIT_FAILED;

	if (rls_record_options_init(&options.record))
		return RLS_EXIT_FAILED;
	if (argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, &options))
		status = RLS_EXIT_USAGE;
	else if (options.help)
		status = RLS_EXIT_DONE;
	else if (!rls_record_options_finish(&options.record))
		status = run(&options);
	rls_record_options_clear(&options.record);
	return status;
}
