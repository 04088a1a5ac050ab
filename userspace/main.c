/* rlscope-bpf: one table of commands. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/commands/shared/commands.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"attach", rls_command_attach, "record running processes and report where their time goes"},
	{"run", rls_command_run, "run a command and record it from its first instruction"},
	{"monitor", rls_command_monitor, "watch every training job on the host, as metrics"},
	{"top", rls_command_top, "show every training job on the host, live in the terminal"},
	{"report", rls_command_report, "report a trace file (no root needed)"},
	{"compare", rls_command_compare, "compare recordings: time per call of each operation"},
	{"dump", rls_command_dump, "print a trace file as JSON Lines"},
	{"probes", rls_command_probes, "list what would be probed in a process, without attaching"},
	{"calibrate", rls_command_calibrate, "measure what probes cost here, or in a running job"},
	{"check", rls_command_check,
	 "say whether this host can profile, with a remedy for each no"},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
	fputs("Usage: rlscope-bpf COMMAND [OPTION...]\n"
	      "Shows where a training job's time goes: Python, simulator, ML backend, CUDA API and "
	      "GPU,\n"
	      "by operation, by attaching to the running job from the kernel.\n\n",
	      out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n`rlscope-bpf COMMAND --help` describes each; see also `man rlscope-bpf`.\n", out);
}

/* What was printed must have arrived. A command that has failed has said why. */
static int check_stdout(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (status != RLS_EXIT_FAILED)
		rls_error("cannot print: %s", strerror(errno ? errno : EIO));
	return RLS_EXIT_FAILED;
}

static int run_named(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--help";
	char title[64];

	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("rlscope-bpf " RLS_VERSION);
		return RLS_EXIT_DONE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		print_help(argc > 1 ? stdout : stderr);
		return argc > 1 ? RLS_EXIT_DONE : RLS_EXIT_USAGE;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(name, commands[i].name))
			continue;
		snprintf(title, sizeof(title), "rlscope-bpf %s", commands[i].name);
		argv[1] = title;
		return commands[i].run(argc - 1, argv + 1);
	}
	rls_error("'%s' is not a command: see `rlscope-bpf --help`", name);
	return RLS_EXIT_USAGE;
}

/* Beyond the limit for files (ulimit -f) a write fails then, as on a full disk, and the recording
 * ends with its report. What `run` starts has no signal blocked. */
static void block_file_size_signal(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

int main(int argc, char **argv)
{
	block_file_size_signal();
	rls_clock_join_host(); /* who must know complains */
	return check_stdout(run_named(argc, argv));
}
