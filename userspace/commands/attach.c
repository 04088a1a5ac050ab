/* rlscope-bpf attach: record running processes, then report. */
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/options/select_options.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/inject_bridges.h"
#include "userspace/commands/shared/recording.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/record/targets/process_info.h"

struct attach_options {
	struct rls_record_options record;
	struct rls_select_options select;
	bool inject;
	bool help;
};

#define KEY_INJECT 0x3001
/* The longest wait for spare CPU time. */
#define PATIENCE_NS 2000000000ULL

static const struct argp_option option_table[] = {
	{"inject", KEY_INJECT, NULL, 0,
	 "Load the CUPTI bridge into each --pid process that uses CUDA without it, for its GPU "
	 "times. One "
	 "of its threads is stopped by ptrace for 0.1 ms and starts another, which loads the "
	 "library. The "
	 "library stays",
	 4},
	{"help", 'h', NULL, 0, "Print this", 5},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct attach_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->select;
		state->child_inputs[1] = &options->record;
		return 0;
	case KEY_INJECT:
		options->inject = true;
		return 0;
	case 'h':
		return rls_help_print(state, &options->help);
	case ARGP_KEY_ARG:
		rls_error("unexpected argument '%s': processes are named with --pid", argument);
		return EINVAL;
	case ARGP_KEY_END:
		if (!options->select.pid_count && !options->select.selection.count &&
		    !options->help) {
			rls_error("which process? name it with --pid PID, or see --help");
			return EINVAL;
		}
		if (options->inject && !options->select.pid_count && !options->help) {
			rls_error("--inject is for processes named with --pid");
			return EINVAL;
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{&rls_select_argp, 0, NULL, 0},
	{&rls_record_argp, 0, NULL, 0},
	{0},
};

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "--pid PID|--name GLOB|--cgroup PATH|--container ID|--all ...",
	.doc = "Record running processes and report where their time goes.\v"
	       "Selectors may be combined. Recording ends with Ctrl-C, after --duration, or when "
	       "all "
	       "processes named by --pid have ended and there is no other selector. The report "
	       "then goes "
	       "to stdout, and the trace file stays for `rlscope-bpf report`.",
	.children = children,
};

static int add_processes(const struct rls_select_options *select, struct rls_recorder *recorder)
{
	size_t ended = 0;
	int r = 0;

	for (size_t i = 0; !r && i < select->pid_count; i++) {
		r = rls_recorder_add(recorder, select->pids[i]);
		if (r == -ESRCH) { /* it has been reported; the others are recorded */
			ended++;
			r = 0;
		}
	}
	if (!r && select->selection.count)
		return rls_recorder_add_selected(recorder);
	return !r && ended == select->pid_count ? -ESRCH : r;
}

static int open_recorder(struct attach_options *options, struct rls_recorder **out)
{
	const struct rls_select_options *select = &options->select;
	pid_t first = select->pid_count ? select->pids[0] : 0;
	struct rls_process_info info = {0};
	int r;

	if (first)
		rls_process_info_read(
			first, &info); /* a process that has ended is reported when it is added */
	r = rls_recording_open(&options->record, &select->selection, first ? first : getpid(),
			       info.cmdline, out);
	rls_process_info_clear(&info);
	if (r)
		return r;
	if (options->inject)
		rls_inject_bridges(select->pids, select->pid_count);
	r = add_processes(select, *out);
	if (r)
		rls_recorder_free(*out);
	return r;
}

/* More than that would have to be loaded into the target. */
static void announce_memory(const struct attach_options *options)
{
	if (options->record.memory == RLS_MEMORY_ALL)
		rls_info("memory is counted from outside: what allocators report, and blocks of "
			 "malloc by size");
}

static int attach_targets(struct attach_options *options)
{
	const struct rls_recorder_hooks hooks = {0};
	struct rls_recorder *recorder;
	enum rls_stop why;
	int r, status;

	if (rls_select_options_resolve(&options->select))
		return RLS_EXIT_FAILED;
	announce_memory(options);
	rls_priority_prepare(PATIENCE_NS);
	r = open_recorder(options, &recorder);
	rls_priority_end();
	if (r)
		return RLS_EXIT_FAILED;
	r = rls_recorder_run(recorder, &hooks, &why);
	if (r) {
		rls_recorder_free(recorder);
		return RLS_EXIT_FAILED;
	}
	r = rls_recorder_finish(recorder);
	rls_recorder_free(recorder);
	status = rls_recording_report(&options->record);
	return r ? RLS_EXIT_FAILED : status;
}

int rls_command_attach(int argc, char **argv)
{
	struct attach_options options = {0};
	int status = RLS_EXIT_FAILED;

	if (rls_record_options_init(&options.record))
		return RLS_EXIT_FAILED;
	if (rls_arguments_parse(&argp, argc, argv, 0, &options))
		status = RLS_EXIT_USAGE;
	else if (options.help)
		status = RLS_EXIT_DONE;
	else if (!rls_record_options_finish(&options.record))
		status = attach_targets(&options);
	rls_record_options_clear(&options.record);
	rls_select_options_clear(&options.select);
	return status;
}
