/* rlscope-bpf run: run a command, record it from its first instruction, then report. */
#include <argp.h>
#include <errno.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/shared/child_command.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/executable.h"
#include "userspace/commands/shared/recording.h"
#include "userspace/record/targets/process_info.h"

struct run_options {
	struct rls_record_options record;
	char **command;
	bool help;
};

static const struct argp_option option_table[] = {
	{"help", 'h', NULL, 0, "Print this", 5},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct run_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->record;
		return 0;
	case 'h':
		return rls_help_print(state, &options->help);
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

static const struct argp_child children[] = {{&rls_record_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "-- COMMAND [ARGUMENT...]",
	.doc = "Run a command and record it from its first instruction.\v"
	       "The command keeps its stdin, stdout and stderr. The report follows on stdout when "
	       "it has "
	       "ended; --report FILE writes it elsewhere. The exit status is the command's own, or "
	       "128 + "
	       "the signal that killed it. A command that cannot be executed leaves no trace and "
	       "no report; "
	       "the exit status is then 127 when it is not there, else 126.",
	.children = children,
};

static void let_go(void *context)
{
	rls_child_command_let_go(context);
}

static bool pass_on_signal(void *context, int signal, bool from_terminal)
{
	return rls_child_command_signal(context, signal, from_terminal);
}

/* The command may be Python, or start it: what that is called on PATH. */
static void expect_python(struct rls_recorder *recorder, const char *command)
{
	const char *const names[] = {command, "python3", "python"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[PATH_MAX];

		if (!rls_executable_image(names[i], path))
			rls_recorder_expect(recorder, path);
	}
}

/* *recorded: there is a trace to report. */
static int run_record(struct run_options *options, struct rls_child_command *launch, bool *recorded)
{
	const struct rls_recorder_hooks hooks = {let_go, pass_on_signal, launch};
	const struct rls_selection none = {0};
	struct rls_recorder *recorder;
	_cleanup_free_ char *command = NULL;
	enum rls_stop why;
	int r = rls_process_words(options->command, &command);

	if (!r)
		r = rls_recording_open(&options->record, &none, launch->pid, command, &recorder);
	if (r)
		return r;
	expect_python(recorder, options->command[0]);
	r = rls_recorder_add_launch(recorder, launch->pid);
	if (!r)
		r = rls_recorder_run(recorder, &hooks, &why);
	*recorded = !r;
	if (!r)
		r = rls_recorder_finish(recorder);
	rls_recorder_free(recorder);
	return r;
}

static int run_command(struct run_options *options)
{
	struct rls_child_command launch;
	bool recorded = false;
	int r, ended, status;

	r = rls_executable_check(options->command[0]);
	if (r)
		return rls_executable_status(-r);
	/* Started before the recorder blocks signals, held until it records. */
	if (rls_child_command_hold(options->command, &launch))
		return RLS_EXIT_FAILED;
	r = run_record(options, &launch, &recorded);
	ended = rls_child_command_reap(&launch);
	if (!recorded)
		return RLS_EXIT_FAILED;
	if (launch.exec_error) {
		unlink(options->record.trace_path); /* only our own process was recorded */
		return rls_executable_status(launch.exec_error);
	}
	status = rls_recording_report(&options->record);
	return r || ended || status ? RLS_EXIT_FAILED : rls_child_command_status(&launch);
}

int rls_command_run(int argc, char **argv)
{
	struct run_options options = {0};
	int status = RLS_EXIT_FAILED;

	if (rls_record_options_init(&options.record))
		return RLS_EXIT_FAILED;
	if (rls_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &options))
		status = RLS_EXIT_USAGE;
	else if (options.help)
		status = RLS_EXIT_DONE;
	else if (!rls_record_options_finish(&options.record))
		status = run_command(&options);
	rls_record_options_clear(&options.record);
	return status;
}
