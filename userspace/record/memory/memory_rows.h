/* Memory rows: what the kernel side counts by place in code becomes MEMORY_LINE, MEMORY_AGES
 * and COPY_LINE events by line.
 *
 *     place (code object, instruction, operation, …) ─▶ row (file, line, function, operation, …) ─▶ event
 *
 * Several places may be one row: a line has several instructions, and a function one code object for
 * each process that it is in. Names are read when a place is first met, while its code object exists.
 * Rows and places of a process go when it ends, so there are at most RLS_MEMORY_LINES of either.
 */
#ifndef RLS_MEMORY_ROWS_H
#define RLS_MEMORY_ROWS_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/samples/interpreters.h"

struct rls_memory_rows;

/* All borrowed. 0 or -ENOMEM. */
int rls_memory_rows_new(struct rls_kernel *kernel, struct rls_interpreters *interpreters,
			const struct rls_translator *translator, struct rls_event_output *output,
			struct rls_memory_rows **out);
void rls_memory_rows_free(struct rls_memory_rows *rows);

/* A process was forked: all of its CPU time is of the recording. 0 or -ENOMEM. */
int rls_memory_rows_forked(struct rls_memory_rows *rows, pid_t pid);
/* Called often for each process: reads how long it has run. 0 or -ENOMEM. */
int rls_memory_rows_clock(struct rls_memory_rows *rows, pid_t pid);
/* CPU time of all processes since they were first read. */
uint64_t rls_memory_rows_ran_ns(const struct rls_memory_rows *rows);

/* From now on blocks of the source are counted in windows only: an event for each row, whose method has changed. 0 or
 * -errno. */
int rls_memory_rows_narrow(struct rls_memory_rows *rows, uint32_t source, uint64_t time_ns);
/* A window opens, or has closed; hit_ns: what each report of a block in it has cost. 0 or -errno. */
void rls_memory_rows_open(struct rls_memory_rows *rows);
int rls_memory_rows_close(struct rls_memory_rows *rows, uint64_t time_ns, double hit_ns);

/* Names places that are new. Those of a process of whose fork nobody has heard yet wait a moment for that, but not of
 * one that is about to be forgotten (last; 0: none is, -1: all are). Cheap where there are none. 0 or -errno. */
int rls_memory_rows_name(struct rls_memory_rows *rows, pid_t last, uint64_t time_ns);
/* An event for each row that has changed since its last one. 0 or -errno. */
int rls_memory_rows_flush(struct rls_memory_rows *rows, uint64_t time_ns);
/* The process has ended, or (0) the recording has: the last events of its rows, with ages. What the kernel side has of
 * a process is dropped. 0 or -errno. */
int rls_memory_rows_end(struct rls_memory_rows *rows, pid_t pid, uint64_t time_ns);
/* Allocations that could not be counted, blocks that could not be followed: LOSS events where there are more than
 * before. 0 or -errno. */
int rls_memory_rows_losses(struct rls_memory_rows *rows, uint64_t time_ns);

#endif
