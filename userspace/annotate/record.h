/* The calling thread's record: made at its first annotation, gone when the thread ends.
 *
 *     thread pointer ─▶ record (8 bytes of initial-exec TLS) ─▶ own pages
 *
 * Only the owning thread writes, so an edge is a handful of plain stores, closed by one
 * store-release of head. Every RLS_EDGE_FLUSH edges the flush site is passed while
 * somebody listens there; see annotate_wire.h for what readers may rely on.
 */
#ifndef RLS_ANNOTATE_RECORD_H
#define RLS_ANNOTATE_RECORD_H

#include "userspace/annotate/annotate_wire.h"

/* Exported under this name for readers from outside. */
extern __attribute__((
	visibility("protected"))) struct rls_annotate_descriptor rlscope_annotate_descriptor;

/* The thread's record, made if need be; NULL when out of memory. */
struct rls_thread_record *rls_record_get(void);
/* The thread's record or NULL. */
struct rls_thread_record *rls_record_peek(void);

/* owner: who may suspend the operation, NULL for nobody; only ever compared. */
void rls_record_push(struct rls_thread_record *record, const struct rls_name *name,
		     const void *owner);
/* Ends the innermost operation; 0, or -ENOENT without one. */
int rls_record_pop(struct rls_thread_record *record);
/* Ends the innermost operation of that name, the owner's before others'. Those above it go on, and the edge says so.
 * -ENOENT: none of that name is open. */
int rls_record_end(struct rls_thread_record *record, const struct rls_name *name,
		   const void *owner);
/* Notes that an operation was to be ended that is not open. */
void rls_record_disorder(struct rls_thread_record *record);
/* Leaves the owner's operations, and enters them again. Returns how many there are, names[] outermost first. */
unsigned int rls_record_suspend(struct rls_thread_record *record, const void *owner,
				const struct rls_name *names[RLS_STACK_MAX]);
void rls_record_resume(struct rls_thread_record *record, const void *owner,
		       const struct rls_name *const *names, unsigned int count);
/* The innermost operation that has a slot in the stack, NULL without one. */
const struct rls_name *rls_record_innermost(const struct rls_thread_record *record);
/* An edge that leaves the operations alone: phase, process name. */
void rls_record_mark(struct rls_thread_record *record, enum rls_edge_kind kind,
		     const struct rls_name *name);

#endif
