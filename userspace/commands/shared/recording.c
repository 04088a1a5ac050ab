#include "userspace/commands/shared/recording.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/private_file.h"
#include "analysis/event/event_source.h"
#include "analysis/writers/write.h"
#include "userspace/base/log.h"
#include "userspace/commands/shared/commands.h"
#include "userspace/commands/shared/cross_check.h"
#include "userspace/commands/shared/read_progress.h"

/* rlscope-PID.trace; where another recording is writing that, rlscope-PID-2.trace and so on.
 * NULL: no memory. */
static char *free_trace_path(pid_t pid)
{
	char *path = NULL;

	if (asprintf(&path, "rlscope-%d.trace", pid) < 0)
		return NULL;
	for (int i = 2; i < 100 && rls_private_file_is_busy(path); i++) {
		free(path);
		if (asprintf(&path, "rlscope-%d-%d.trace", pid, i) < 0)
			return NULL;
	}
	return path;
}

/* Better now than when all has been recorded. The file itself is made at the end. */
static int check_report_path(const char *path)
{
	_cleanup_free_ char *copy = NULL;

	if (!path || !access(path, W_OK))
		return 0;
	if (errno == ENOENT) {
		copy = strdup(path);
		if (!copy)
			return -ENOMEM;
		if (!access(dirname(copy), W_OK | X_OK))
			return 0;
	}
	return rls_error_r(-errno, "cannot write the report to %s: %s", path, strerror(errno));
}

int rls_recording_open(struct rls_record_options *options, const struct rls_selection *selection,
		       pid_t pid, const char *command, struct rls_recorder **out)
{
	struct rls_recorder_options recorder = {
		.roles = options->roles,
		.selection = selection,
		.command = command,
		.duration_ns = options->duration_ns,
		.follow_children = options->children,
		.sample_hz = options->sample_hz,
		.operations = &options->operations,
		.budget_percent = options->budget_percent,
		.memory = options->memory,
		.layer_depth = options->layers ? options->layer_depth : 0,
		.perf_events = options->perf_events,
		.alternate = options->alternate,
	};

	int r = check_report_path(options->report_path);

	if (r)
		return r;
	if (!options->trace_path)
		options->trace_path = free_trace_path(pid);
	if (!options->trace_path)
		return -ENOMEM;
	recorder.trace_path = options->trace_path;
	return rls_recorder_open(&recorder, out);
}

static int build_report(const char *trace_path, struct rls_tracks *tracks, struct rls_report **out)
{
	struct rls_event_source *source;
	char message[256];
	int r = rls_event_source_open(trace_path, &source, message, sizeof(message));

	if (r)
		return rls_error_r(r, "%s", message);
	source = rls_read_progress(source);
	r = rls_report_build_tracks(source, tracks, out);
	source->free(source);
	return r ? rls_error_r(r, "cannot analyse %s: %s", trace_path, strerror(-r)) : 0;
}

/* What is found only now that the report is there. A user may read it much later. */
static void warn_of_found(const struct rls_report *report)
{
	for (size_t i = 0; i < report->warning_count; i++) {
		if (!rls_log_has_warned(report->warnings[i]))
			rls_warning("%s", report->warnings[i]);
	}
}

int rls_recording_report(const struct rls_record_options *options)
{
	_cleanup_fclose_ FILE *opened = NULL;
	struct rls_named_report named = {.trace = options->trace_path};
	struct rls_write_options write = {.reports = &named, .report_count = 1};
	struct rls_report *report;
	FILE *output = stdout;
	int r;

	if (options->report_path) {
		opened = fopen(options->report_path, "we");
		if (!opened) {
			rls_error("cannot write the report to %s: %s", options->report_path,
				  strerror(errno));
			return RLS_EXIT_FAILED;
		}
		output = opened;
	}
	r = rls_report_writer_tracks(options->writer, output, &write.tracks);
	if (r) {
		rls_error("cannot write the report: %s", strerror(-r));
		return RLS_EXIT_FAILED;
	}
	r = build_report(options->trace_path, write.tracks, &report);
	if (r) {
		rls_tracks_free(write.tracks);
		return RLS_EXIT_FAILED;
	}
	warn_of_found(report);
	rls_write_options_fit(&write, output);
	named.report = report;
	r = rls_report_write(report, options->writer, output, &write);
	if (!r && options->verify)
		r = rls_cross_check_write(report, stderr);
	rls_report_free(report);
	rls_tracks_free(write.tracks);
	if (r)
		rls_error("cannot write the report: %s", strerror(-r));
	return r ? RLS_EXIT_FAILED : RLS_EXIT_DONE;
}
