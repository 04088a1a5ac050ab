/* Pythons: the interpreters of sampled processes, and the names of their code objects.
 *
 * A process is looked at when a sample of it comes without a walk (RLS_STACK_NO_INTERPRETER),
 * at most every so often; the kernel side is told how to walk from then on. A code object is
 * read when it is first met, while it most likely still exists, and kept: its address and its
 * first line tell it from one that takes its place.
 */
#ifndef RLS_PYTHONS_H
#define RLS_PYTHONS_H

#include <stdint.h>
#include <sys/types.h>

#include "bpf/stack_wire.h"
#include "userspace/attach/kernel.h"
#include "userspace/record/emit.h"
#include "userspace/record/frame_tree.h"

struct rls_pythons;

int rls_pythons_new(struct rls_kernel *kernel, const struct rls_event_sink *sink,
		    struct rls_pythons **out);
void rls_pythons_free(struct rls_pythons *pythons);

/* A sample of it could not be walked for want of an interpreter. 0 or -ENOMEM. */
int rls_pythons_look(struct rls_pythons *pythons, pid_t pid, uint64_t time_ns);
/* It has ended or runs another program. */
void rls_pythons_forget(struct rls_pythons *pythons, pid_t pid);

/* What a frame of the process is called. 0; -ENOENT: its code object could not be read; -ENOMEM
 * or the sink's -errno. */
int rls_pythons_name(struct rls_pythons *pythons, pid_t pid, const struct rls_wire_frame *frame,
		     struct rls_frame *out);

#endif
