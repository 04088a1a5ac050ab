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
	RLS_LEAF_OTHER, /* nobody's: libc, NumPy, generated code, ... */
	RLS_LEAF_INTERPRETER, /* the interpreter's C functions: extension modules call them too */
	RLS_LEAF_EVALUATION, /* the interpreter's loop over bytecode: Python itself */
	RLS_LEAF_SIMULATOR,
	RLS_LEAF_BACKEND,
	RLS_LEAF_CUDA_API,
	RLS_LEAF_NATIVE,
	RLS_LEAF_KERNEL,
	RLS_LEAF_PROBE,
	RLS_LEAF_MAX,
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

/* The category a thread with such a leaf must be in; false for leaves found in any. */
bool rls_code_kind_has_category(enum rls_code_kind leaf, enum rls_category *out);

#endif
