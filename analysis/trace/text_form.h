/* The text form of a trace: JSON Lines, one event a line (doc/architecture.md, "Text form of traces").
 *
 *     {"event":"category","time_ns":10,"pid":1,"tid":1,"category":"backend"}
 *
 * Names of events and fields are those of event_fields.c. Lines may come in any order;
 * what is optional may be missing; events and fields of unknown name are ignored.
 */
#ifndef RLS_TEXT_FORM_H
#define RLS_TEXT_FORM_H

#include <stdio.h>

#include "analysis/event/event_source.h"

/* The words for enum rls_gpu_kind. */
const char *rls_gpu_kind_name(enum rls_gpu_kind kind);
/* 0, or -EINVAL for a word that names no kind (*out untouched). */
int rls_gpu_kind_parse(const char *name, enum rls_gpu_kind *out);

/* Writes one line. 0, -EINVAL for an event that fails rls_event_check, or -errno from out. */
int rls_text_write_event(FILE *out, const struct rls_event *event,
			 const struct rls_string_pool *strings);

/* Reads all of fd, which is the reader's from here on, also on failure. A broken line is
 * left out with a warning, damaged set. 0 and *out; -EINVAL when there is no event at all,
 * -errno, with a sentence in message that names no file. The watch may be NULL. */
int rls_text_reader_open(int fd, struct rls_event_source_watch *watch,
			 struct rls_event_source **out, char *message, size_t message_bytes);

#endif
