#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct event_log event_log;

static void note_forked(void *context, uint32_t parent, uint32_t child, uint64_t time_ns)
{
	event_log_note(context, "%lu forked %u %u\n", time_ns, parent, child);
}

static void note_execed(void *context, uint32_t pid, uint64_t time_ns)
{
	event_log_note(context, "%lu execed %u\n", time_ns, pid);
}

static void note_ended(void *context, uint32_t pid, uint64_t time_ns)
{
	event_log_note(context, "%lu ended %u\n", time_ns, pid);
}

static void note_final(void *context, const struct rls_wire_final *final)
{
	event_log_note(context, "%lu final %u record=%lx seen=%lu\n", final->header.time_ns,
		       final->header.tid, final->record, final->edges_seen);
}

int set_up(void **state)
{
	const struct rls_process_watcher watcher = {note_forked, note_execed, note_ended,
						    note_final,  NULL,        &event_log};
	struct rls_event_sink sink = event_log_sink(&event_log);
	struct rls_translator *translator;

	event_log_clear(&event_log);
	if (rls_translator_new(&sink, &watcher, &translator))
		return -1;
	*state = translator;
	return 0;
}

int tear_down(void **state)
{
	rls_translator_free(*state);
	return 0;
}

rls_string_id log_string(const char *text)
{
	rls_string_id id;
	struct rls_event_sink sink = event_log_sink(&event_log);

	assert_int_equal(sink.intern(sink.context, text, strlen(text), &id), 0);
	return id;
}
