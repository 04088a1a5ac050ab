/* rlscope-bpf monitor: every training job on the host, as metrics. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "userspace/base/log.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/watch_options.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/metrics/exposition.h"
#include "userspace/metrics/presenter.h"
#include "userspace/monitor/monitor.h"

struct monitor_options {
	struct rls_watch_options watch;
	struct rls_monitor_config shown;
	bool print;
};

enum key {
	KEY_PRINT = 768,
	KEY_SETTING, /* and on, by enum rls_monitor_setting */
};

static const struct argp_option option_table[] = {
	{"listen", KEY_SETTING + RLS_SETTING_LISTEN, "ADDRESS:PORT|none", 0,
	 "Serve the metrics there (default 127.0.0.1:9435)", 0},
	{"tls-cert", KEY_SETTING + RLS_SETTING_TLS_CERT, "FILE", 0, "Serve them over TLS", 0},
	{"tls-key", KEY_SETTING + RLS_SETTING_TLS_KEY, "FILE", 0, "The certificate's key", 0},
	{"auth-file", KEY_SETTING + RLS_SETTING_AUTH_FILE, "FILE", 0,
	 "Require a name and password from FILE", 0},
	{"textfile", KEY_SETTING + RLS_SETTING_TEXTFILE, "DIR", 0,
	 "Write them to DIR/rlscope.prom, for node_exporter", 0},
	{"interval", KEY_SETTING + RLS_SETTING_INTERVAL, "SECONDS", 0,
	 "Time between new figures (default 5)", 0},
	{"print", KEY_PRINT, NULL, 0, "Print the metrics on stdout at the end", 1},
	{0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct monitor_options *options = state->input;

	if (key >= KEY_SETTING && key < KEY_SETTING + RLS_SETTING_MAX)
		return -rls_monitor_config_set(
			&options->shown, (enum rls_monitor_setting)(key - KEY_SETTING), argument);
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &options->watch;
		return 0;
	case KEY_PRINT:
		options->print = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&rls_watch_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "",
	.doc = "Watch every training job on the host and serve where their time goes, as metrics.\v"
	       "Without a selector it watches every Python process that loads a simulator, an ML "
	       "backend "
	       "or CUDA, from then to its end, with everything it starts. Ends with Ctrl-C.",
	.children = children,
};

static int print_metrics(struct rls_monitor *monitor)
{
	struct rls_exposition_outlets outlets = {0};
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

/* What a running monitor's hooks go by. */
struct showing {
	struct rls_monitor *monitor;
	struct rls_presenter *presenter;
	uint64_t due_ns;
};

static int monitor_show(void *context, uint64_t time_ns)
{
	struct showing *showing = context;
	const struct rls_snapshot *snapshot;
	int r;

	if (time_ns < showing->due_ns)
		return 0;
	showing->due_ns = time_ns + rls_presenter_interval_ns(showing->presenter);
	r = rls_monitor_snapshot(showing->monitor, &snapshot);
	return r ? r : rls_presenter_publish(showing->presenter, snapshot);
}

static bool on_signal(void *context, int signal)
{
	const struct showing *showing = context;

	if (signal == SIGHUP)
		rls_presenter_reload(showing->presenter); /* it has said why not */
	return signal == SIGHUP;
}

static void say_where(void *context)
{
	const struct showing *showing = context;
	char url[RLS_PRESENTER_URL_BYTES];

	if (rls_presenter_url(showing->presenter, url)[0])
		rls_info("metrics at %s", url);
}

static int monitor_watch(struct monitor_options *options, struct rls_presenter *presenter)
{
	struct showing showing = {.presenter = presenter};
	const struct rls_monitor_hooks hooks = {say_where, monitor_show, on_signal, &showing};
	int r = rls_watch_options_open(&options->watch, &showing.monitor);

	if (r)
		return r;
	r = rls_monitor_run(showing.monitor, &hooks);
	if (!r && options->print)
		r = print_metrics(showing.monitor);
	rls_monitor_free(showing.monitor);
	return r;
}

/* The server's thread must not be the one that a signal ends us by. */
static void block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

static int monitor_run(struct monitor_options *options, const char *config_path)
{
	struct rls_presenter *presenter;
	int r;

	block_signals();
	r = rls_presenter_open(config_path, &options->shown, &presenter);
	if (r)
		return RLS_EXIT_FAILED;
	r = rls_monitor_config_add_roles(rls_presenter_config(presenter),
					 options->watch.record.roles);
	if (!r)
		r = monitor_watch(options, presenter);
	rls_presenter_free(presenter);
	return r ? RLS_EXIT_FAILED : RLS_EXIT_DONE;
}

int rls_command_monitor(int argc, char **argv)
{
	struct monitor_options options = {0};
	struct rls_record_options *record = &options.watch.record;
	const char *config_path;
	int status = RLS_EXIT_FAILED;

	if (rls_watch_options_init(&options.watch))
		return RLS_EXIT_FAILED;
	if (rls_arguments_parse(&argp, argc, argv, 0, &options)) {
		status = RLS_EXIT_USAGE;
	} else if (options.watch.help) {
		status = RLS_EXIT_DONE;
	} else {
		/* The presenter's to read: it has more than roles. */
		config_path = record->config_path;
		record->config_path = NULL;
		if (!rls_record_options_finish(record))
			status = monitor_run(&options, config_path);
	}
	rls_monitor_config_clear(&options.shown);
	rls_watch_options_clear(&options.watch);
	return status;
}
