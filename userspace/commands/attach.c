/* rlscope-bpf attach: record running processes, then report. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/commands/commands.h"
#include "userspace/commands/recording.h"
#include "userspace/log.h"
#include "userspace/record/process_info.h"

struct attach_options {
	struct rls_record_options record;
	pid_t *pids;
	size_t pid_count;
	bool help;
};

static const struct argp_option option_table[] = {
	{ "pid", 'p', "PID", 0, "A process to record, with its children; may be repeated", 0 },
	{ "help", 'h', NULL, 0, "Print this", 5 },
	{ 0 },
};

static int add_pid(struct attach_options *options, const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);
	pid_t *grown;

	if (end == text || *end || pid <= 0 || pid > INT32_MAX) {
		rls_error("--pid takes a process id, not '%s'", text);
		return EINVAL;
	}
	grown = reallocarray(options->pids, options->pid_count + 1, sizeof(*grown));
	if (!grown)
		return ENOMEM;
	options->pids = grown;
	options->pids[options->pid_count++] = (pid_t)pid;
	return 0;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct attach_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->record;
		return 0;
	case 'p':
		return add_pid(options, argument);
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
		options->help = true;
		return 0;
	case ARGP_KEY_ARG:
		rls_error("unexpected argument '%s': processes are named with --pid", argument);
		return EINVAL;
	case ARGP_KEY_END:
		if (!options->pid_count && !options->help) {
			rls_error("which process? name it with --pid PID");
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
	.args_doc = "--pid PID",
	.doc = "Record running processes and report where their time goes.\v"
	       "Recording ends with Ctrl-C, after --duration, or when the processes end; the report then "
	       "goes to stdout, and the trace file stays for `rlscope-bpf report`.",
	.children = children,
};

static int add_processes(struct attach_options *options, struct rls_recorder *recorder)
{
	int r = 0;

	for (size_t i = 0; !r && i < options->pid_count; i++)
		r = rls_recorder_add(recorder, options->pids[i]);
	return r;
}

static int attach(struct attach_options *options)
{
	const struct rls_recorder_hooks hooks = { 0 };
	struct rls_recorder *recorder;
	enum rls_stop why;
	int r, status;

	for (size_t i = 0; i < options->pid_count; i++) {
		if (rls_process_exists(options->pids[i])) {
			rls_error("no process with pid %d", options->pids[i]);
			return RLS_EXIT_FAILED;
		}
	}
	if (rls_recording_open(&options->record, options->pids[0], &recorder))
		return RLS_EXIT_FAILED;
	r = add_processes(options, recorder);
	if (!r)
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
	struct attach_options options = { 0 };
	int status = RLS_EXIT_FAILED;

	if (rls_record_options_init(&options.record))
		return RLS_EXIT_FAILED;
	if (argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &options))
		status = RLS_EXIT_USAGE;
	else if (options.help)
		status = RLS_EXIT_DONE;
	else if (!rls_record_options_finish(&options.record))
		status = attach(&options);
	rls_record_options_clear(&options.record);
	free(options.pids);
	return status;
}
