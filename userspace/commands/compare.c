/* rlscope-bpf compare: recordings side by side, and a verdict for CI. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cleanup.h"
#include "analysis/compare.h"
#include "userspace/commands/commands.h"
#include "userspace/log.h"

#define NOISE_DEFAULT 0.02

enum {
	KEY_METRIC = 256,
	KEY_NOISE,
	KEY_FAIL_IF,
};

typedef void (*write_form)(FILE *out, const struct rls_compare_side *sides, size_t count,
			   const struct rls_compare_options *options);

static const struct {
	const char *name;
	write_form write;
} forms[] = {
	{"text", rls_compare_write_text},
	{"json", rls_compare_write_json},
};

struct arguments {
	char **traces;
	size_t trace_count;
	const char *output; /* NULL: stdout */
	write_form write;
	struct rls_compare_options options;
	struct rls_compare_rule *rules;
	size_t rule_count;
	bool help;
};

static error_t add_rule(struct arguments *arguments, const char *text)
{
	struct rls_compare_rule *rules = reallocarray(arguments->rules, arguments->rule_count + 1,
						      sizeof(*rules));
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
	rls_error("'%s' is not a format of compare: text or json", name);
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

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'f':
		return set_format(arguments, value);
	case 'o':
		arguments->output = value;
		return 0;
	case KEY_METRIC:
		if (!rls_compare_metric_parse(value, &arguments->options.metric))
			return 0;
		rls_error("--metric takes corrected, wall or cpu, not '%s'", value);
		return EINVAL;
	case KEY_NOISE:
		return set_noise(arguments, value);
	case KEY_FAIL_IF:
		return add_rule(arguments, value);
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
		arguments->help = true;
		return 0;
	case ARGP_KEY_ARG:
		arguments->traces = state->argv + state->next - 1;
		arguments->trace_count = (size_t)(state->argc - state->next + 1);
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (arguments->trace_count >= 2 || arguments->help)
			return 0;
		rls_error("compare needs two traces or more");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_side(const char *path, struct rls_compare_side *side)
{
	struct rls_event_source *source;
	struct rls_series *series;
	char message[512];
	int error = rls_event_source_open(path, &source, message, sizeof(message));

	if (error)
		return rls_error_r(error, "%s", message);
	error = rls_series_read(source, &series);
	source->free(source);
	if (error)
		return rls_error_r(error, "cannot read %s: %s", path, strerror(-error));
	side->name = path;
	side->series = series;
	if (!series->report->complete)
		rls_warning("%s is damaged or incomplete: its warnings say what is missing", path);
	return 0;
}

static int read_sides(const struct arguments *arguments, struct rls_compare_side *sides)
{
	for (size_t i = 0; i < arguments->trace_count; i++) {
		int error = read_side(arguments->traces[i], &sides[i]);

		if (!error && i)
			error = rls_compare(sides[0].series, sides[i].series, &arguments->options,
					    &sides[i].comparison);
		if (error)
			return error;
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
	arguments->write(output, sides, arguments->trace_count, &arguments->options);
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
		for (size_t i = 1; i < arguments->trace_count; i++) {
			const struct rls_compare_row *row;
			bool known;

			row = rls_compare_rule_check(&arguments->rules[r], &sides[i].comparison,
						     &known);
			if (!known) {
				rls_error("'%s' cannot be judged: %s and %s do not both have it",
					  arguments->rules[r].text, sides[0].name, sides[i].name);
				return RLS_EXIT_FAILED;
			}
			if (!row)
				continue;
			rls_error("%s: %s.%s changed by %+.1f%% ± %.1f%%: '%s'", sides[i].name,
				  row->operation, rls_compare_row_category(row), 100 * row->change,
				  100 * row->error, arguments->rules[r].text);
			status = RLS_EXIT_WORSE;
		}
	}
	return status;
}

static int verdict(const struct arguments *arguments, const struct rls_compare_side *sides)
{
	int status = check_rules(arguments, sides);

	for (size_t i = 0; status == RLS_EXIT_DONE && i < arguments->trace_count; i++) {
		if (!sides[i].series->report->complete)
			status = RLS_EXIT_DAMAGED;
	}
	return status;
}

static int compare(const struct arguments *arguments)
{
	struct rls_compare_side *sides = calloc(arguments->trace_count, sizeof(*sides));
	int status = RLS_EXIT_FAILED;

	if (!sides) {
		rls_error("out of memory");
		return status;
	}
	if (!read_sides(arguments, sides) && !write_comparison(arguments, sides))
		status = verdict(arguments, sides);
	for (size_t i = 0; i < arguments->trace_count; i++) {
		rls_comparison_free(&sides[i].comparison);
		rls_series_free((struct rls_series *)sides[i].series);
	}
	free(sides);
	return status;
}

int rls_command_compare(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'f', "FORMAT", 0, "text (default) or json", 0},
		{"output", 'o', "FILE", 0, "Write to FILE instead of stdout", 0},
		{"metric", KEY_METRIC, "WHAT", 0,
		 "corrected (default): time without the probes' cost; wall; or cpu: what the threads really ran", 0},
		{"noise", KEY_NOISE, "PERCENT", 0,
		 "What two runs of one program may differ by: less is never significant (default 2%)", 0},
		{"fail-if", KEY_FAIL_IF, "CONDITION", 0,
		 "Exit with status 4 if a trace breaks this, as in 'backpropagation.total > +5%'; may be repeated", 0},
		{"help", 'h', NULL, 0, "Print this", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = "TRACE TRACE...",
		.doc = "Compares recordings with the first: time per call of each operation. Needs no root.",
	};
	struct arguments arguments = {
		.write = rls_compare_write_text,
		.options = {.noise = NOISE_DEFAULT},
	};
	int status = RLS_EXIT_USAGE;

	if (!argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &arguments))
		status = arguments.help ? RLS_EXIT_DONE : compare(&arguments);
	for (size_t i = 0; i < arguments.rule_count; i++)
		rls_compare_rule_free(&arguments.rules[i]);
	free(arguments.rules);
	return status;
}
