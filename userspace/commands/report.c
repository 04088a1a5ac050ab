/* rlscope-bpf report: where the time of one or more traces went. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/event_source.h"
#include "analysis/report/report_edit.h"
#include "analysis/timeline/slice_source.h"
#include "analysis/writers/write.h"
#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/read_progress.h"
#include "userspace/commands/shared/warnings.h"

#define SECONDS_MAX 1e9

enum {
	KEY_BY = 256,
	KEY_FULL,
	KEY_TOP,
	KEY_SORT,
	KEY_TABLE,
	KEY_STACKS,
	KEY_SCHEMA,
	KEY_FROM,
	KEY_TO,
	KEY_JSON,
	KEY_MEMORY,
};

struct arguments {
	char **traces;
	int trace_count;
	const char *output; /* NULL: stdout */
	const struct rls_report_writer *writer;
	enum rls_group group;
	enum rls_report_table table;
	enum rls_sort sort;
	enum rls_stacks stacks;
	unsigned int top;
	bool full;
	bool memory;
	bool one_table;
	uint64_t from_ns; /* since the trace's beginning */
	uint64_t to_ns; /* UINT64_MAX: its end */
	bool schema;
	bool help;
};

static void free_source(struct rls_event_source **source)
{
	if (*source)
		(*source)->free(*source);
}

static void free_report(struct rls_report **report)
{
	rls_report_free(*report);
}

static error_t take_trace(struct arguments *arguments, struct argp_state *state)
{
	arguments->traces = state->argv + state->next - 1;
	arguments->trace_count = state->argc - state->next + 1;
	state->next = state->argc;
	return 0;
}

static int parse_top(const char *text, unsigned int *out)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !number || number > 1000000)
		return -EINVAL;
	*out = (unsigned int)number;
	return 0;
}

static error_t parse_seconds(const char *option, const char *text, uint64_t *out)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0 && seconds <= SECONDS_MAX)) {
		rls_error("%s takes seconds since the trace's beginning, not '%s'", option, text);
		return EINVAL;
	}
	*out = (uint64_t)llround(seconds * 1e9);
	return 0;
}

static error_t check_together(const struct arguments *arguments)
{
	if (!arguments->trace_count) {
		rls_error("report needs a trace to read");
		return EINVAL;
	}
	if (rls_report_writer_check(arguments->writer, arguments->output) != -EINVAL)
		return 0;
	rls_error("this format is written to a file, not to stdout: use -o FILE");
	return EINVAL;
}

/* Options whose value is one of several words. */
static error_t parse_choice(int key, char *value, struct arguments *arguments)
{
	char names[RLS_TABLE_NAMES_BYTES > RLS_WRITER_NAMES_BYTES ? RLS_TABLE_NAMES_BYTES
								  : RLS_WRITER_NAMES_BYTES];

	switch (key) {
	case 'f':
		arguments->writer = rls_report_writer_find(value);
		if (arguments->writer)
			return 0;
		rls_error("'%s' is not a report format: %s", value, rls_report_writer_names(names));
		return EINVAL;
	case KEY_BY:
		if (!rls_group_parse(value, &arguments->group))
			return 0;
		rls_error("--by takes process, thread, operation, phase, line, function, file, "
			  "layer, layer-type or pass, not '%s'",
			  value);
		return EINVAL;
	case KEY_TOP:
		if (!parse_top(value, &arguments->top))
			return 0;
		rls_error("--top takes a number of lines, not '%s'", value);
		return EINVAL;
	case KEY_SORT:
		if (!rls_sort_parse(value, &arguments->sort))
			return 0;
		rls_error("--sort takes time, on-cpu, gpu, corrected, error or name, not '%s'",
			  value);
		return EINVAL;
	case KEY_TABLE:
		arguments->one_table = true;
		if (!rls_report_table_parse(value, &arguments->table))
			return 0;
		rls_error("'%s' is not a table: %s", value, rls_report_table_names(names));
		return EINVAL;
	case KEY_STACKS:
		if (!rls_stacks_parse(value, &arguments->stacks))
			return 0;
		rls_error("--stacks takes traced or sampled, not '%s'", value);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case KEY_JSON:
		arguments->writer = rls_report_writer_find("json");
		return 0;
	case 'o':
		arguments->output = value;
		return 0;
	case KEY_FULL:
		arguments->full = true;
		return 0;
	case KEY_MEMORY:
		arguments->memory = true;
		return 0;
	case KEY_FROM:
		return parse_seconds("--from", value, &arguments->from_ns);
	case KEY_TO:
		return parse_seconds("--to", value, &arguments->to_ns);
	case KEY_SCHEMA:
		arguments->schema = true;
		return 0;
	case 'h':
		return rls_help_print(state, &arguments->help);
	case ARGP_KEY_ARG:
		return take_trace(arguments, state);
	case ARGP_KEY_END:
		if (arguments->from_ns >= arguments->to_ns) {
			rls_error("--from must be before --to");
			return EINVAL;
		}
		if (arguments->help || arguments->schema)
			return 0;
		return check_together(arguments);
	default:
		return parse_choice(key, value, arguments);
	}
}

static void free_tracks(struct rls_tracks **tracks)
{
	rls_tracks_free(*tracks);
}

static bool is_cut(const struct arguments *arguments)
{
	return arguments->from_ns || arguments->to_ns != UINT64_MAX;
}

/* A report of a part says that it is one. */
static int warn_of_cut(const struct arguments *arguments, struct rls_report *report)
{
	double from = (double)arguments->from_ns / 1e9, to = (double)arguments->to_ns / 1e9;

	int err = 0;

	if (!is_cut(arguments))
		return 0;
	if (arguments->from_ns && report->memory_line_count)
		err = rls_report_warn(report,
				      "of lines' memory only blocks are shown that were allocated "
				      "in this part of the trace, and of their frees at most so "
				      "many bytes as were allocated in it");
	if (err)
		return err;
	if (arguments->to_ns == UINT64_MAX)
		return rls_report_warn(report, "only a part of the trace is shown: from %g s on",
				       from);
	return rls_report_warn(report, "only a part of the trace is shown: from %g s to %g s", from,
			       to);
}

static int read_trace(const struct arguments *arguments, const char *path,
		      struct rls_tracks *tracks, struct rls_report **out)
{
	__attribute__((cleanup(free_source))) struct rls_event_source *source = NULL;
	char message[512];
	int error;

	error = rls_read_progress_open(path, &source, message, sizeof(message));
	if (error)
		return rls_error_r(error, "%s", message);
	if (is_cut(arguments)) {
		struct rls_event_source *whole = source;

		source = NULL;
		error = rls_slice_source_new(whole, arguments->from_ns, arguments->to_ns, &source);
	}
	if (!error)
		error = rls_report_build_tracks(source, tracks, out);
	if (!error)
		error = warn_of_cut(arguments, *out);
	if (error == -ERANGE)
		return rls_error_r(error, "%s ends before %g s", path,
				   (double)arguments->from_ns / 1e9);
	if (error)
		return rls_error_r(error, "cannot read %s: %s", path, strerror(-error));
	return 0;
}

/* Several traces are shown as one report of independent processes. */
static int read_traces(const struct arguments *arguments, struct rls_tracks *tracks,
		       struct rls_report **out)
{
	__attribute__((cleanup(free_report))) struct rls_report *report = NULL;
	int error = read_trace(arguments, arguments->traces[0], tracks, &report);

	for (int i = 1; !error && i < arguments->trace_count; i++) {
		__attribute__((cleanup(free_report))) struct rls_report *other = NULL;
		uint32_t pid;

		error = read_trace(arguments, arguments->traces[i], tracks, &other);
		if (error)
			return error;
		error = rls_report_merge(report, other, &pid);
		if (error == -EEXIST)
			return rls_error_r(
				error,
				"%s holds process %u, as a trace before it does: report them "
				"one by one",
				arguments->traces[i], pid);
		if (error == -ERANGE)
			return rls_error_r(
				error,
				"%s lies before the start of the first trace's host: name it "
				"before that",
				arguments->traces[i]);
		if (error)
			return rls_error_r(error, "cannot read %s: %s", arguments->traces[i],
					   strerror(-error));
	}
	if (!error)
		*out = rls_take(report);
	return error;
}

/* The one that csv prints. */
static enum rls_report_table table_of(const struct arguments *arguments)
{
	if (arguments->one_table)
		return arguments->table;
	if (arguments->memory)
		return RLS_TABLE_MEMORY_LINES;
	switch (arguments->group) {
	case RLS_GROUP_LINE:
	case RLS_GROUP_FILE:
		return RLS_TABLE_LINES;
	case RLS_GROUP_FUNCTION:
		return RLS_TABLE_FUNCTIONS;
	case RLS_GROUP_LAYER:
	case RLS_GROUP_LAYER_TYPE:
	case RLS_GROUP_PASS:
		return RLS_TABLE_LAYERS;
	default:
		return RLS_TABLE_BREAKDOWN;
	}
}

/* tracks, or reports: as the format takes them. */
static int write_report(const struct arguments *arguments, struct rls_report *report,
			struct rls_tracks *tracks, const struct rls_named_report *reports,
			FILE *output)
{
	struct rls_write_options options = {
		.reports = reports,
		.report_count = reports ? (size_t)arguments->trace_count : 0,
		.table = table_of(arguments),
		.one_table = arguments->one_table,
		.tracks = tracks,
		.full = arguments->full,
		.memory = arguments->memory,
		.top = arguments->top,
		.sort = arguments->sort,
		.stacks = arguments->stacks,
	};
	int error;

	if (arguments->stacks == RLS_STACKS_SAMPLED && !report->sampled_stack_count)
		return rls_error_r(-ENODATA,
				   "there are no sampled stacks: record with --sample-hz");
	rls_write_options_fit(&options, output);
	error = rls_report_write(report, arguments->writer, output, &options);
	if (error)
		return rls_error_r(error, "cannot write %s: %s",
				   arguments->output ? arguments->output : "the report",
				   strerror(-error));
	rls_warn_of_report(report, arguments->writer);
	if (arguments->memory && !rls_report_has_memory(report) &&
	    arguments->writer != rls_report_writer_find("text"))
		rls_info(RLS_NO_MEMORY);
	if (arguments->group >= RLS_GROUP_LAYER && !report->layer_count &&
	    arguments->writer != rls_report_writer_find("text"))
		rls_info(RLS_NO_LAYERS);
	return 0;
}

struct reports {
	struct rls_named_report *named;
	size_t count;
};

static void free_reports(struct reports *reports)
{
	for (size_t i = 0; i < reports->count; i++)
		rls_report_free((struct rls_report *)(uintptr_t)reports->named[i].report);
	free(reports->named);
}

static int check_named_once(const struct arguments *arguments, int trace)
{
	for (int i = 0; i < trace; i++) {
		if (!strcmp(arguments->traces[i], arguments->traces[trace]))
			return rls_error_r(-EINVAL, "%s is named twice", arguments->traces[i]);
	}
	return 0;
}

/* Each trace is a report of its own: their processes may have the same numbers. */
static int report_separately(const struct arguments *arguments, FILE *output, bool *complete)
{
	__attribute__((cleanup(free_reports))) struct reports reports = {0};
	struct rls_report *report = NULL;
	int error = 0;

	reports.named = calloc((size_t)arguments->trace_count, sizeof(*reports.named));
	if (!reports.named)
		return rls_error_r(-ENOMEM, "cannot write %s: out of memory", arguments->output);
	*complete = true;
	for (int i = 0; i < arguments->trace_count; i++) {
		error = check_named_once(arguments, i);
		if (!error)
			error = read_trace(arguments, arguments->traces[i], NULL, &report);
		if (error)
			return error;
		reports.named[reports.count++] =
			(struct rls_named_report){arguments->traces[i], report};
		*complete = *complete && report->complete;
		rls_report_group(report, arguments->group);
	}
	return write_report(arguments, report, NULL, reports.named, output);
}

/* Before the output is emptied: that no trace is it, and that each can be read, for which a trace in text
 * form is read once more. What is no file, such as a pipe, can be opened once only. */
static int check_traces(const struct arguments *arguments)
{
	struct stat output, trace;
	bool exists = !stat(arguments->output, &output);

	for (int i = 0; i < arguments->trace_count; i++) {
		__attribute__((cleanup(free_source))) struct rls_event_source *source = NULL;
		const char *path = arguments->traces[i];
		char message[512];
		int error;

		if (!stat(path, &trace) && !S_ISREG(trace.st_mode) && !S_ISDIR(trace.st_mode))
			continue;
		error = rls_read_progress_open(path, &source, message, sizeof(message));
		if (error)
			return rls_error_r(error, "%s", message);
		if (exists && !stat(path, &trace) && trace.st_dev == output.st_dev &&
		    trace.st_ino == output.st_ino)
			return rls_error_r(-EINVAL,
					   "%s is one of the traces: the report needs a file of "
					   "its own",
					   arguments->output);
	}
	return 0;
}

static int open_output(const struct arguments *arguments, FILE **out)
{
	int error = check_traces(arguments);

	if (error)
		return error;
	if (rls_report_writer_check(arguments->writer, arguments->output))
		return rls_error_r(-EEXIST,
				   "%s is there already, and no report of this format: it is left "
				   "alone",
				   arguments->output);
	*out = fopen(arguments->output, "we");
	if (*out)
		return 0;
	return rls_error_r(-errno, "cannot write %s: %s", arguments->output, strerror(errno));
}

/* Formats of tracks write while the traces are read, so the output comes first. */
static int read_and_write(const struct arguments *arguments, bool *complete)
{
	__attribute__((cleanup(free_tracks))) struct rls_tracks *tracks = NULL;
	__attribute__((cleanup(free_report))) struct rls_report *report = NULL;
	_cleanup_fclose_ FILE *file = NULL;
	FILE *output = stdout;
	int error;

	if (arguments->output) {
		error = open_output(arguments, &file);
		if (error)
			return error;
		output = file;
	}
	if (rls_report_writer_is_binary(arguments->writer) && isatty(fileno(output)))
		return rls_error_r(-EINVAL, "this format is nothing for a terminal: use -o FILE");
	if (rls_report_writer_is_separate(arguments->writer))
		return report_separately(arguments, output, complete);
	error = rls_report_writer_tracks(arguments->writer, output, &tracks);
	if (error)
		return rls_error_r(error, "cannot write the report: %s", strerror(-error));
	error = read_traces(arguments, tracks, &report);
	if (error)
		return error;
	*complete = report->complete;
	rls_report_group(report, arguments->group);
	return write_report(arguments, report, tracks, NULL, output);
}

static int print_schema(void)
{
	if (fputs(rls_report_schema(), stdout) >= 0 && !fflush(stdout))
		return RLS_EXIT_DONE;
	rls_error("cannot write the schema: %s", strerror(errno));
	return RLS_EXIT_FAILED;
}

static int report(const struct arguments *arguments)
{
	bool complete = false;

	if (read_and_write(arguments, &complete))
		return RLS_EXIT_FAILED;
	if (complete)
		return RLS_EXIT_DONE;
	rls_warning("%s is damaged or incomplete: the report's warnings say what is missing",
		    arguments->trace_count > 1 ? "one of the traces" : arguments->traces[0]);
	return RLS_EXIT_DAMAGED;
}

int rls_command_report(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'f', "FORMAT", 0,
		 "text (default), json, jsonl, csv, sqlite, html, perfetto, chrome, speedscope, "
		 "pprof or folded",
		 0},
		{"json", KEY_JSON, NULL, 0, "The same as --format json", 0},
		{"output", 'o', "FILE", 0, "Write to FILE instead of stdout", 0},
		{"by", KEY_BY, "WHAT", 0,
		 "Sum the figures by process, thread, operation or phase; samples and memory by "
		 "line, function or file; layers by layer, layer-type or pass",
		 0},
		{"memory", KEY_MEMORY, NULL, 0,
		 "text, csv and pprof: memory alone: what processes use, which lines allocate, "
		 "keep "
		 "and leak",
		 0},
		{"top", KEY_TOP, "N", 0, "text: only so many lines of each table, the rest summed",
		 0},
		{"sort", KEY_SORT, "KEY", 0,
		 "text: by time (default), on-cpu, gpu, corrected, error or name", 0},
		{"full", KEY_FULL, NULL, 0,
		 "text: lines and functions below 1 % of the time or memory too", 0},
		{"table", KEY_TABLE, "NAME", 0,
		 "csv, jsonl and sqlite: which table (csv: breakdown, or what --by says, by "
		 "default)",
		 0},
		{"stacks", KEY_STACKS, "WHICH", 0,
		 "folded: the traced stacks (default), or the sampled ones", 0},
		{"from", KEY_FROM, "SECONDS", 0,
		 "Leave out what lies before, since the trace's beginning", 0},
		{"to", KEY_TO, "SECONDS", 0, "Leave out what lies behind", 0},
		{"json-schema", KEY_SCHEMA, NULL, 0, "Print the JSON Schema of --format json", 0},
		{"help", 'h', NULL, 0, "Print this", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = "TRACE...",
		.doc = "Says where the time of a recorded job went. Needs no root.",
	};
	struct arguments arguments = {
		.writer = rls_report_writer_find("text"),
		.to_ns = UINT64_MAX,
	};

	if (rls_arguments_parse(&argp, argc, argv, 0, &arguments))
		return RLS_EXIT_USAGE;
	if (arguments.help)
		return RLS_EXIT_DONE;
	return arguments.schema ? print_schema() : report(&arguments);
}
