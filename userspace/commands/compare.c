/* rlscope-bpf compare: recordings side by side, and a verdict for CI. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/compare/compare.h"
#include "analysis/compare/rule.h"
#include "analysis/writers/compare/compare_writers.h"
#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/read_progress.h"

#define NOISE_DEFAULT 0.02

enum {
	KEY_METRIC = 256,
	KEY_NOISE,
	KEY_FAIL_IF,
	KEY_NORMALISE,
	KEY_AGAINST,
	KEY_JSON,
};

typedef void (*write_form)(FILE *out, const struct rls_compare_side *sides, size_t count,
			   const struct rls_compare_options *options);

static const struct {
	const char *name;
	write_form write;
} forms[] = {
	{"text", rls_compare_write_text},
	{"json", rls_compare_write_json},
	{"html", rls_compare_write_html},
};

struct arguments {
	char **traces;
	size_t *starts; /* of each side, in traces */
	size_t trace_count, side_count;
	bool grouped; /* --against was given: it begins a side, not every trace */
	bool begin; /* the next trace begins one */
	const char *output; /* NULL: stdout */
	write_form write;
	struct rls_compare_options options;
	struct rls_compare_rule *rules;
	size_t rule_count;
	bool help;
};

static error_t add_rule(struct arguments *arguments, const char *text)
{
	struct rls_compare_rule *rules =
		reallocarray(arguments->rules, arguments->rule_count + 1, sizeof(*rules));
	char message[300];
	int error;

	if (!rules)
		return ENOMEM;
	arguments->rules = rules;
	error = rls_compare_rule_parse(text, &rules[arguments->rule_count], message,
				       sizeof(message));
	if (error == -EINVAL)
		rls_error("%s", message);
	if (!error)
		arguments->rule_count++;
	return -error;
}

static error_t set_format(struct arguments *arguments, const char *name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (!strcmp(name, forms[i].name)) {
			arguments->write = forms[i].write;
			return 0;
		}
	}
	rls_error("'%s' is not a format of compare: text, json or html", name);
	return EINVAL;
}

static error_t set_noise(struct arguments *arguments, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%")) || !(percent >= 0) || !isfinite(percent)) {
		rls_error("--noise takes a percentage, not '%s'", text);
		return EINVAL;
	}
	arguments->options.noise = percent / 100;
	return 0;
}

static error_t add_trace(struct arguments *arguments, char *path)
{
	if (arguments->begin || !arguments->trace_count)
		arguments->starts[arguments->side_count++] = arguments->trace_count;
	arguments->begin = false;
	arguments->traces[arguments->trace_count++] = path;
	return 0;
}

static error_t begin_side(struct arguments *arguments)
{
	if (!arguments->trace_count || arguments->begin) {
		rls_error("--against stands between the traces of two sides");
		return EINVAL;
	}
	arguments->grouped = arguments->begin = true;
	return 0;
}

/* Without --against every trace is a side. */
static error_t end_sides(struct arguments *arguments)
{
	if (arguments->help)
		return 0;
	if (arguments->begin) {
		rls_error("--against stands between the traces of two sides");
		return EINVAL;
	}
	if (!arguments->grouped) {
		for (size_t i = 0; i < arguments->trace_count; i++)
			arguments->starts[i] = i;
		arguments->side_count = arguments->trace_count;
	}
	if (arguments->side_count >= 2)
		return 0;
	rls_error("compare needs two traces or more");
	return EINVAL;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'f':
		return set_format(arguments, value);
	case KEY_JSON:
		return set_format(arguments, "json");
	case 'o':
		arguments->output = value;
		return 0;
	case KEY_METRIC:
		if (!rls_compare_metric_parse(value, &arguments->options.metric))
			return 0;
		rls_error("--metric takes ran, wall, corrected or cpu, not '%s'", value);
		return EINVAL;
	case KEY_NOISE:
		return set_noise(arguments, value);
	case KEY_FAIL_IF:
		return add_rule(arguments, value);
	case 'h':
		return rls_help_print(state, &arguments->help);
	case KEY_NORMALISE:
		if (!rls_compare_normalise_parse(value, &arguments->options.normalise))
			return 0;
		rls_error("--normalise takes auto, speed or none, not '%s'", value);
		return EINVAL;
	case KEY_AGAINST:
		return begin_side(arguments);
	case ARGP_KEY_ARG:
		return add_trace(arguments, value);
	case ARGP_KEY_END:
		return end_sides(arguments);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_run(const char *path, struct rls_compare_run *run)
{
	struct rls_event_source *source;
	struct rls_series *series;
	char message[512];
	int error = rls_read_progress_open(path, &source, message, sizeof(message));

	if (error)
		return rls_error_r(error, "%s", message);
	error = rls_series_read(source, &series);
	source->free(source);
	if (error)
		return rls_error_r(error, "cannot read %s: %s", path, strerror(-error));
	run->name = path;
	run->series = series;
	if (!series->report->complete)
		rls_warning("%s is damaged or incomplete: its warnings say what is missing", path);
	return 0;
}

static int read_runs(const struct arguments *arguments, struct rls_compare_run *runs)
{
	int error = 0;

	for (size_t i = 0; !error && i < arguments->trace_count; i++)
		error = read_run(arguments->traces[i], &runs[i]);
	return error;
}

static int compare_sides(const struct arguments *arguments, const struct rls_compare_run *runs,
			 struct rls_compare_side *sides)
{
	for (size_t i = 0; i < arguments->side_count; i++) {
		size_t end = i + 1 < arguments->side_count ? arguments->starts[i + 1]
							   : arguments->trace_count;
		int error = 0;

		sides[i].runs = &runs[arguments->starts[i]];
		sides[i].run_count = end - arguments->starts[i];
		if (i)
			error = rls_compare(sides[0].runs, sides[0].run_count, sides[i].runs,
					    sides[i].run_count, &arguments->options,
					    &sides[i].comparison);
		if (error)
			return rls_error_r(error, "cannot compare: %s", strerror(-error));
	}
	return 0;
}

static int write_comparison(const struct arguments *arguments, const struct rls_compare_side *sides)
{
	_cleanup_fclose_ FILE *file = NULL;
	FILE *output = stdout;

	if (arguments->output) {
		output = file = fopen(arguments->output, "we");
		if (!file)
			return rls_error_r(-errno, "cannot write %s: %s", arguments->output,
					   strerror(errno));
	}
	errno = 0;
	arguments->write(output, sides, arguments->side_count, &arguments->options);
	if (fflush(output) || ferror(output))
		return rls_error_r(errno ? -errno : -EIO, "cannot write the comparison: %s",
				   strerror(errno ? errno : EIO));
	return 0;
}

/* RLS_EXIT_DONE, RLS_EXIT_WORSE, or RLS_EXIT_FAILED where a rule speaks of what is not there. */
static int check_rules(const struct arguments *arguments, const struct rls_compare_side *sides)
{
	int status = RLS_EXIT_DONE;

	for (size_t r = 0; r < arguments->rule_count; r++) {
		for (size_t i = 1; i < arguments->side_count; i++) {
			const struct rls_compare_row *row;
			bool known;

			row = rls_compare_rule_check(&arguments->rules[r], &sides[i].comparison,
						     &known);
			if (!known) {
				rls_error("'%s' cannot be judged: %s and %s do not both have it",
					  arguments->rules[r].text, sides[0].runs->name,
					  sides[i].runs->name);
				return RLS_EXIT_FAILED;
			}
			if (!row)
				continue;
			rls_error("%s: %s.%s changed by %+.1f%% ± %.1f%%%s: '%s'",
				  sides[i].runs->name, row->operation,
				  rls_compare_row_category(row), 100 * row->relative,
				  100 * row->error,
				  sides[i].comparison.normalised ? " against all the rest" : "",
				  arguments->rules[r].text);
			status = RLS_EXIT_WORSE;
		}
	}
	return status;
}

static int verdict(const struct arguments *arguments, const struct rls_compare_run *runs,
		   const struct rls_compare_side *sides)
{
	int status = check_rules(arguments, sides);

	for (size_t i = 0; status == RLS_EXIT_DONE && i < arguments->trace_count; i++) {
		if (!runs[i].series->report->complete)
			status = RLS_EXIT_DAMAGED;
	}
	return status;
}

static int compare_sides_one(const struct arguments *arguments)
{
	_cleanup_free_ struct rls_compare_run *runs = calloc(arguments->trace_count, sizeof(*runs));
	_cleanup_free_ struct rls_compare_side *sides =
		calloc(arguments->side_count, sizeof(*sides));
	int status = RLS_EXIT_FAILED;

	if (!runs || !sides) {
		rls_error("out of memory");
		return status;
	}
	if (!read_runs(arguments, runs) && !compare_sides(arguments, runs, sides) &&
	    !write_comparison(arguments, sides))
		status = verdict(arguments, runs, sides);
	for (size_t i = 0; i < arguments->side_count; i++)
		rls_comparison_free(&sides[i].comparison);
	for (size_t i = 0; i < arguments->trace_count; i++)
		rls_series_free((struct rls_series *)runs[i].series);
	return status;
}

int rls_command_compare(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'f', "FORMAT", 0, "text (default), json or html", 0},
		{"json", KEY_JSON, NULL, 0, "The same as --format json", 0},
		{"output", 'o', "FILE", 0, "Write to FILE instead of stdout", 0},
		{"metric", KEY_METRIC, "WHAT", 0,
		 "ran (default): time without waiting; wall: with it; corrected: without the "
		 "probes' cost; or cpu: without either",
		 0},
		{"noise", KEY_NOISE, "PERCENT", 0,
		 "What two runs of one program may differ by: less is never significant (default "
		 "2%)",
		 0},
		{"fail-if", KEY_FAIL_IF, "CONDITION", 0,
		 "Exit with status 4 if a trace breaks this, as in 'backpropagation.total > +5%'; "
		 "may be repeated",
		 0},
		{"against", KEY_AGAINST, NULL, 0,
		 "Between runs of one side and runs of the next: A1 A2 --against B1 B2", 0},
		{"normalise", KEY_NORMALISE, "BY", 0,
		 "speed: judge against the factor common to all; none: as it is; auto (default): "
		 "speed where each side is one run",
		 0},
		{"help", 'h', NULL, 0, "Print this", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = "TRACE TRACE...\nTRACE... --against TRACE...",
		.doc = "Compares recordings with the first: time per call of each operation. Needs "
		       "no root.",
	};
	struct arguments arguments = {
		.write = rls_compare_write_text,
		.options = {.metric = RLS_COMPARE_RAN, .noise = NOISE_DEFAULT},
	};
	_cleanup_free_ char **traces = calloc((size_t)argc + 1, sizeof(*traces));
	_cleanup_free_ size_t *starts = calloc((size_t)argc + 1, sizeof(*starts));
	int status = RLS_EXIT_USAGE;

	if (!traces || !starts) {
		rls_error("out of memory");
		return RLS_EXIT_FAILED;
	}
	arguments.traces = traces;
	arguments.starts = starts;
	if (!rls_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &arguments))
		status = arguments.help ? RLS_EXIT_DONE : compare_sides_one(&arguments);
	for (size_t i = 0; i < arguments.rule_count; i++)
		rls_compare_rule_free(&arguments.rules[i]);
	free(arguments.rules);
	return status;
}
