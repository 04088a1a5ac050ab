#include "userspace/commands/options/watch_options.h"

#include <errno.h>
#include <stdio.h>

#include "userspace/base/log.h"
#include "userspace/commands/options/help.h"
#include "userspace/record/targets/scan.h"

#define BUDGET_PERCENT 1

static const struct argp_option option_table[] = {
	{"help", 'h', NULL, 0, "Print this", 5},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct rls_watch_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->select;
		state->child_inputs[1] = &options->record;
		return 0;
	case 'h':
		return rls_help_print(state, &options->help);
	case ARGP_KEY_ARG:
		rls_error("unexpected argument '%s': see --help", argument);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{&rls_selectors_argp, 0, NULL, 0},
	{&rls_tracing_argp, 0, NULL, 0},
	{0},
};

const struct argp rls_watch_argp = {
	.options = option_table, .parser = parse_option, .children = children};

int rls_watch_options_init(struct rls_watch_options *options)
{
	int r;

	*options = (struct rls_watch_options){0};
	r = rls_record_options_init(&options->record);
	if (!r)
		options->record.budget_percent = BUDGET_PERCENT;
	return r;
}

void rls_watch_options_clear(struct rls_watch_options *options)
{
	rls_record_options_clear(&options->record);
	rls_select_options_clear(&options->select);
}

int rls_watch_options_open(struct rls_watch_options *options, struct rls_monitor **out)
{
	const struct rls_monitor_options monitor_options = {
		.roles = options->record.roles,
		.selection = &options->select.selection,
		.duration_ns = options->record.duration_ns,
		.follow_children = options->record.children,
		.budget_percent = options->record.budget_percent,
		.perf_events = options->record.perf_events,
	};
	struct rls_selection *selection = &options->select.selection;
	int r = 0;

	if (!selection->count)
		r = rls_selection_add(selection, RLS_SELECT_ALL, NULL);
	if (!r)
		r = rls_selection_resolve(selection);
	return r ? r : rls_monitor_open(&monitor_options, out);
}
