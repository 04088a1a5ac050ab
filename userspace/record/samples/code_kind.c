#include "userspace/record/samples/code_kind.h"

#include <string.h>

#include "analysis/base/search.h"

/* The kernel's own pages in a probed process: out-of-line copies and the return trampoline,
 * and (kernel >= 6.18) the entry that optimised probes call. */
static bool is_uprobe_page(const struct rls_mapping *mapping)
{
	return !strcmp(mapping->path, "[uprobes]") ||
	       !strcmp(mapping->path, "[uprobes-trampoline]");
}

static bool is_site(const struct rls_code_file *file, uint64_t offset)
{
	size_t low = rls_first_not(file->site_count, i, file->sites[i] < offset);

	return low < file->site_count && file->sites[low] == offset;
}

static bool is_probe(const struct rls_mapping *mapping, const struct rls_code_file *file,
		     uint64_t address, bool in_kernel)
{
	uint64_t offset = address - mapping->start + mapping->file_offset;

	if (is_uprobe_page(mapping))
		return true;
	/* The trap leaves user mode behind the breakpoint's one byte. */
	return file && (is_site(file, offset) || (in_kernel && is_site(file, offset - 1)));
}

enum rls_code_kind rls_code_kind_of(const struct rls_mapping *mapping,
				    const struct rls_code_file *file, uint64_t address,
				    bool in_kernel)
{
	uint64_t offset;

	if (mapping && is_probe(mapping, file, address, in_kernel))
		return RLS_CODE_PROBE;
	if (in_kernel)
		return RLS_CODE_KERNEL;
	if (!mapping || !file)
		return RLS_CODE_OTHER;
	offset = address - mapping->start + mapping->file_offset;
	switch (file->role) {
	case RLS_ROLE_PYTHON:
		return rls_evaluation_holds(&file->evaluation, offset) ? RLS_CODE_EVALUATION
								       : RLS_CODE_INTERPRETER;
	case RLS_ROLE_SIMULATOR:
		return RLS_CODE_SIMULATOR;
	case RLS_ROLE_BACKEND:
		return RLS_CODE_BACKEND;
	case RLS_ROLE_CUDA:
		return RLS_CODE_CUDA_API;
	case RLS_ROLE_NATIVE:
		return RLS_CODE_NATIVE;
	default:
		return RLS_CODE_OTHER;
	}
}

bool rls_code_kind_has_category(enum rls_code_kind kind, enum rls_category *out)
{
	static const enum rls_category categories[RLS_CODE_MAX] = {
		[RLS_CODE_SIMULATOR] = RLS_CATEGORY_SIMULATOR,
		[RLS_CODE_BACKEND] = RLS_CATEGORY_BACKEND,
		[RLS_CODE_CUDA_API] = RLS_CATEGORY_CUDA_API,
		[RLS_CODE_NATIVE] = RLS_CATEGORY_NATIVE,
	};

	if (!categories[kind])
		return false;
	*out = categories[kind];
	return true;
}
