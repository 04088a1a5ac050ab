/* rlscope-bpf calibrate: what probe hits cost on this machine, and in a running job. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/log.h"
#include "userspace/commands/in_vivo.h"
#include "userspace/commands/options/arguments.h"
#include "userspace/commands/options/help.h"
#include "userspace/commands/options/seconds.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/print_json.h"
#include "userspace/record/cost/calibration_cache.h"

/* On a slow or busy machine 25 rounds must do, after some seconds: who calibrates waits for it. */
static const struct rls_calibration_effort at_length = {
	.rounds = 99, .enough = 25, .time_ns = 4000000000, .most_ns = 60000000000};
#define RING_BYTES (4U << 20)
#define IN_VIVO_NS 30000000000ULL
/* A factor that is less certain than that share of it is worth less than the machine's own. */
#define KEPT_ERROR 0.5

struct arguments {
	bool command; /* there is one, which calibrate no longer takes */
	pid_t pid; /* 0: the machine */
	uint64_t duration_ns;
	bool json, perf_events, help;
};

/* What the tables show: a path as it is, or with its event. */
static const struct row {
	const char *name, *title;
	enum rls_calibrated_path path;
	bool emits;
} rows[] = {
	{"nop5.entry.silent", "entry, 5-byte nop", RLS_PATH_NOP5_ENTRY, false},
	{"nop5.entry.emitting", "  with an event", RLS_PATH_NOP5_ENTRY, true},
	{"emulated.entry.silent", "entry, emulated", RLS_PATH_EMULATED_ENTRY, false},
	{"emulated.entry.emitting", "  with an event", RLS_PATH_EMULATED_ENTRY, true},
	{"single-step.entry.silent", "entry, single-stepped", RLS_PATH_SINGLE_STEP_ENTRY, false},
	{"single-step.entry.emitting", "  with an event", RLS_PATH_SINGLE_STEP_ENTRY, true},
	{"return.silent", "return probe", RLS_PATH_RETURN, false},
	{"return.emitting", "  with an event", RLS_PATH_RETURN, true},
	{"usdt", "USDT site", RLS_PATH_USDT, false},
	{"annotation.edge", "operation edge", RLS_PATH_EDGE, false},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct rls_calibrated figures(const struct rls_calibration *calibration,
				     const struct row *row)
{
	struct rls_calibrated sum = calibration->paths[row->path];
	const struct rls_calibrated *event = &calibration->paths[RLS_PATH_EVENT];

	if (row->emits) {
		sum.value_ns += event->value_ns;
		sum.error_ns += event->error_ns;
		sum.hot_ns += event->hot_ns;
		sum.hot_error_ns += event->hot_error_ns;
	}
	return sum;
}

static int print_text(const struct rls_calibration *calibration)
{
	struct rls_calibrated hit = rls_calibration_mean_hit(calibration);

	printf("%-24s %14s  %10s\n", "what a hit costs, in ns", "among work", "hot loop");
	for (size_t i = 0; i < ROWS; i++) {
		struct rls_calibrated row = figures(calibration, &rows[i]);

		printf("%-24s %7.0f ± %4.0f  %5.0f ± %2.0f\n", rows[i].title, row.value_ns,
		       row.error_ns, row.hot_ns, row.hot_error_ns);
	}
	printf("\nThe mean hit of a call out of Python: %.0f ± %.0f ns, kept for this boot in "
	       "%s.\n",
	       hit.value_ns, hit.error_ns, RLS_CALIBRATION_PATH);
	return 0;
}

static json_t *calibrate_describe(const struct rls_calibrated *figure)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "ns", figure->value_ns, "error_ns",
			 figure->error_ns, "hot_ns", figure->hot_ns, "hot_error_ns",
			 figure->hot_error_ns);
}

static int print_json(const struct rls_calibration *calibration)
{
	struct rls_calibrated hit = rls_calibration_mean_hit(calibration);
	json_t *paths = json_object();

	for (size_t i = 0; i < ROWS; i++) {
		struct rls_calibrated row = figures(calibration, &rows[i]);

		if (json_object_set_new(paths, rows[i].name, calibrate_describe(&row))) {
			json_decref(paths);
			return -ENOMEM;
		}
	}
	return rls_print_json(json_pack("{s:i, s:s, s:o, s:o}", "version", 1, "tool",
					"rlscope-bpf " RLS_VERSION, "hit", calibrate_describe(&hit),
					"paths", paths),
			      2);
}

static bool is_certain(double factor, double error)
{
	return factor > 0 && error <= KEPT_ERROR * factor;
}

/* What is wrong with it; NULL: nothing. */
static const char *unreliability(const struct rls_in_vivo *in_vivo)
{
	const struct rls_delta_in_vivo *found = &in_vivo->delta;

	if (!in_vivo->compared)
		return "too few pieces of its work could be compared to know what its hits cost";
	if (!is_certain(found->factor, found->error))
		return "the cost of the probes is smaller than the job's own variation";
	if (!is_certain(found->factor, found->spread))
		return "the kinds of its work differ too much for pieces of one kind to be the "
		       "same work, as when "
		       "operations begin by the clock";
	return NULL;
}

static const char *use_of_it(bool kept)
{
	return kept ? "; recordings of this command use it" : "";
}

/* ---- the two kinds of calibration ---- */

/* A kernel side of our own; *way: how it attaches. */
static int open_kernel(const struct arguments *arguments, struct rls_kernel **out)
{
	const struct rls_kernel_options options = {
		.way = arguments->perf_events ? RLS_ATTACH_PERF : RLS_ATTACH_AUTO,
		.transitions_bytes = RING_BYTES,
		.control_bytes = RING_BYTES,
	};

	return rls_kernel_open(&options, out);
}

static int calibrate_machine(const struct arguments *arguments, struct rls_calibration_file *file)
{
	struct rls_kernel *kernel;
	int r = open_kernel(arguments, &kernel);

	if (r)
		return r;
	r = rls_calibration_cache_measure(kernel, &at_length, file);
	rls_kernel_close(kernel);
	return r;
}

/* Beside the machine's, which stays where there is one. */
static int calibrate_store(const struct rls_workload *workload, enum rls_attach_way way)
{
	struct rls_calibration_file file;
	struct rls_calibration_scope scope;
	int r = rls_calibration_scope_init(&scope, way);

	if (!r && rls_calibration_load(RLS_CALIBRATION_PATH, &scope, &file))
		file = (struct rls_calibration_file){.calibration = workload->calibration};
	if (!r) {
		r = rls_calibration_add_workload(&file, workload);
		if (!r)
			r = rls_calibration_save(RLS_CALIBRATION_PATH, &scope, &file);
		rls_calibration_file_clear(&file);
	}
	return r ? rls_error_r(r, "cannot write the calibration to %s: %s", RLS_CALIBRATION_PATH,
			       strerror(-r))
		 : 0;
}

/* null: not known. */
static json_t *figure(const struct rls_in_vivo *in_vivo, double value)
{
	return in_vivo->compared ? json_real(value) : json_null();
}

static int print_in_vivo_json(const struct rls_in_vivo *in_vivo)
{
	const struct rls_delta_in_vivo *found = &in_vivo->delta;

	return rls_print_json(
		json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "version",
			  1, "tool", "rlscope-bpf " RLS_VERSION, "factor",
			  figure(in_vivo, found->factor), "error", figure(in_vivo, found->error),
			  "deviation", figure(in_vivo, found->deviation), "spread",
			  figure(in_vivo, found->spread), "hit_ns", figure(in_vivo, found->hit_ns),
			  "inflation", figure(in_vivo, found->inflation), "segments",
			  (json_int_t)found->segments, "labels", (json_int_t)found->labels, "cuda",
			  rls_cuda_costs_describe(in_vivo->cuda, in_vivo->cuda_count), "operations",
			  rls_operation_costs_describe(in_vivo->operations,
						       in_vivo->operation_count)),
		2);
}

static int print_in_vivo(const struct rls_in_vivo *in_vivo)
{
	const struct rls_delta_in_vivo *found = &in_vivo->delta;

	if (in_vivo->compared)
		printf("%zu pieces of work, of %zu kinds, took %.3f times as long with probes: "
		       "%.0f ns a hit\n"
		       "That is %.3f ± %.3f of the host's calibration, ± %.3f from second to "
		       "second, ± %.3f between kinds%s.\n",
		       found->segments, found->labels, found->inflation, found->hit_ns,
		       found->factor, found->error, found->deviation, found->spread,
		       use_of_it(!unreliability(in_vivo)));
	for (size_t i = 0; i < in_vivo->operation_count; i++) {
		const struct rls_operation_cost *cost = &in_vivo->operations[i];

		printf("%.3f ± %.3f %s%s\n", cost->factor, cost->error,
		       *cost->operation ? "in " : "outside any operation", cost->operation);
	}
	for (size_t i = 0; i < in_vivo->cuda_count; i++)
		printf("%s takes %.0f ± %.0f ns longer while CUPTI is armed\n",
		       in_vivo->cuda[i].name, in_vivo->cuda[i].ns, in_vivo->cuda[i].error_ns);
	return 0;
}

/* What recordings of this command are to go by. */
static void calibrate_conclude(const struct rls_in_vivo *found, struct rls_workload *out)
{
	struct rls_calibrated hit = rls_calibration_mean_hit(&found->calibration);

	memcpy(out->command, found->command, strlen(found->command) + 1);
	out->factor = found->delta.factor;
	out->error = hypot(found->delta.deviation, found->delta.spread);
	memcpy(out->operations, found->operations, sizeof(out->operations));
	out->operation_count = found->operation_count;
	if (unreliability(found)) {
		/* Only what CUPTI costs is kept: hits have the host's figures. */
		out->factor = 1;
		out->error = hit.error_ns / hit.value_ns;
		out->operation_count = 0;
	}
	out->calibration = found->calibration;
	memcpy(out->cuda, found->cuda, sizeof(out->cuda));
	out->cuda_count = found->cuda_count;
}

static int calibrate_job(const struct arguments *arguments)
{
	struct rls_workload workload = {0};
	struct rls_in_vivo found = {0};
	_cleanup_free_ char *command = NULL;
	const char *unreliable;
	int r = rls_in_vivo_measure(arguments->pid, arguments->duration_ns, &found);

	command = found.command;
	if (!r && strlen(command) >= sizeof(workload.command))
		r = rls_error_r(-E2BIG, "the command line of process %d is too long to be kept",
				arguments->pid);
	if (r)
		return r;
	calibrate_conclude(&found, &workload);
	unreliable = unreliability(&found);
	if (unreliable)
		rls_warning("%s: %s", unreliable,
			    found.cuda_count ? "only what CUPTI costs is kept" : "nothing is kept");
	if (found.bridged && !found.cuda_count)
		rls_warning("what CUPTI adds to calls into CUDA is not known and stays in their "
			    "time: use a longer --duration");
	if (!unreliable || found.cuda_count)
		r = calibrate_store(&workload, found.way);
	if (r)
		return r;
	return arguments->json ? print_in_vivo_json(&found) : print_in_vivo(&found);
}

static int calibrate(const struct arguments *arguments)
{
	struct rls_calibration_file file = {0};
	int r = calibrate_machine(arguments, &file);

	if (!r)
		r = arguments->json ? print_json(&file.calibration) : print_text(&file.calibration);
	rls_calibration_file_clear(&file);
	return r;
}

/* ---- the command line ---- */

static error_t take_pid(struct arguments *arguments, const char *value)
{
	char *end;
	long pid = strtol(value, &end, 10);

	if (*end || pid <= 0 || pid > INT_MAX) {
		rls_error("calibrate: --pid takes a process id, not %s", value);
		return EINVAL;
	}
	arguments->pid = (pid_t)pid;
	return 0;
}

static error_t take_duration(struct arguments *arguments, const char *value)
{
	if (!rls_parse_seconds(value, &arguments->duration_ns))
		return 0;
	rls_error("calibrate: --duration takes a number of seconds, not %s", value);
	return EINVAL;
}

enum { OPTION_PERF_EVENTS = 256 };

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'j':
		arguments->json = true;
		return 0;
	case 'p':
		return take_pid(arguments, value);
	case 'd':
		return take_duration(arguments, value);
	case 'v':
		rls_log_set_verbose(true);
		return 0;
	case OPTION_PERF_EVENTS:
		arguments->perf_events = true;
		return 0;
	case 'h':
		return rls_help_print(state, &arguments->help);
	case ARGP_KEY_ARG:
		arguments->command = true;
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int rls_command_calibrate(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "Print JSON", 0},
		{"pid", 'p', "PID", 0, "Measure in this running job", 0},
		{"duration", 'd', "SECONDS", 0, "How long to measure with --pid (default 30)", 0},
		{"verbose", 'v', NULL, 0, "Print more on stderr", 0},
		{"perf-events", OPTION_PERF_EVENTS, NULL, 0,
		 "Attach one by one even where uprobe_multi works", 0},
		{"help", 'h', NULL, 0, "Print this", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.args_doc = "[--pid PID]",
		.doc = "Measures what a probe hit costs on this host, and keeps it for this boot "
		       "in place "
		       "of what the first recording found by itself. "
		       "With --pid: "
		       "enables and disables a job's probes at random instants, and keeps what its "
		       "own hits "
		       "cost relative to that.",
	};
	struct arguments arguments = {.duration_ns = IN_VIVO_NS};
	int r;

	if (rls_arguments_parse(&argp, argc, argv, ARGP_IN_ORDER, &arguments))
		return RLS_EXIT_USAGE;
	if (arguments.help)
		return RLS_EXIT_DONE;
	if (arguments.command) {
		rls_error("calibrate: it takes no command: start the command and calibrate it with "
			  "--pid PID");
		return RLS_EXIT_USAGE;
	}
	r = arguments.pid ? calibrate_job(&arguments) : calibrate(&arguments);
	return r ? RLS_EXIT_FAILED : RLS_EXIT_DONE;
}
