/* rlscope-bpf top: every training job on the host, live in a terminal. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/watch_options.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/monitor/monitor.h"
#include "userspace/top/kept_snapshot.h"
#include "userspace/top/rates.h"
#include "userspace/top/screen.h"
#include "userspace/top/view.h"

#define INTERVAL_NS 1000000000ULL
#define INTERVAL_LEAST_NS 100000000ULL
#define KEYS_EVERY_NS 50000000ULL
#define PLAIN_COLUMNS 120
#define DONE 1 /* what a tick returns when all has been shown */

struct top_options {
	struct rls_watch_options watch;
	uint64_t interval_ns;
	bool once, json;
};

enum key {
	KEY_ONCE = 768,
	KEY_JSON,
	KEY_INTERVAL,
};

static const struct argp_option option_table[] = {
	{"once", KEY_ONCE, NULL, 0, "Print one interval as plain text, and exit", 1},
	{"json", KEY_JSON, NULL, 0, "Print each interval as a line of JSON", 1},
	{"interval", KEY_INTERVAL, "SECONDS", 0, "Time between refreshes (default 1)", 1},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct top_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->watch;
		return 0;
	case KEY_ONCE:
		options->once = true;
		return 0;
	case KEY_JSON:
		options->json = true;
		return 0;
	case KEY_INTERVAL:
		if (!rls_parse_seconds(argument, &options->interval_ns) &&
		    options->interval_ns >= INTERVAL_LEAST_NS)
			return 0;
		rls_error("--interval takes seconds, at least 0.1, not '%s'", argument);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&rls_watch_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "",
	.doc = "Show where the time of every training job on the host goes now.\v"
	       "Jobs are selected as by `rlscope-bpf monitor`. Ends with q or Ctrl-C.",
	.children = children,
};

/* What a running monitor's hooks go by. */
struct showing {
	const struct top_options *options;
	struct rls_monitor *monitor;
	uint64_t due_ns, keys_due_ns;
	struct rls_screen_size size; /* that was drawn for */
	bool live; /* a screen, not lines one after another */
	struct rls_rates rates; /* of the last interval */
	struct rls_kept_snapshot now;
};

static void draw(struct showing *showing)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return;
	showing->size = rls_screen_size();
	rls_top_write_text(out, &showing->rates,
			   &(struct rls_top_view){.columns = showing->size.columns,
						  .lines = showing->size.lines,
						  .colour = !getenv("NO_COLOR")});
	if (!fclose(out))
		rls_screen_show(text, bytes);
	free(text);
}

/* 0, or -EIO when stdout has failed. */
static int print(const struct showing *showing)
{
	if (showing->options->json)
		rls_top_write_json(stdout, &showing->rates);
	else
		rls_top_write_text(stdout, &showing->rates,
				   &(struct rls_top_view){.columns = PLAIN_COLUMNS});
	if (fflush(stdout) || ferror(stdout))
		return rls_error_r(-EIO, "cannot print: %s", strerror(errno ? errno : EIO));
	return 0;
}

/* The rates of what lies between two snapshots stay, and what they borrow from, for redrawing. */
static int show_interval(struct showing *showing)
{
	struct rls_kept_snapshot before = showing->now;
	const struct rls_snapshot *snapshot;
	struct rls_rates rates;
	int r = rls_monitor_snapshot(showing->monitor, &snapshot);

	if (r)
		return rls_error_r(r, "cannot take the figures: %s", strerror(-r));
	showing->now = (struct rls_kept_snapshot){0};
	r = rls_kept_snapshot_take(&showing->now, snapshot);
	if (!r && before.arena)
		r = rls_rates_make(&before.snapshot, &showing->now.snapshot, &rates);
	if (r || !before.arena) {
		rls_kept_snapshot_clear(&before);
		return r;
	}
	rls_rates_clear(&showing->rates);
	showing->rates = rates;
	rls_kept_snapshot_clear(&before);
	if (showing->live)
		draw(showing);
	else
		r = print(showing);
	return r ? r : showing->options->once ? DONE : 0;
}

/* Keys, and another size of the terminal. */
static int read_screen(struct showing *showing)
{
	struct rls_screen_size size = rls_screen_size();
	int key = rls_screen_key();

	if (key == 'q' || key == 'Q' || key == RLS_SCREEN_GONE)
		return DONE;
	if (showing->rates.now &&
	    (size.columns != showing->size.columns || size.lines != showing->size.lines))
		draw(showing);
	return 0;
}

static int top_tick(void *context, uint64_t time_ns)
{
	struct showing *showing = context;
	int r = 0;

	if (showing->live && time_ns >= showing->keys_due_ns) {
		showing->keys_due_ns = time_ns + KEYS_EVERY_NS;
		r = read_screen(showing);
	}
	if (r || !showing->due_ns || time_ns < showing->due_ns)
		return r;
	showing->due_ns = time_ns + showing->options->interval_ns;
	return show_interval(showing);
}

/* From here on every interval is a whole one. */
static void started(void *context)
{
	struct showing *showing = context;

	showing->due_ns = 1;
	if (showing->live && rls_screen_enter())
		showing->live = false;
}

static int top_show(const struct top_options *options, struct rls_monitor *monitor)
{
	struct showing showing = {
		.options = options,
		.monitor = monitor,
		.live = !options->once && !options->json && rls_screen_is_there(),
	};
	const struct rls_monitor_hooks hooks = {
		.started = started,
		.tick = top_tick,
		.context = &showing,
	};
	int r = rls_monitor_run(monitor, &hooks);

	rls_screen_leave();
	rls_rates_clear(&showing.rates);
	rls_kept_snapshot_clear(&showing.now);
	return r < 0 ? r : 0;
}

static int top_run(struct top_options *options)
{
	struct rls_monitor *monitor;
	int r = rls_watch_options_open(&options->watch, &monitor);

	if (r)
		return RLS_EXIT_FAILED;
	r = top_show(options, monitor);
	rls_monitor_free(monitor);
	return r ? RLS_EXIT_FAILED : RLS_EXIT_DONE;
}

int rls_command_top(int argc, char **argv)
{
	struct top_options options = {.interval_ns = INTERVAL_NS};
	int status = RLS_EXIT_FAILED;

	if (rls_watch_options_init(&options.watch))
		return RLS_EXIT_FAILED;
	if (rls_arguments_parse(&argp, argc, argv, 0, &options))
		status = RLS_EXIT_USAGE;
	else if (options.watch.help)
		status = RLS_EXIT_DONE;
	else if (!rls_record_options_finish(&options.watch.record))
		status = top_run(&options);
	rls_watch_options_clear(&options.watch);
	return status;
}
