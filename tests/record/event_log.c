#include "event_log.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/layer_pass.h"

void event_log_clear(struct event_log *log)
{
	memset(log, 0, sizeof(*log));
	log->string_count = 1; /* id 0 is "" */
}

void event_log_empty(struct event_log *log)
{
	log->text[0] = '\0';
	log->length = 0;
}

static void append(struct event_log *log, const char *format, va_list arguments)
{
	int added;

	if (log->quiet)
		return;
	added = vsnprintf(log->text + log->length, sizeof(log->text) - log->length, format,
			  arguments);
	log->length += (size_t)added;
	assert_true(log->length < sizeof(log->text));
}

void event_log_note(struct event_log *log, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	append(log, format, arguments);
	va_end(arguments);
}

static const char *text_of(const struct event_log *log, rls_string_id id)
{
	assert_true(id < log->string_count);
	return log->strings[id];
}

static void log_operations(struct event_log *log, const struct rls_event *event)
{
	assert_true(event->operation.depth <= RLS_OPERATION_DEPTH_MAX);
	event_log_note(log, "operation %s", event->operation.depth ? "" : "-");
	for (uint16_t i = 0; i < event->operation.depth; i++)
		event_log_note(log, "%s%s", i ? ">" : "", text_of(log, event->operation.stack[i]));
	if (event->operation.continued)
		event_log_note(log, " continued=%u", event->operation.continued);
}

static void log_process(struct event_log *log, const struct rls_event *event)
{
	event_log_note(log, "process %s ppid=%u ns_pid=%u python=%s cmdline=%s container=%s",
		       text_of(log, event->process.name), event->process.ppid,
		       event->process.ns_pid, text_of(log, event->process.python),
		       text_of(log, event->process.cmdline),
		       text_of(log, event->process.container));
}

static void log_payload(struct event_log *log, const struct rls_event *event)
{
	switch (event->kind) {
	case RLS_EVENT_PROCESS:
		log_process(log, event);
		break;
	case RLS_EVENT_MEMORY_USE:
		event_log_note(log, "memory_use%s",
			       event->memory_use.out_of_memory ? " out_of_memory" : "");
		break;
	case RLS_EVENT_PROCESS_END:
		event_log_note(log, "process_end");
		break;
	case RLS_EVENT_THREAD:
		event_log_note(log, "thread %s ns_tid=%u", text_of(log, event->thread.name),
			       event->thread.ns_tid);
		break;
	case RLS_EVENT_THREAD_END:
		event_log_note(log, "thread_end");
		break;
	case RLS_EVENT_CATEGORY:
		event_log_note(log, "category %s", rls_category_name(event->category.category));
		break;
	case RLS_EVENT_LAYER:
		event_log_note(log, "layer %u depth=%u%s %s", event->layer.id, event->layer.depth,
			       event->layer.begun ? " begun" : "",
			       rls_layer_pass_name(event->layer.pass));
		break;
	case RLS_EVENT_OPERATION:
		log_operations(log, event);
		break;
	case RLS_EVENT_PHASE:
		event_log_note(log, "phase %s", text_of(log, event->phase.phase));
		break;
	case RLS_EVENT_HITS:
		event_log_note(log, "hits %" PRIu64 " cost=%" PRIu64, event->hits.count,
			       event->hits.cost_ns);
		break;
	case RLS_EVENT_OFF_CPU:
		event_log_note(log, "off_cpu %" PRIu64, event->off_cpu.ns);
		break;
	default:
		fail_msg("translate made an event of kind %d", event->kind);
	}
}

static int add(void *context, const struct rls_event *event)
{
	struct event_log *log = context;

	if (log->fail_after && !--log->fail_after) {
		log->fail_after = 1;
		return -ENOSPC;
	}
	log->events++;
	event_log_note(log, "%" PRIu64 " %u/%u ", event->time_ns, event->pid, event->tid);
	log_payload(log, event);
	event_log_note(log, "\n");
	return 0;
}

static int intern(void *context, const char *text, size_t length, rls_string_id *out)
{
	struct event_log *log = context;
	rls_string_id id;

	assert_true(length <= RLS_WIRE_NAME_BYTES);
	for (id = 0; id < log->string_count; id++) {
		if (strlen(log->strings[id]) == length && !memcmp(log->strings[id], text, length))
			break;
	}
	if (id == log->string_count) {
		/* Full: the mutated names of the random tests, where the text does not matter. */
		if (log->string_count == EVENT_LOG_STRINGS)
			id = EVENT_LOG_STRINGS - 1;
		else
			log->string_count++;
		memcpy(log->strings[id], text, length);
		log->strings[id][length] = '\0';
	}
	*out = id;
	return 0;
}

struct rls_event_sink event_log_sink(struct event_log *log)
{
	return (struct rls_event_sink){add, intern, log};
}
