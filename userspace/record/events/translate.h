/* Translate: kernel records (bpf/wire/) become events (analysis/event/event.h).
 *
 *     ring buffers ──rls_translate──▶ sink (trace writer)
 *                          │
 *                          └──▶ watcher: what the recorder must act on (fork, exec, end)
 *
 * The translator keeps what the kernel side sends in pieces: names by address, the operations of
 * each thread (from our annotations and from ranges of other APIs, innermost last), and the
 * description of each process. It drops what belongs to ended threads, so memory follows the
 * number of live ones. One thread. Records come from the kernel, but the names in them come from
 * the target.
 */
#ifndef RLS_TRANSLATE_H
#define RLS_TRANSLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/event.h"
#include "bpf/wire/record.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/record/events/event_sink.h"
#include "userspace/record/events/operation_oddities.h"

/* Each may be NULL. */
struct rls_process_watcher {
	void (*forked)(void *context, uint32_t parent, uint32_t child, uint64_t time_ns);
	void (*execed)(void *context, uint32_t pid, uint64_t time_ns);
	void (*ended)(void *context, uint32_t pid, uint64_t time_ns);
	/* A thread's annotation record as far as the kernel side has read it. */
	void (*final)(void *context, const struct rls_wire_final *final);
	/* A thread's innermost operation, not an inherited one; called before the hits after it.
	 * 0 or -errno, which stops translation. */
	int (*turned)(void *context, uint32_t tid, const struct rls_queued_edge *edge);
	void *context;
};

struct rls_translator;

int rls_translator_new(const struct rls_event_sink *sink, const struct rls_process_watcher *watcher,
		       struct rls_translator **out);
void rls_translator_free(struct rls_translator *translator);

/* One record. Unknown kinds and impossible sizes are ignored and counted. 0 or -errno. */
int rls_translate(struct rls_translator *translator, const struct rls_wire_header *record,
		  size_t size);

/* How much more the calibration says of a hit than it costs amid hot code (hit_cost_model.h); 0, as at first: what it
 * says is charged as it is. */
void rls_translator_set_excess(struct rls_translator *translator, double excess_ns);

/* What the process's hits cost is this share of what the calibration says; its children's
 * too, those that it forks from now on. 0 or -ENOMEM. */
int rls_translator_set_cost_factor(struct rls_translator *translator, uint32_t pid, double factor);
/* The same of hits in one operation, after that; "": outside any. */
int rls_translator_set_operation_factor(struct rls_translator *translator, uint32_t pid,
					const char *operation, double factor);

/* A sample of a thread was taken while it was in that category, and cost it so much: what its hits
 * are charged from now on has that in it. Threads that are not known are charged nothing. */
void rls_translator_sampled(const struct rls_translator *translator, uint32_t pid, uint32_t tid,
			    unsigned int category, uint32_t cost_ns);

/* Announces a process, or describes it anew: the event (kind PROCESS) is added and kept. */
int rls_translator_describe(struct rls_translator *translator, const struct rls_event *process);
/* The event last added for it, or NULL. */
const struct rls_event *rls_translator_process(const struct rls_translator *translator,
					       uint32_t pid);

/* The recording is over: no more records will come. What helper threads were in last is emitted. 0
 * or -errno. */
int rls_translator_finish(struct rls_translator *translator);

/* The process is not recorded any more, though it has not ended. */
void rls_translator_forget(struct rls_translator *translator, uint32_t pid);

/* Edges that the recorder read from the target's memory itself, as the kernel side would
 * have sent them. name is the text of edge->name. */
int rls_translator_add_edge(struct rls_translator *translator, uint32_t pid, uint32_t tid,
			    const struct rls_edge *edge, const char *name, size_t name_bytes);

/* What a name at this address of a process is, as far as it has come. 1 and *out, or 0. */
int rls_translator_name(const struct rls_translator *translator, uint32_t pid, uint64_t address,
			rls_string_id *out);

/* Whether a thread is known and has not ended; the first one stands for its process. */
bool rls_translator_knows(const struct rls_translator *translator, uint32_t pid, uint32_t tid);
/* Calls visit for each of those until it returns other than 0, which is returned. */
int rls_translator_each_thread(const struct rls_translator *translator,
			       int (*visit)(void *context, uint32_t pid, uint32_t tid),
			       void *context);

const struct rls_operation_oddities *
rls_translator_oddities(const struct rls_translator *translator);
uint64_t rls_translator_ignored(const struct rls_translator *translator);

#endif
