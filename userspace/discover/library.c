#include "userspace/discover/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/discover/callbacks/callbacks.h"

struct rls_library *rls_library_new(const char *path, const char *host_path)
{
	struct rls_library *library = calloc(1, sizeof(*library));

	if (!library)
		return NULL;
	library->path = strdup(path);
	library->host_path = strdup(host_path);
	if (!library->path || !library->host_path) {
		rls_library_free(library);
		return NULL;
	}
	return library;
}

void rls_library_free(struct rls_library *library)
{
	if (!library)
		return;
	for (size_t i = 0; i < library->function_count; i++)
		free(library->functions[i].name);
	free(library->functions);
	free(library->path);
	free(library->host_path);
	free(library);
}

/* Without section headers the absence of an exception table cannot be known. A needed C++ runtime proves nothing:
 * CUDA 13.1's libcudart is C, and is linked with one that it does not use. */
bool rls_library_may_throw(const struct rls_elf *elf)
{
	static const char *const throwers[] = {"_Z", "__cxa_throw", "__cxa_rethrow", "_Unwind_"};

	return !rls_elf_has_section(elf, ".text") ||
	       rls_elf_has_section(elf, ".gcc_except_table") ||
	       rls_elf_imports_prefix(elf, throwers, sizeof(throwers) / sizeof(*throwers));
}

static bool is_of_interest(const struct rls_role_match *match)
{
	return rls_role_match_takes_callbacks(match) || rls_role_match_takes_exports(match);
}

static bool may_switch_stacks(const struct rls_elf *elf)
{
	static const char *const names[] = {"swapcontext", "setcontext", "makecontext",
					    "jump_fcontext", "ontop_fcontext"};

	return rls_elf_imports_any(elf, names, sizeof(names) / sizeof(*names));
}

static int open_file(struct rls_open_library *open, const struct rls_mapping *mapping)
{
	uint64_t vaddr;
	int error = rls_elf_open(open->library->host_path, &open->elf);

	if (error)
		return error;
	error = rls_elf_vaddr_of_offset(open->elf, mapping->file_offset, &vaddr);
	if (error)
		return -ENOEXEC;
	open->library->load_bias = mapping->start - vaddr;
	open->library->may_throw = rls_library_may_throw(open->elf);
	open->library->may_switch_stacks = may_switch_stacks(open->elf);
	return 0;
}

int rls_open_library_init(pid_t pid, const struct rls_mapping *mapping,
			  const struct rls_role_match *match, struct rls_open_library *out)
{
	_cleanup_free_ char *host_path = NULL;
	struct rls_open_library open = {.match = *match};
	dev_t device;
	ino_t inode;
	int error = rls_mapping_locate(pid, mapping, &host_path, &device, &inode);

	if (error)
		return error;
	open.library = rls_library_new(mapping->path, host_path);
	if (!open.library)
		return -ENOMEM;
	open.library->device = device;
	open.library->inode = inode;
	open.library->role = match->role;
	if (is_of_interest(match) || match->role == RLS_ROLE_PYTHON)
		error = open_file(&open, mapping);
	if (error) {
		rls_open_library_release(&open);
		return error;
	}
	*out = open;
	return 0;
}

void rls_open_library_release(struct rls_open_library *open)
{
	rls_library_free(open->library);
	rls_elf_close(open->elf);
	*open = (struct rls_open_library){0};
}

bool rls_open_library_target(const struct rls_open_library *open, struct rls_scan_target *out)
{
	struct rls_scan_target target = {.begin = UINT64_MAX, .code_begin = UINT64_MAX};
	const struct rls_elf_segment *segments;
	size_t count;

	if (!open->elf || !rls_role_match_takes_methods(&open->match))
		return false;
	count = rls_elf_segments(open->elf, &segments);
	for (size_t i = 0; i < count; i++) {
		uint64_t begin = segments[i].vaddr + open->library->load_bias;
		uint64_t end = begin + segments[i].memory_bytes;

		if (begin < target.begin)
			target.begin = begin;
		if (end > target.end)
			target.end = end;
		if (segments[i].executable && begin < target.code_begin)
			target.code_begin = begin;
		if (segments[i].executable && end > target.code_end)
			target.code_end = end;
	}
	if (target.code_begin >= target.code_end || target.begin >= target.end)
		return false;
	*out = target;
	return true;
}

struct export_search {
	const struct rls_open_library *open;
	struct rls_function_set *functions;
};

static int add_export(const struct rls_elf_symbol *symbol, void *context)
{
	struct export_search *search = context;
	struct rls_find find = {
		.vaddr = symbol->vaddr,
		.size_bytes = symbol->size_bytes,
		.name = (char *)symbol->name,
		.rank = RLS_NAME_SYMBOL,
		.sources = RLS_SOURCE_SYMBOL,
		.kind = RLS_BOUNDARY_EXPORTED,
	};

	if (!symbol->exported || !symbol->function || symbol->indirect ||
	    !rls_elf_is_executable(search->open->elf, symbol->vaddr) ||
	    !rls_role_match_wants_export(&search->open->match, symbol->name))
		return 0;
	return rls_function_set_add(search->functions, &find);
}

int rls_open_library_add_exports(const struct rls_open_library *open,
				 struct rls_function_set *functions)
{
	struct export_search search = {.open = open, .functions = functions};

	if (!open->elf || !rls_role_match_takes_exports(&open->match))
		return 0;
	return rls_elf_each_symbol(open->elf, add_export, &search);
}

int rls_open_library_add_callbacks(const struct rls_open_library *open,
				   struct rls_function_set *functions)
{
	struct rls_boundary_function *callbacks;
	size_t count;
	int error;

	if (!open->elf || !rls_role_match_takes_callbacks(&open->match))
		return 0;
	error = rls_find_callbacks(open->elf, &callbacks, &count);
	if (error)
		return error;
	for (size_t i = 0; !error && i < count; i++)
		error = rls_function_set_add(functions,
					     &(struct rls_find){
						     .vaddr = callbacks[i].vaddr,
						     .size_bytes = callbacks[i].size_bytes,
						     .name = callbacks[i].name,
						     .rank = RLS_NAME_SYMBOL,
						     .sources = RLS_SOURCE_CALLBACK,
						     .kind = callbacks[i].kind,
					     });
	rls_callbacks_free(callbacks, count);
	return error;
}
