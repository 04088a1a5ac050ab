#include "userspace/commands/delta.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/timeline/trace_metadata.h"
#include "userspace/base/log.h"
#include "userspace/base/clock.h"

#define OWN_WORDS 10
#define ESTIMATED_MIN_NS 1e6

static int run(char **words)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return rls_error_r(-errno, "cannot start %s: %s", words[0], strerror(errno));
	if (!pid) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(words[0], words);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return rls_error_r(-ECHILD, "%s did not end with status 0: it must run to its end by itself",
				   words[0]);
	return 0;
}

/* ---- with probes: our own `run`, and what its report says ---- */

static double figure_ns(const json_t *report, const char *name)
{
	const json_t *calibration = json_object_get(json_object_get(report, "overhead"), "calibration");

	return json_number_value(json_object_get(json_object_get(calibration, name), "ns"));
}

/* The report's own estimate may rest on an earlier run of this very command. */
static double machine_estimate(const json_t *report)
{
	double estimated = json_number_value(
		json_object_get(json_object_get(report, "overhead"), "estimated_ns"));
	double hit_ns = figure_ns(report, RLS_FIGURE_HIT);
	double workload_ns = figure_ns(report, RLS_FIGURE_WORKLOAD);

	return workload_ns > 0 && hit_ns > 0 ? estimated * hit_ns / workload_ns : estimated;
}

/* How long the command's first process lived. */
static uint64_t lifetime_ns(const json_t *report)
{
	const json_t *first = json_array_get(json_object_get(report, "processes"), 0);

	return (uint64_t)(json_integer_value(json_object_get(first, "end_ns")) -
			  json_integer_value(json_object_get(first, "start_ns")));
}

static int read_report(const char *path, struct rls_delta_round *round)
{
	json_t *report = json_load_file(path, 0, NULL);

	if (!report)
		return rls_error_r(-EIO, "the report of a calibration run cannot be read");
	round->probed_ns = lifetime_ns(report);
	round->estimated_ns = machine_estimate(report);
	round->hits = json_number_value(json_object_get(json_object_get(report, "overhead"), "hits"));
	json_decref(report);
	return 0;
}

static int run_probed(char **command, const char *folder, struct rls_delta_round *round)
{
	_cleanup_free_ char *trace = NULL, *report = NULL;
	_cleanup_free_ char **words = NULL;
	size_t count = 0;
	int r;

	while (command[count])
		count++;
	words = calloc(OWN_WORDS + count + 1, sizeof(*words));
	if (!words || asprintf(&trace, "--output=%s/trace", folder) < 0 ||
	    asprintf(&report, "--report=%s/report", folder) < 0)
		return -ENOMEM;
	memcpy(words, (char *[]){ "/proc/self/exe", "run", "--overhead-budget=none", "--format=json",
				  trace, report, "--" },
	       7 * sizeof(*words));
	memcpy(words + 7, command, count * sizeof(*words));
	r = run(words);
	if (!r)
		r = read_report(report + strlen("--report="), round);
	unlink(trace + strlen("--output="));
	unlink(report + strlen("--report="));
	return r;
}

/* ---- rounds ---- */

static int measure_round(char **command, const char *folder, struct rls_delta_round *round)
{
	uint64_t begin_ns = rls_monotonic_ns();
	int r = run(command);

	round->plain_ns = rls_monotonic_ns() - begin_ns;
	return r ? r : run_probed(command, folder, round);
}

/* Two-sided 95 % points of Student's t by degrees of freedom, from 1. */
static double student(size_t freedom)
{
	static const double points[] = { 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31,
					 2.26,	2.23, 2.20, 2.18, 2.16, 2.14, 2.13 };

	return freedom <= sizeof(points) / sizeof(points[0]) ? points[freedom - 1] : 2.1;
}

int rls_delta_conclude(const struct rls_delta_round *rounds, size_t count, struct rls_delta *out)
{
	struct rls_delta mean = { 0 };
	double squares = 0;

	for (size_t i = 0; i < count; i++) {
		mean.plain_ns += (double)rounds[i].plain_ns / (double)count;
		mean.probed_ns += (double)rounds[i].probed_ns / (double)count;
		mean.hits += rounds[i].hits / (double)count;
		mean.estimated_ns += rounds[i].estimated_ns / (double)count;
	}
	if (!(mean.estimated_ns >= ESTIMATED_MIN_NS))
		return -ERANGE;
	mean.factor = (mean.probed_ns - mean.plain_ns) / mean.estimated_ns;
	for (size_t i = 0; i < count; i++) {
		double difference = (double)rounds[i].probed_ns - (double)rounds[i].plain_ns;
		double off = difference / mean.estimated_ns - mean.factor;

		squares += off * off;
	}
	mean.error = student(count - 1) * sqrt(squares / (double)(count - 1) / (double)count);
	*out = mean;
	return 0;
}

static int measure_rounds(char **command, unsigned int count, const char *folder,
			  struct rls_delta *out)
{
	_cleanup_free_ struct rls_delta_round *rounds = calloc(count, sizeof(*rounds));
	int r = rounds ? 0 : -ENOMEM;

	for (unsigned int i = 0; !r && i < count; i++) {
		r = measure_round(command, folder, &rounds[i]);
		if (!r)
			rls_info("round %u of %u: %.3f s without probes, %.3f s with", i + 1, count,
				 (double)rounds[i].plain_ns / 1e9, (double)rounds[i].probed_ns / 1e9);
	}
	if (!r)
		r = rls_delta_conclude(rounds, count, out);
	if (r == -ERANGE)
		return rls_error_r(r, "%s hits hardly any probe: there is nothing to measure", command[0]);
	return r;
}

int rls_delta_measure(char **command, unsigned int count, struct rls_delta *out)
{
	char folder[] = "/tmp/rlscope-calibrate.XXXXXX";
	int r;

	if (!mkdtemp(folder))
		return rls_error_r(-errno, "cannot make a folder in /tmp: %s", strerror(errno));
	r = measure_rounds(command, count, folder, out);
	rmdir(folder);
	return r;
}
