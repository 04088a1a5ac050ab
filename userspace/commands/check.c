/* rlscope-bpf check: can this host profile? Each answer with its remedy. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/print_json.h"
#include "userspace/host/host.h"

typedef int (*print_answers)(const struct rls_host_answer *answers);

struct arguments {
	print_answers print;
	bool help;
};

/* Why not, in one sentence. */
static void print_verdict(const struct rls_host_answer *answers)
{
	const struct rls_host_check *check = rls_host_hindrance(answers);
	const struct rls_host_answer *answer;

	if (!check) {
		printf("\nThis host can profile.\n");
		return;
	}
	answer = &answers[check - rls_host_checks];
	printf("\nThis host cannot profile: %s; %s.\n", answer->detail,
	       rls_host_remedy(check, answer));
}

static int print_text(const struct rls_host_answer *answers)
{
	static const char *const marks[] = {"NO", "no", "note"}; /* by need */

	for (size_t i = 0; i < rls_host_check_count; i++) {
		const struct rls_host_check *check = &rls_host_checks[i];
		const char *mark = answers[i].yes ? "ok" : marks[check->need];

		printf("%-5s %-17s %s: %s\n", mark, check->name, check->claim, answers[i].detail);
		if (!answers[i].yes)
			printf("%23s remedy: %s\n", "", rls_host_remedy(check, &answers[i]));
	}
	print_verdict(answers);
	return 0;
}

static json_t *check_describe(const struct rls_host_check *check,
			      const struct rls_host_answer *answer)
{
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s}", "name", check->name, "need",
			 rls_host_need_name(check->need), "yes", answer->yes, "claim", check->claim,
			 "detail", answer->detail, "remedy", rls_host_remedy(check, answer));
}

static int print_json(const struct rls_host_answer *answers)
{
	const struct rls_host_check *hindrance = rls_host_hindrance(answers);
	json_t *checks = json_array();
	json_t *root;

	for (size_t i = 0; i < rls_host_check_count; i++)
		if (json_array_append_new(checks,
					  check_describe(&rls_host_checks[i], &answers[i]))) {
			json_decref(checks);
			return -ENOMEM;
		}
	root = json_pack("{s:i, s:s, s:b, s:s*, s:o}", "version", 1, "tool",
			 "rlscope-bpf " RLS_VERSION, "can_profile", !hindrance, "hindrance",
			 hindrance ? hindrance->name : NULL, "checks", checks);
	return rls_print_json(root, 2);
}

static const struct {
	const char *name;
	print_answers print;
} formats[] = {
	{"text", print_text},
	{"json", print_json},
};

static print_answers find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return formats[i].print;
	return NULL;
}

enum { KEY_JSON = 0x100 };

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'f':
		arguments->print = find_format(value);
		if (arguments->print)
			return 0;
		rls_error("check: --format is text or json, not %s", value);
		return EINVAL;
	case KEY_JSON:
		arguments->print = print_json;
		return 0;
	case 'h':
		return rls_help_print(state, &arguments->help);
	case ARGP_KEY_ARG:
		rls_error("check takes no argument: %s", value);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int rls_command_check(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'f', "FORMAT", 0, "text (default) or json", 0},
		{"json", KEY_JSON, NULL, 0, "The same as --format json", 0},
		{"help", 'h', NULL, 0, "Print this", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "Says whether this host can profile, each answer with its remedy.",
	};
	struct arguments arguments = {.print = print_text};
	_cleanup_free_ struct rls_host_answer *answers = NULL;
	bool able;

	if (rls_arguments_parse(&argp, argc, argv, 0, &arguments))
		return 2;
	if (arguments.help)
		return 0;
	answers = calloc(rls_host_check_count, sizeof(*answers));
	if (!answers)
		return 1;
	able = rls_host_ask(answers);
	return arguments.print(answers) == 0 && able ? 0 : 1;
}
