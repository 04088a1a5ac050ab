/* Report: what a trace says, as plain data (rows.h), independent of how it is shown.
 *
 *     event source ──rls_report_build──▶ struct rls_report ──rls_report_write──▶ text, json, ...
 *           (timeline/sweep.h)  │              │  ▲             (writers/write.h)
 *                               │              └──┘ rls_report_group, rls_report_merge
 *                               └──▶ tracks (timeline/tracks.h) ──▶ chrome, perfetto, ...
 *
 * Everything is sorted by text and number, never by the order of events in the file, so
 * that equal traces give equal reports.
 */
#ifndef RLS_REPORT_H
#define RLS_REPORT_H

#include "analysis/event/event_source.h"
#include "analysis/report/rows.h"

/* Reads the source to its end, in one pass. 0 and *out; -errno from the source, or
 * -ENOMEM. What is odd but readable becomes a warning. Caller: rls_report_free(). */
int rls_report_build(struct rls_event_source *source, struct rls_report **out);

struct rls_tracks; /* tracks.h */

/* The same; the tracks get the events in passing, unless they are NULL. */
int rls_report_build_tracks(struct rls_event_source *source, struct rls_tracks *tracks,
			    struct rls_report **out);
void rls_report_free(struct rls_report *report);

/* What a process or thread is called; "" when it is not known. */
const char *rls_report_process_name(const struct rls_report *report, uint32_t pid);
const char *rls_report_thread_name(const struct rls_report *report, uint32_t pid, uint32_t tid);

/* Whether anything is known of memory. */
bool rls_report_has_memory(const struct rls_report *report);

/* The frames of a sampled stack into frames[], innermost first. Returns how many. */
size_t rls_report_frames(const struct rls_report *report, const struct rls_sampled_stack_row *row,
			 const struct rls_stack_frame *frames[static RLS_STACK_FRAMES_MAX]);

/* "process", "thread", ... to *out and 0; -EINVAL for another word. */
int rls_group_parse(const char *name, enum rls_group *out);

/* Sums breakdown, transitions and operations over what the group does not distinguish (those columns
 * become 0 and ""). */
void rls_report_group(struct rls_report *report, enum rls_group group);

/* Takes over the other report's processes as independent ones. Those of another boot, as far as
 * both clocks are known, are shifted onto this report's CLOCK_MONOTONIC, with a warning that
 * says what is uncertain, and renumbered where pids clash. 0; -EEXIST when a host has the same
 * pid in both (it is put into *pid);
 * -ERANGE when the other would lie before the boot of this one's host; -ENOMEM. other is not
 * read again: it may have been renumbered, and may be freed. Group after merging, not before. */
int rls_report_merge(struct rls_report *report, struct rls_report *other, uint32_t *pid);

#endif
