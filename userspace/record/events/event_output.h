/* Trace output: the recorder's string pool and trace file, as an event sink.
 *
 * The file is created late, once it is certain that there will be a recording: what is
 * added before waits in memory, and a failed attach leaves an older trace of the same
 * name alone. */
#ifndef RLS_EVENT_OUTPUT_H
#define RLS_EVENT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/event.h"
#include "analysis/trace/trace_writer.h"
#include "userspace/record/events/translate.h"

struct rls_event_output {
	struct rls_string_pool *strings;
	struct rls_trace_writer *writer; /* NULL until opened */
	struct rls_event *waiting;
	size_t waiting_count, waiting_room;
	uint64_t flushed_ns;
	/* Instead of a file, when set. */
	int (*listener)(void *context, const struct rls_event *event);
	void *listener_context;
	int error; /* the first failure to write; nothing is added after it */
};

int rls_event_output_init(struct rls_event_output *output);
/* Events go to a listener, at once, and no file is to be opened. Their strings are all "": nothing
 * that targets make up is kept for as long as the output is there. */
void rls_event_output_listen(struct rls_event_output *output,
			     int (*listener)(void *context, const struct rls_event *event),
			     void *context);
/* Creates the file, writes what waits. 0 or -errno, said on stderr. */
int rls_event_output_open(struct rls_event_output *output, const char *path);
/* Ends the file if it was opened, frees. 0 or the first error there was. */
int rls_event_output_close(struct rls_event_output *output);

struct rls_event_sink rls_event_output_sink(struct rls_event_output *output);
int rls_event_output_add(struct rls_event_output *output, const struct rls_event *event);
int rls_event_output_string(struct rls_event_output *output, const char *text, rls_string_id *out);
/* Says it on stderr, and writes it as rls_event_output_said does. */
int rls_event_output_warn(struct rls_event_output *output, uint64_t time_ns, const char *format,
			  ...) __attribute__((format(printf, 3, 4)));
/* Writes what was said on stderr since the last time (userspace/base/log.h), each text once: all of it
 * may matter to who reads the figures. To a listener nothing. 0 or -errno. */
int rls_event_output_said(struct rls_event_output *output, uint64_t time_ns);
int rls_event_output_loss(struct rls_event_output *output, uint64_t time_ns, const char *buffer,
			  uint64_t dropped);
/* Writes out what is pending when the last time is a second ago. */
int rls_event_output_tick(struct rls_event_output *output, uint64_t now_ns);

#endif
