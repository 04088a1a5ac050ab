/* Code kind: which file or other code a sampled instruction belongs to. Pure.
 *
 * Two kinds say nothing about the category: the kernel, and the cost of the probes themselves (the
 * probed instruction, its out-of-line copy, the kernel's pages for return probes, the trap).
 */
#ifndef RLS_CODE_KIND_H
#define RLS_CODE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/discover/roles/boundary.h"
#include "userspace/process/mappings.h"
#include "userspace/python/evaluation.h"

enum rls_code_kind {
	RLS_CODE_OTHER, /* nobody's: libc, NumPy, generated code, ... */
	RLS_CODE_INTERPRETER, /* the interpreter's C functions: extension modules call them too */
	RLS_CODE_EVALUATION, /* the interpreter's loop over bytecode: Python itself */
	RLS_CODE_SIMULATOR,
	RLS_CODE_BACKEND,
	RLS_CODE_CUDA_API,
	RLS_CODE_NATIVE,
	RLS_CODE_KERNEL,
	RLS_CODE_PROBE,
	RLS_CODE_MAX,
};

/* What must be known of a file with a role. */
struct rls_code_file {
	enum rls_role role;
	const uint64_t *sites; /* file offsets of its probes, ascending */
	size_t site_count;
	struct rls_evaluation evaluation; /* of file offsets, not addresses; empty when unknown */
};

/* mapping: the one that holds address, or NULL; file: what it maps, NULL when that has no
 * role. in_kernel: the thread was sampled in the kernel, which it entered at address. */
enum rls_code_kind rls_code_kind_of(const struct rls_mapping *mapping,
				    const struct rls_code_file *file, uint64_t address,
				    bool in_kernel);

/* The category a thread that executes such code must be in; false where any can. */
bool rls_code_kind_has_category(enum rls_code_kind kind, enum rls_category *out);

#endif
