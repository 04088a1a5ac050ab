/* The translator's state, and those of its handlers that are not in translator.c. Private to
 * translator.c and translate_operations.c. */
#ifndef RLS_TRANSLATOR_H
#define RLS_TRANSLATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/record/events/event_sink.h"
#include "userspace/record/events/thread_table.h"
#include "userspace/record/events/translate.h"

struct rls_translator {
	struct rls_event_sink sink;
	struct rls_process_watcher watcher;
	struct rls_thread_table living;
	double excess_ns;
	uint64_t ignored;
	struct rls_operation_oddities oddities;
};

/* The thread's operations as they are. continued: it has entered none of them now. 0 or the sink's -errno. */
int rls_translate_operations(struct rls_translator *translator, uint32_t pid,
			     const struct rls_live_thread *thread, uint64_t time_ns,
			     bool continued);
/* The process is in this phase from now on. 0 or the sink's -errno. */
int rls_translate_phase(struct rls_translator *translator, struct rls_live_process *process,
			uint64_t time_ns, rls_string_id phase);

/* Handlers of records (rls_translate): names, edges of operations, ranges. */
int rls_translate_name(struct rls_translator *translator, const void *data);
int rls_translate_edge(struct rls_translator *translator, const void *data);
int rls_translate_range(struct rls_translator *translator, const void *data);

#endif
