/* Inferred category: what a thread is in, from the code that it executes and the top of its stack.
 *
 *     address in a library with a role ─▶ that category
 *     in the interpreter's loop        ─▶ python
 *     anywhere else (libc, the kernel, the interpreter's C functions, generated code)
 *                                      ─▶ the nearest caller in one of the above; but
 *                                         native if a library without a role was passed
 *                                         on the way to Python, or if nothing was found
 *                                         and the thread has no Python frame
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
	RLS_HINT_ROLELESS, /* native, unless a library with a role calls it */
	RLS_HINT_CATEGORY,
	RLS_HINT_PROBE, /* the profiler's own */
};
enum rls_hint rls_hint_of(enum rls_code_kind kind, enum rls_category *category);

struct rls_inferred {
	enum rls_category category;
	bool roleless; /* native for want of a role: a trace says what its caller is */
};

/* 0 and *out, unknown when nothing was found; -EAGAIN for the profiler's own time, which is
 * nobody's; -ENOMEM; -errno when the process is gone. */
int rls_infer_category(struct rls_code_map *map, const struct rls_wire_category_sample *sample,
		       struct rls_inferred *out);

#endif
