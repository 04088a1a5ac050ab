/* rlscope-bpf dump: a trace of any form, as JSON Lines. */
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/private_file.h"
#include "analysis/event/event_source.h"
#include "analysis/trace/text_form.h"
#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/shared/commands.h"

struct arguments {
	const char *trace;
	const char *output; /* NULL: stdout */
	bool help;
};

static void free_source(struct rls_event_source **source)
{
	if (*source)
		(*source)->free(*source);
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'o':
		arguments->output = value;
		return 0;
	case 'h':
		return rls_help_print(state, &arguments->help);
	case ARGP_KEY_ARG:
		if (!arguments->trace) {
			arguments->trace = value;
			return 0;
		}
		rls_error("dump takes one trace, not also %s", value);
		return EINVAL;
	case ARGP_KEY_END:
		if (arguments->trace || arguments->help)
			return 0;
		rls_error("dump needs the trace to print");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int open_output(const char *path, FILE **out)
{
	_cleanup_close_ int fd = -1;
	int error = rls_private_file_create(path, &fd);

	if (error)
		return rls_error_r(error, "cannot write %s: %s", path, strerror(-error));
	*out = fdopen(fd, "w");
	if (!*out)
		return rls_error_r(-ENOMEM, "cannot write %s: %s", path, strerror(ENOMEM));
	rls_take_fd(fd);
	return 0;
}

static int print_events(struct rls_event_source *source, FILE *out)
{
	struct rls_event event;
	int got, error = 0;

	while (!error && (got = source->next(source, &event)) != 0) {
		if (got < 0)
			return rls_error_r(got, "cannot read on: %s", strerror(-got));
		error = rls_text_write_event(out, &event, source->strings);
	}
	if (!error && fflush(out))
		error = -errno;
	return error ? rls_error_r(error, "cannot write: %s", strerror(-error)) : 0;
}

static int dump(const struct arguments *arguments)
{
	__attribute__((cleanup(free_source))) struct rls_event_source *source = NULL;
	_cleanup_fclose_ FILE *file = NULL;
	char message[512];

	if (rls_event_source_open(arguments->trace, &source, message, sizeof(message))) {
		rls_error("%s", message);
		return RLS_EXIT_FAILED;
	}
	if (arguments->output && open_output(arguments->output, &file))
		return RLS_EXIT_FAILED;
	if (print_events(source, file ? file : stdout))
		return RLS_EXIT_FAILED;
	if (!source->damaged)
		return RLS_EXIT_DONE;
	rls_warning(
		"%s is damaged or incomplete: the warnings among its events say what is missing",
		arguments->trace);
	return RLS_EXIT_DAMAGED;
}

int rls_command_dump(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"output", 'o', "FILE", 0, "Write to FILE instead of stdout", 0},
		{"help", 'h', NULL, 0, "Print this", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = "TRACE",
		.doc = "Prints a trace of any form as JSON Lines, one event a line, in order of "
		       "time.",
	};
	struct arguments arguments = {0};

	if (rls_arguments_parse(&argp, argc, argv, 0, &arguments))
		return RLS_EXIT_USAGE;
	return arguments.help ? RLS_EXIT_DONE : dump(&arguments);
}
