/* Categories: what a thread's CPU time is spent in.
 *
 * The numbers are part of the trace file and of the kernel wire format
 * (bpf/wire/ asserts that they agree): append only, never renumber.
 */
#ifndef RLS_CATEGORY_H
#define RLS_CATEGORY_H

#include <stdbool.h>

enum rls_category {
	RLS_CATEGORY_UNKNOWN = 0, /* before the first event, or after a loss */
	RLS_CATEGORY_PYTHON = 1, /* the interpreter, and what it calls without a probe */
	RLS_CATEGORY_SIMULATOR = 2,
	RLS_CATEGORY_BACKEND = 3, /* the ML framework */
	RLS_CATEGORY_CUDA_API = 4,
	RLS_CATEGORY_NATIVE = 5, /* a library without a role: probed, or found by samples */
	RLS_CATEGORY_MAX = 6,
};

/* The word used in the command line, JSON and metrics ("python", ...).
 * Static storage; "unknown" for a number out of range. */
const char *rls_category_name(enum rls_category category);

/* 0, or -EINVAL for a word that names no category (*out untouched). */
int rls_category_parse(const char *name, enum rls_category *out);

#endif
