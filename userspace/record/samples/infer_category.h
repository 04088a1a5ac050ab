/* Inferred category: what a thread is in, from the code that it executes and the top of its stack.
 *
 *     address in a library with a role ─▶ that category
 *     in the interpreter's loop        ─▶ python
 *     anywhere else (libc, the kernel, the interpreter's C functions, generated code)
 *                                      ─▶ the nearest caller in one of the above; else
 *                                         python if the interpreter or one of Python's
 *                                         extension modules is among the callers
 *
 * Callers are found frame by frame, as long as .eh_frame gives the distance of the return address
 * from the stack pointer. Beyond that, the words of the stack are searched for addresses of code;
 * some of them are left over from earlier calls. Code in a library that was entered without a
 * probe belongs to another category by definition. So an inferred category is trusted only as far
 * as it agrees with tracing, where both are known (analysis/estimate/untraced_time.h).
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
enum rls_hint rls_hint_of(enum rls_code_kind kind, enum rls_category *category);

/* 0 and *out, unknown when nothing was found; -EAGAIN for the profiler's own time, which is
 * nobody's; -ENOMEM; -errno when the process is gone. */
int rls_infer_category(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		       enum rls_category *out);

#endif
