/* rlscope-bpf monitor: every training job on the host, as metrics. */
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "userspace/commands/commands.h"
#include "userspace/commands/record_options.h"
#include "userspace/commands/select_options.h"
#include "userspace/log.h"
#include "userspace/metrics/exposition.h"
#include "userspace/monitor/monitor.h"
#include "userspace/record/scan.h"

#define BUDGET_PERCENT 1

struct monitor_options {
	struct rls_record_options record;
	struct rls_select_options select;
	bool print, help;
};

enum key {
	KEY_PRINT = 768,
};

static const struct argp_option option_table[] = {
	{ "print", KEY_PRINT, NULL, 0, "Print the metrics on stdout at the end", 1 },
	{ "help", 'h', NULL, 0, "Print this", 5 },
	{ 0 },
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct monitor_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->select;
		state->child_inputs[1] = &options->record;
		return 0;
	case KEY_PRINT:
		options->print = true;
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
		options->help = true;
		return 0;
	case ARGP_KEY_ARG:
		rls_error("unexpected argument '%s': see --help", argument);
		return EINVAL;
	case ARGP_KEY_END:
		if (options->select.pid_count) {
			rls_error("the monitor finds processes as they come: select them with --name, --cgroup or --container, not --pid");
			return EINVAL;
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &rls_select_argp, 0, NULL, 0 },
	{ &rls_tracing_argp, 0, NULL, 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "",
	.doc = "Watch every training job on the host and tell where their time goes, as metrics.\v"
	       "Without a selector every Python process is watched that loads a simulator, an ML backend "
	       "or CUDA, from when it does to its end, with all it starts. Ends with Ctrl-C.",
	.children = children,
};

static int print_metrics(struct rls_monitor *monitor)
{
	struct rls_exposition_outlets outlets = { 0 };
	const struct rls_snapshot *snapshot;
	struct rls_exposition *exposition;
	struct timespec now;
	int r = rls_monitor_snapshot(monitor, &snapshot);

	if (r)
		return rls_error_r(r, "cannot take the figures: %s", strerror(-r));
	r = rls_exposition_new(&exposition);
	if (r)
		return r;
	clock_gettime(CLOCK_REALTIME, &now);
	outlets.realtime_ns = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
	r = rls_exposition_write(exposition, snapshot, &outlets, stdout);
	rls_exposition_free(exposition);
	return r ? rls_error_r(r, "cannot print the metrics: %s", strerror(-r)) : 0;
}

/* Everything there is, unless less was asked for. */
static int select_jobs(struct rls_select_options *select)
{
	int r = 0;

	if (!select->selection.count)
		r = rls_selection_add(&select->selection, RLS_SELECT_ALL, NULL);
	return r ? r : rls_selection_resolve(&select->selection);
}

static int run(struct monitor_options *options)
{
	const struct rls_monitor_hooks hooks = { 0 };
	const struct rls_monitor_options monitor_options = {
		.roles = options->record.roles,
		.selection = &options->select.selection,
		.duration_ns = options->record.duration_ns,
		.follow_children = options->record.children,
		.budget_percent = options->record.budget_percent,
		.perf_events = options->record.perf_events,
	};
	struct rls_monitor *monitor;
	int r;

	if (select_jobs(&options->select) || rls_monitor_open(&monitor_options, &monitor))
		return RLS_EXIT_FAILED;
	r = rls_monitor_run(monitor, &hooks);
	if (!r && options->print)
		r = print_metrics(monitor);
	rls_monitor_free(monitor);
	return r ? RLS_EXIT_FAILED : RLS_EXIT_DONE;
}

int rls_command_monitor(int argc, char **argv)
{
	struct monitor_options options = { 0 };
	int status = RLS_EXIT_FAILED;

	if (rls_record_options_init(&options.record))
		return RLS_EXIT_FAILED;
	options.record.budget_percent = BUDGET_PERCENT;
	if (argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &options))
		status = RLS_EXIT_USAGE;
	else if (options.help)
		status = RLS_EXIT_DONE;
	else if (!rls_record_options_finish(&options.record))
		status = run(&options);
	rls_record_options_clear(&options.record);
	rls_select_options_clear(&options.select);
	return status;
}
