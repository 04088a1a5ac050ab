/* Early records: what the kernel side reports of processes from before recording began.
 *
 * Processes are tracked from the first scan of them, so that no child is missed while probes are put on, which may
 * take seconds. What happens to them meanwhile changes who is recorded, and is no part of the recording: a child
 * that has ended by then is not in it, and one that is still there begins with it.
 */
#ifndef RLS_EARLY_RECORDS_H
#define RLS_EARLY_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analysis/base/grow.h"
#include "bpf/wire/record.h"

struct rls_early_child {
	pid_t parent, pid;
	bool execed; /* it has begun another program since */
};

/* Zeroed: empty. */
struct rls_early_records {
	RLS_LIST(struct rls_early_child) children; /* in the order of their forks */
	bool over; /* they have become targets: nothing is early any more */
};

void rls_early_records_clear(struct rls_early_records *early);

/* Whether it is a record of a process from before recording began. since_ns: 0 while it has not begun. */
bool rls_early_records_has(const struct rls_early_records *early, uint64_t since_ns,
			   const struct rls_wire_header *record);

/* Whether it is the end of a thread, not of a process, from before recording began: it can come after later records of
 * another ring. since_ns: 0 while it has not begun. */
bool rls_early_records_is_late_end(uint64_t since_ns, const struct rls_wire_header *record,
				   size_t size);

/* Notes one of those, checked for its size. *ended, *execed: who else was met, the process that has ended, and one
 * that has begun another program and is no child that is noted here; 0: nobody. 0 or -ENOMEM. */
int rls_early_records_take(struct rls_early_records *early, const struct rls_wire_header *record,
			   size_t size, pid_t *ended, pid_t *execed);

#endif
