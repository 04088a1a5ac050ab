#include "userspace/commands/options/record_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/base/log.h"

enum key {
	KEY_DURATION = 'd',
	KEY_OUTPUT = 'o',
	KEY_FORMAT = 'f',
	KEY_VERBOSE = 'v',
	KEY_REPORT = 256,
	KEY_NO_CHILDREN,
	KEY_SIMULATOR,
	KEY_BACKEND,
	KEY_NATIVE,
	KEY_CONFIG,
	KEY_BUDGET,
	KEY_SAMPLE_HZ,
	KEY_OPERATION,
	KEY_VERIFY,
	KEY_PERF_EVENTS,
	KEY_JSON,
	KEY_MEMORY,
	KEY_LAYERS,
	KEY_LAYER_DEPTH,
};

static const struct argp_option tracing_table[] = {
	{"duration", KEY_DURATION, "SECONDS", 0, "Stop recording after SECONDS", 1},
	{"no-children", KEY_NO_CHILDREN, NULL, 0, "Do not follow child processes", 1},
	{"simulator", KEY_SIMULATOR, "GLOB[:SYMBOLS]", 0, "A library whose time is simulator time",
	 2},
	{"backend", KEY_BACKEND, "GLOB[:SYMBOLS]", 0, "A library that is an ML backend", 2},
	{"native", KEY_NATIVE, "GLOB[:SYMBOLS]", 0, "A library to probe that is neither", 2},
	{"config", KEY_CONFIG, "FILE", 0, "Read roles of libraries from FILE too", 2},
	{"overhead-budget", KEY_BUDGET, "P%|none", 0,
	 "What probes may cost the target, 2% by default (none: trace everything)", 3},
	{"perf-events", KEY_PERF_EVENTS, NULL, 0,
	 "Attach probes one by one, as on kernels before 6.6", 3},
	{"verbose", KEY_VERBOSE, NULL, 0, "Print more on stderr", 4},
	{0},
};

static const struct argp_option recording_table[] = {
	{"output", KEY_OUTPUT, "TRACE", 0, "Write the trace to TRACE (default rlscope-PID.trace)",
	 1},
	{"report", KEY_REPORT, "FILE", 0, "Write the report to FILE instead of stdout", 1},
	{"format", KEY_FORMAT, "FORMAT", 0,
	 "Report as text (default), json, csv or another format of `report`", 1},
	{"json", KEY_JSON, NULL, 0, "The same as --format json", 1},
	{"sample-hz", KEY_SAMPLE_HZ, "HZ", 0,
	 "Sample stacks HZ times a second (199 by default, fewer with a budget below 4%: 99 at 2%, "
	 "49 at 1%; 0: none)",
	 3},
	{"operation", KEY_OPERATION, "NAME=[FILE:]FUNCTION", 0,
	 "Time is of operation NAME where a sampled stack has this function (globs)", 3},
	{"memory", KEY_MEMORY, "auto|off|all", 0,
	 "Count the memory that lines allocate: within the budget (auto, the default), not at "
	 "all (off), or every block, whatever that costs (all)",
	 3},
	{"layers", KEY_LAYERS, "auto|off", 0,
	 "Record calls of a model's layers (auto), or not (off, the default)", 3},
	{"layer-depth", KEY_LAYER_DEPTH, "N", 0,
	 "Of layers that call each other, record the N outermost (64)", 3},
	{"verify", KEY_VERIFY, NULL, 0,
	 "Print how far samples and probes agree, and what the probes missed", 3},
	{0},
};

static int parse_hz(const char *text, unsigned int *out)
{
	char *end;
	unsigned long hz = strtoul(text, &end, 10);

	if (end == text || *end || *text == '-' || hz > RLS_SAMPLE_HZ_MAX)
		return -EINVAL;
	*out = (unsigned int)hz;
	return 0;
}

static int parse_budget(const char *text, double *out)
{
	char *end;
	double percent;

	if (!strcmp(text, "none")) {
		*out = -1;
		return 0;
	}
	percent = strtod(text, &end);
	if (*end == '%')
		end++;
	if (end == text || *end || !isfinite(percent) || percent <= 0 || percent > 100)
		return -EINVAL;
	*out = percent;
	return 0;
}

static int parse_memory(const char *text, enum rls_memory_mode *out)
{
	static const char *const names[] = {
		[RLS_MEMORY_OFF] = "off", [RLS_MEMORY_AUTO] = "auto", [RLS_MEMORY_ALL] = "all"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*out = (enum rls_memory_mode)i;
		return 0;
	}
	return -EINVAL;
}

static int parse_layers(const char *text, bool *out)
{
	bool wanted = !strcmp(text, "auto");

	if (!wanted && strcmp(text, "off") != 0)
		return -EINVAL;
	*out = wanted;
	return 0;
}

static int parse_layer_depth(const char *text, unsigned int *out)
{
	char *end;
	unsigned long depth = strtoul(text, &end, 10);

	if (end == text || *end || *text == '-' || !depth || depth > RLS_LAYER_DEPTH_MAX)
		return -EINVAL;
	*out = (unsigned int)depth;
	return 0;
}

static int replace(char **where, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return ENOMEM;
	free(*where);
	*where = copy;
	return 0;
}

static int add_role(struct rls_record_options *options, enum rls_role role, const char *pattern)
{
	int r = rls_roles_add(options->roles, role, pattern);

	if (r == -EINVAL)
		rls_error("'%s' is not a library pattern: GLOB or GLOB:SYMBOLGLOB", pattern);
	return -r;
}

static int add_operation(struct rls_record_options *options, const char *text)
{
	int r = rls_operation_globs_add(&options->operations, text);

	if (r == -EINVAL)
		rls_error("--operation takes NAME=FUNCTION or NAME=FILE:FUNCTION, not '%s'", text);
	if (r == -E2BIG)
		rls_error("too many --operation options");
	return -r;
}

/* What each option by itself does not show. */
static error_t check_together(const struct rls_record_options *options)
{
	if (!options->sample_hz && (options->operations.count || options->verify)) {
		rls_error("%s needs samples: not with --sample-hz 0",
			  options->operations.count ? "--operation" : "--verify");
		return EINVAL;
	}
	if (options->trace_path && options->report_path &&
	    !strcmp(options->trace_path, options->report_path)) {
		rls_error("the trace and the report cannot both be written to %s",
			  options->trace_path);
		return EINVAL;
	}
	switch (rls_report_writer_check(options->writer, options->report_path)) {
	case 0:
		return 0;
	case -EINVAL:
		rls_error("a report of this format is written to a file, not to stdout: use "
			  "--report FILE");
		return EINVAL;
	default:
		rls_error("%s is there already, and no report of this format: it is left alone",
			  options->report_path);
		return EINVAL;
	}
}

static error_t parse_recording(int key, char *argument, struct argp_state *state)
{
	struct rls_record_options *options = state->input;
	char names[RLS_WRITER_NAMES_BYTES];

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options;
		return 0;
	case KEY_OUTPUT:
		return replace(&options->trace_path, argument);
	case KEY_REPORT:
		return replace(&options->report_path, argument);
	case KEY_FORMAT:
		options->writer = rls_report_writer_find(argument);
		if (!options->writer) {
			rls_error("'%s' is not a report format: %s", argument,
				  rls_report_writer_names(names));
			return EINVAL;
		}
		return 0;
	case KEY_JSON:
		options->writer = rls_report_writer_find("json");
		return 0;
	case KEY_SAMPLE_HZ:
		if (!parse_hz(argument, &options->sample_hz))
			return 0;
		rls_error("--sample-hz takes a whole number from 0 to %d, not '%s'",
			  RLS_SAMPLE_HZ_MAX, argument);
		return EINVAL;
	case KEY_OPERATION:
		return add_operation(options, argument);
	case KEY_MEMORY:
		if (!parse_memory(argument, &options->memory))
			return 0;
		rls_error("--memory takes auto, off or all, not '%s'", argument);
		return EINVAL;
	case KEY_LAYERS:
		if (!parse_layers(argument, &options->layers))
			return 0;
		rls_error("--layers takes auto or off, not '%s'", argument);
		return EINVAL;
	case KEY_LAYER_DEPTH:
		if (!parse_layer_depth(argument, &options->layer_depth))
			return 0;
		rls_error("--layer-depth takes a whole number from 1 to %d, not '%s'",
			  RLS_LAYER_DEPTH_MAX, argument);
		return EINVAL;
	case KEY_VERIFY:
		options->verify = true;
		return 0;
	case ARGP_KEY_END:
		return check_together(options);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_tracing(int key, char *argument, struct argp_state *state)
{
	struct rls_record_options *options = state->input;

	switch (key) {
	case KEY_DURATION:
		if (rls_parse_seconds(argument, &options->duration_ns)) {
			rls_error("--duration takes a number of seconds, not '%s'", argument);
			return EINVAL;
		}
		return 0;
	case KEY_NO_CHILDREN:
		options->children = false;
		return 0;
	case KEY_SIMULATOR:
		return add_role(options, RLS_ROLE_SIMULATOR, argument);
	case KEY_BACKEND:
		return add_role(options, RLS_ROLE_BACKEND, argument);
	case KEY_NATIVE:
		return add_role(options, RLS_ROLE_NATIVE, argument);
	case KEY_CONFIG:
		options->config_path = argument;
		return 0;
	case KEY_BUDGET:
		if (parse_budget(argument, &options->budget_percent)) {
			rls_error("--overhead-budget takes a percentage or none, not '%s'",
				  argument);
			return EINVAL;
		}
		return 0;
	case KEY_PERF_EVENTS:
		options->perf_events = true;
		return 0;
	case KEY_VERBOSE:
		options->verbose = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp rls_tracing_argp = {.options = tracing_table, .parser = parse_tracing};

static const struct argp_child children[] = {{&rls_tracing_argp, 0, NULL, 0}, {0}};

const struct argp rls_record_argp = {
	.options = recording_table, .parser = parse_recording, .children = children};

int rls_record_options_init(struct rls_record_options *options)
{
	*options = (struct rls_record_options){
		.children = true,
		.memory = RLS_MEMORY_AUTO,
		.layers = false,
		.layer_depth = RLS_LAYER_DEPTH_MAX,
		.budget_percent = 2,
		.sample_hz = RLS_SAMPLE_HZ_UNSAID,
	};
	options->writer = rls_report_writer_find("text");
	return rls_roles_new(&options->roles);
}

void rls_record_options_clear(struct rls_record_options *options)
{
	rls_roles_free(options->roles);
	rls_operation_globs_clear(&options->operations);
	free(options->trace_path);
	free(options->report_path);
	*options = (struct rls_record_options){0};
}

/* No more than need no timer, and than a small budget can bear: at 25 us each, an eighth of it.
 * --operation and --verify are about samples: they take all of them. */
static unsigned int choose_hz(const struct rls_record_options *options)
{
	unsigned int scheduler_hz = rls_scheduler_hz(), hz = RLS_SAMPLE_HZ;

	if (options->operations.count || options->verify)
		return hz;
	if (options->budget_percent >= 0 && options->budget_percent < 4)
		hz = (unsigned int)fmax(RLS_SAMPLE_HZ_LEAST, options->budget_percent / 4 * hz);
	return scheduler_hz && scheduler_hz < hz ? scheduler_hz : hz;
}

int rls_record_options_finish(struct rls_record_options *options)
{
	int r = rls_roles_parse_default_files(options->roles);

	rls_log_set_verbose(options->verbose);
	if (options->sample_hz == RLS_SAMPLE_HZ_UNSAID)
		options->sample_hz = choose_hz(options);
	if (!r && options->config_path)
		r = rls_roles_parse_file(options->roles, options->config_path);
	return r;
}
