/* A trace written down in a test: events in any order, then one report of them. */
#ifndef RLS_TEST_SCRIPT_H
#define RLS_TEST_SCRIPT_H

#include "analysis/event/event.h"
#include "analysis/report/report.h"

struct script {
	struct rls_event *events;
	size_t count;
	size_t capacity;
	struct rls_string_pool *strings;
};

void script_begin(struct script *script);
/* The same with process 1, and its thread 1 in python, from 10 on. */
void script_begin_python(struct script *script);
/* With a hit of 100 ns, known to that share, and thread 1 of process 1 in operation "step". */
void script_begin_step(struct script *script, double hit_error);
void script_end(struct script *script);

rls_string_id script_string(struct script *script, const char *text);

/* Appends a zeroed event to fill in; valid until the next one. */
struct rls_event *script_add(struct script *script, enum rls_event_kind kind, uint64_t time_ns,
			     uint32_t pid, uint32_t tid);

void add_process(struct script *script, uint64_t time_ns, uint32_t pid, const char *name);
void add_thread(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid);
void add_category(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid,
		  enum rls_category category);
/* operation "" leaves all operations. */
void add_operation(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid,
		   const char *operation);
void add_phase(struct script *script, uint64_t time_ns, uint32_t pid, const char *phase);
void add_hits(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid, uint64_t count,
	      uint64_t cost_ns);
void add_off_cpu(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid, uint64_t ns);
void add_launch(struct script *script, uint64_t time_ns, uint32_t pid, uint32_t tid,
		uint64_t correlation);
void add_gpu(struct script *script, uint64_t start_ns, uint64_t end_ns, uint32_t pid,
	     enum rls_gpu_kind kind, uint64_t correlation);
void add_window(struct script *script, uint64_t time_ns, bool open);
/* Of thread 1 of process 1. */
void add_sample_of_category(struct script *script, uint64_t time_ns, enum rls_category category);
void add_end(struct script *script, uint64_t time_ns);

/* The events, sorted; a failed assertion when there is no report, or the trace's tracks
 * (checked_tracks.h) say something else. */
struct rls_report *script_report(const struct script *script);
/* The same without tracks: those of a trace show each sample's category, and so are not what rows say. */
struct rls_report *script_report_alone(const struct script *script);

/* The row of these keys, or NULL. */
const struct rls_breakdown_row *find_row(const struct rls_report *report, uint32_t pid,
					 uint32_t tid, const char *phase, const char *operation,
					 const char *category, enum rls_resource resource);
uint64_t transition_count(const struct rls_report *report, uint32_t tid, const char *operation,
			  enum rls_category from, enum rls_category to);

/* The JSON form; the caller frees it. */
char *report_json(const struct rls_report *report);

#endif
