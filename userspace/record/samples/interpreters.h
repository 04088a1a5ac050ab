/* Interpreters: the Python interpreters of recorded processes, and the names of their code
 * objects.
 *
 * A process is checked for an interpreter when its recording begins. It is checked again, with a
 * minimum interval, after it loaded something or when a sample comes without a walk
 * (RLS_STACK_NO_INTERPRETER). The kernel side then gets what it needs to walk the stacks of the
 * process, and to see whether a thread is in Python at all. A forked child has its parent's
 * interpreter, on both sides. A code object is read when it is first met, while it most likely
 * still exists. It is kept until another object takes its address, which its identity shows
 * (bpf/wire/stack.h).
 */
#ifndef RLS_INTERPRETERS_H
#define RLS_INTERPRETERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_sink.h"
#include "userspace/record/samples/frame_tree.h"
#include "userspace/record/targets/target_table.h"

struct rls_interpreters;

/* names: where they go, copied; NULL where none will be asked for. It observes the targets, borrowed: of other
 * processes nothing is known. 0 or -errno. */
int rls_interpreters_new(struct rls_kernel *kernel, const struct rls_event_sink *names,
			 struct rls_targets *targets, struct rls_interpreters **out);
void rls_interpreters_free(struct rls_interpreters *interpreters);

/* It begins to be recorded, or may have become Python. 0 or -ENOMEM. */
int rls_interpreters_check(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns);
/* It executes another program: an interpreter that was met before, or is expected, is taken for granted until the process's
 * own is found. 0 or -ENOMEM. */
int rls_interpreters_execed(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns);
/* It has mapped something executable: the next check is soon enough. */
void rls_interpreters_mapped(struct rls_interpreters *interpreters, pid_t pid);
/* Called often: looks at those again whose interpreter is about to start. 0 or -ENOMEM. */
int rls_interpreters_tick(struct rls_interpreters *interpreters, uint64_t time_ns);
/* Whether the process runs Python whose stacks can be walked, or is taken to. */
bool rls_interpreters_knows(const struct rls_interpreters *interpreters, pid_t pid);
/* A file that may be executed soon. */
void rls_interpreters_expect(struct rls_interpreters *interpreters, const char *path);
/* Who is called as soon as the stacks of a process can be walked; one at most. */
void rls_interpreters_on_found(struct rls_interpreters *interpreters,
			       void (*found)(void *context, pid_t pid), void *context);
/* A sample of it could not be walked for want of an interpreter: looks again. 0 or -ENOMEM. */
int rls_interpreters_miss(struct rls_interpreters *interpreters, pid_t pid, uint64_t time_ns);
/* How many of those were of processes whose interpreter was found later. */
uint64_t rls_interpreters_missed(const struct rls_interpreters *interpreters);
/* And of processes whose interpreter nobody knows how to walk: a build or a version of its own. */
uint64_t rls_interpreters_refused(const struct rls_interpreters *interpreters);

/* The frames of a thread that waits, read from its process's memory now: of stack, its header and thread_pointer are
 * given; frames and end are filled in. Whether it ran meanwhile is for the caller to find out. */
void rls_interpreters_walk(const struct rls_interpreters *interpreters,
			   struct rls_wire_stack *stack);

/* What a frame of the process is called. 0; 1: it is none of the program's, the interpreter
 * made it for its own use; -ENOENT: its code object could not be read; -ENOMEM
 * or the sink's -errno. */
int rls_interpreters_name(struct rls_interpreters *interpreters, pid_t pid,
			  const struct rls_wire_frame *frame, struct rls_frame *out);

#endif
