#include "analysis/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/search.h"
#include "analysis/estimate/estimate_untraced.h"
#include "analysis/report/report_edit.h"
#include "analysis/report/tables.h"
#include "analysis/timeline/sweep.h"
#include "analysis/timeline/tracks.h"

void rls_report_free(struct rls_report *report)
{
	if (!report)
		return;
	for (int table = 0; table < RLS_TABLE_ALL; table++) {
		if (!rls_report_tables[table].inner &&
		    !(rls_report_tables[table].flags & RLS_TABLE_OF_REPORT))
			rls_table_free(report, table);
	}
	rls_string_pool_free(report->strings);
	free(report);
}

const char *rls_report_process_name(const struct rls_report *report, uint32_t pid)
{
	/* Of several lives of a pid the last. */
	size_t low = rls_first_not(report->process_count, i, report->processes[i].pid <= pid);

	return low && report->processes[low - 1].pid == pid ? report->processes[low - 1].name : "";
}

const char *rls_report_thread_name(const struct rls_report *report, uint32_t pid, uint32_t tid)
{
	const struct rls_thread_entry *threads = report->threads;
	size_t low = rls_first_not(report->thread_count, i,
				   threads[i].pid < pid ||
					   (threads[i].pid == pid && threads[i].tid <= tid));

	return low && threads[low - 1].pid == pid && threads[low - 1].tid == tid
		       ? threads[low - 1].name
		       : "";
}

bool rls_report_has_memory(const struct rls_report *report)
{
	return report->memory_count || report->memory_line_count || report->copy_count;
}

size_t rls_report_frames(const struct rls_report *report, const struct rls_sampled_stack_row *row,
			 const struct rls_stack_frame *frames[static RLS_STACK_FRAMES_MAX])
{
	uint32_t number = row->frame;
	size_t count = 0;

	for (; number && number <= report->stack_frame_count && count < RLS_STACK_FRAMES_MAX;
	     count++) {
		frames[count] = &report->stack_frames[number - 1];
		number = frames[count]->parent;
	}
	return count;
}

static int report_sweep(struct rls_event_source *source, struct rls_timeline *timeline)
{
	struct rls_event event;
	int more, err;

	while ((more = source->next(source, &event)) > 0) {
		err = rls_sweep_event(timeline, &event);

		if (err)
			return err;
	}
	if (more < 0)
		return more;
	err = rls_sweep_end(timeline);
	return err ? err : rls_estimate_untraced(timeline);
}

/* What the picture leaves out is said in it. */
static int warn_of_lanes(struct rls_report *report, const struct rls_tracks *tracks)
{
	uint64_t left_out = tracks ? rls_tracks_left_out(tracks) : 0;

	return left_out
		       ? rls_report_warn(report,
					 "%" PRIu64 " GPU intervals are not shown: more than %d of "
					 "their stream run at once",
					 left_out, RLS_TRACK_LANES_MAX)
		       : 0;
}

int rls_report_build(struct rls_event_source *source, struct rls_report **out)
{
	return rls_report_build_tracks(source, NULL, out);
}

int rls_report_build_tracks(struct rls_event_source *source, struct rls_tracks *tracks,
			    struct rls_report **out)
{
	struct rls_timeline timeline = {.tracks = tracks, .strings = source->strings};
	struct rls_report *report = NULL;
	int err;

	if (tracks)
		rls_tracks_begin_trace(tracks, source->strings, 0);
	err = report_sweep(source, &timeline);
	if (!err)
		err = rls_report_new(&report);
	if (!err)
		err = rls_report_from_timeline(report, &timeline, source->strings, source->damaged);
	if (!err)
		err = warn_of_lanes(report, tracks);
	rls_timeline_free(&timeline);
	if (err)
		rls_report_free(report);
	else
		*out = report;
	return err;
}
