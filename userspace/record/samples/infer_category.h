/* Guess: what a thread is in, from what it executes and what is on top of its stack.
 *
 *     address in a library with a role ─▶ that category
 *     in the interpreter's loop        ─▶ python
 *     anywhere else (libc, the kernel, the interpreter's C functions, generated code)
 *                                      ─▶ the nearest caller in one of the above; else
 *                                         python if the interpreter or one of Python's
 *                                         extension modules is among it
 *
 * Callers are found from frame to frame, while .eh_frame tells how far the return address lies
 * above the stack pointer; from where it does not, the words of the stack are searched for what
 * points into code, of which some are left over from earlier calls. What a library without a
 * probe on its way in executes is another's time by definition; so a guess is only held to be
 * as good as it turns out to be where tracing tells the truth beside it (analysis/estimate/untraced_time.h).
 */
#ifndef RLS_INFER_CATEGORY_H
#define RLS_INFER_CATEGORY_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/event/category.h"
#include "bpf/wire/record.h"
#include "userspace/record/samples/code_map.h"

/* A step of the search: what an address tells. Pure. */
enum rls_hint {
	RLS_HINT_NOTHING,
	RLS_HINT_INTERPRETER, /* Python, unless something nearer says otherwise */
	RLS_HINT_CATEGORY,
	RLS_HINT_PROBE, /* the profiler's own */
};
enum rls_hint rls_hint_of(enum rls_code_kind leaf, enum rls_category *category);

/* 0 and *out, unknown when nothing was found; -EAGAIN for the profiler's own time, which is
 * nobody's; -ENOMEM; -errno when the process is gone. */
int rls_infer_category(struct rls_code_map *map, const struct rls_wire_category_sample *look,
		       enum rls_category *out);

#endif
