#include "userspace/record/probes/stack_switching.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/record/targets/process_info.h"

bool rls_stack_switching_name(const char *path)
{
	/* gevent, eventlet and Playwright stand on greenlet; fibers and C++ coroutines with stacks
	 * of their own on Boost.Context, where it is a library of its own. */
	static const char *const globs[] = {
		"_greenlet*.so",           "greenlet*.so",       "_tealet*.so",
		"libtealet*.so*",          "_stackless*.so",     "libboost_context*.so*",
		"libboost_coroutine*.so*", "libboost_fiber*.so*"};
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		if (!fnmatch(globs[i], slash ? slash + 1 : path, 0))
			return true;
	}
	return false;
}

static bool is_code(const struct rls_mapping *mapping)
{
	return mapping->executable && rls_mapping_is_file(mapping);
}

bool rls_stack_switching_among(const struct rls_mappings *mappings)
{
	for (size_t i = 0; i < mappings->count; i++) {
		if (is_code(&mappings->entries[i]) &&
		    rls_stack_switching_name(mappings->entries[i].path))
			return true;
	}
	return false;
}

static int take_file(struct rls_files *files, pid_t pid, const struct rls_mapping *mapping,
		     bool *more)
{
	_cleanup_free_ char *path = NULL;
	struct rls_file *file;
	int r = rls_files_locate(files, pid, mapping, &path, &file);

	if (r)
		return r == -ENOMEM ? r : 0; /* who cannot open it has no probes there either */
	*more |= !file->switches_stacks;
	file->switches_stacks = true;
	return 0;
}

int rls_stack_switching_take(struct rls_files *files, pid_t pid,
			     const struct rls_mappings *mappings, bool *more)
{
	int r = 0;

	*more = false;
	if (!rls_stack_switching_among(mappings))
		return 0;
	for (size_t i = 0; !r && i < mappings->count; i++) {
		if (is_code(&mappings->entries[i]))
			r = take_file(files, pid, &mappings->entries[i], more);
	}
	return r;
}

struct taking {
	struct rls_files *files;
	bool more;
};

static int take_process(pid_t pid, void *context)
{
	struct taking *taking = context;
	struct rls_mappings mappings;
	bool more;
	int r;

	if (rls_mappings_read(pid, &mappings))
		return 0; /* it has ended, or is not ours to look at */
	r = rls_stack_switching_take(taking->files, pid, &mappings, &more);
	rls_mappings_release(&mappings);
	taking->more |= more;
	return r;
}

int rls_stack_switching_take_all(struct rls_files *files, bool *more)
{
	struct taking taking = {.files = files};
	int r = rls_each_process(take_process, &taking);

	*more = taking.more;
	return r;
}
