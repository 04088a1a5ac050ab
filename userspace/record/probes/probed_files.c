#include "userspace/record/probes/probed_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/clock.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/elf/elf.h"
#include "userspace/record/probes/modified_files.h"

#define WRITTEN_AT_ONCE 64

void rls_probed_files_open(struct rls_probed_files *files)
{
	files->written_fd = rls_modified_files_open();
}

void rls_probed_files_clear(struct rls_probed_files *files)
{
	if (files->written_fd >= 0)
		close(files->written_fd);
	files->written_fd = -1;
	for (size_t i = 0; i < files->count; i++) {
		free(files->files[i]->offsets);
		free(files->files[i]->functions);
		free(files->files[i]->batches);
		free(files->files[i]->path);
		free(files->files[i]);
	}
	free(files->files);
	files->files = NULL;
	files->count = files->room = 0;
}

static int new_file(struct rls_probed_files *files, const struct rls_library *library,
		    struct rls_file *identity, struct rls_probed_file **out)
{
	struct rls_probed_file *file;

	if (rls_grow(&files->files, &files->room, files->count))
		return -ENOMEM;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	file->path = strdup(library->path);
	if (!file->path) {
		free(file);
		return -ENOMEM;
	}
	file->identity = identity;
	file->role = library->role;
	file->watch = rls_modified_files_watch(files->written_fd,
					       library->host_path); /* before it is read */
	file->spared = identity->switches_stacks;
	identity->probed = file;
	files->files[files->count++] = file;
	*out = file;
	return 0;
}

static int compare_offsets(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static bool contains(const uint64_t *sorted, size_t count, uint64_t value)
{
	return count && bsearch(&value, sorted, count, sizeof(value), compare_offsets);
}

static int probed_files_merge(uint64_t **sorted, size_t *count, const uint64_t *values,
			      size_t value_count)
{
	uint64_t *grown;

	if (!value_count)
		return 0;
	grown = reallocarray(*sorted, *count + value_count, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memcpy(grown + *count, values, value_count * sizeof(*values));
	*sorted = grown;
	*count += value_count;
	qsort(grown, *count, sizeof(*grown), compare_offsets);
	return 0;
}

/* The plan's sites that are not probed yet, moved to its front: their number. */
static size_t keep_new_sites(const struct rls_probed_file *file, struct rls_plan *plan)
{
	size_t kept = 0;

	for (size_t i = 0; i < plan->count; i++) {
		if (!contains(file->offsets, file->offset_count, plan->sites[i].file_offset))
			plan->sites[kept++] = plan->sites[i];
	}
	return kept;
}

static int remember_sites(struct rls_probed_file *file, const struct rls_site *sites, size_t count)
{
	_cleanup_free_ uint64_t *offsets = calloc(count, sizeof(*offsets));

	if (!offsets)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		offsets[i] = sites[i].file_offset;
	return probed_files_merge(&file->offsets, &file->offset_count, offsets, count);
}

/* Calls into Python are planned again with every batch: where they are limits the sites of
 * functions, and they come out at the same place each time. */
static bool is_callback(const struct rls_boundary_function *function)
{
	return function->kind == RLS_BOUNDARY_CALLBACK_CALL ||
	       function->kind == RLS_BOUNDARY_CALLBACK_JUMP;
}

/* *out: the library with the functions alone that are new to the file, which are borrowed;
 * its array is the caller's to free. */
static int take_new_functions(struct rls_probed_file *file, const struct rls_library *library,
			      struct rls_library *out)
{
	_cleanup_free_ struct rls_boundary_function *functions =
		calloc(library->function_count, sizeof(*functions));
	_cleanup_free_ uint64_t *fresh = calloc(library->function_count, sizeof(*fresh));
	size_t count = 0, fresh_count = 0;
	int r;

	if (!functions || !fresh)
		return -ENOMEM;
	for (size_t i = 0; i < library->function_count; i++) {
		const struct rls_boundary_function *function = &library->functions[i];
		bool known = contains(file->functions, file->function_count, function->vaddr);

		if (known && !is_callback(function))
			continue;
		functions[count++] = *function;
		if (!known)
			fresh[fresh_count++] = function->vaddr;
	}
	r = probed_files_merge(&file->functions, &file->function_count, fresh, fresh_count);
	if (r)
		return r;
	*out = *library;
	out->functions = rls_take(functions);
	out->function_count = fresh_count ? count : 0;
	out->may_switch_stacks |= file->spared;
	return 0;
}

/* Before the first hit: whoever sees it must know the name. */
static int name_sites(struct rls_probed_files *files, const struct rls_plan *plan, size_t count)
{
	int r = 0;

	for (size_t i = 0; !r && files->cuda_entry && i < count; i++) {
		const struct rls_site *site = &plan->sites[i];

		if (site->category == RLS_CATEGORY_CUDA_API && site->kind == RLS_SITE_ENTER)
			r = files->cuda_entry(files->cuda_entry_context,
					      files->next_site + (uint32_t)i, site->name);
	}
	return r;
}

/* Its process had ended before its probes were live: the next that maps it gets them. */
static void forget_sites(struct rls_probed_file *file, const struct rls_plan *plan, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < file->offset_count; i++) {
		bool lost = false;

		for (size_t k = 0; !lost && k < count; k++)
			lost = plan->sites[k].file_offset == file->offsets[i];
		if (!lost)
			file->offsets[kept++] = file->offsets[i];
	}
	file->offset_count = kept;
	file->function_count = 0;
	file->batch_count--;
}

static int attach_plan(struct rls_probed_files *files, struct rls_probed_file *file,
		       const char *host_path, struct rls_plan *plan)
{
	size_t count = keep_new_sites(file, plan), attached = 0;
	int r;

	if (!count)
		return 0;
	if (files->sites_max && files->next_site + count > files->sites_max)
		return rls_error_r(-ENOSPC,
				   "%s is not probed: with its %zu probes there would be more than "
				   "the %" PRIu32 " that a budget can count",
				   file->path, count, files->sites_max);
	r = remember_sites(file, plan->sites, count);
	if (!r)
		r = rls_grow(&file->batches, &file->batch_room, file->batch_count);
	if (r)
		return r;
	file->batches[file->batch_count++] = files->next_site;
	r = name_sites(files, plan, count);
	if (r)
		return r;
	r = rls_kernel_attach_sites(files->kernel, host_path, plan->sites, count, files->next_site,
				    &attached);
	if (r && rls_reason_is_end(r))
		forget_sites(file, plan, count);
	files->next_site += (uint32_t)count;
	if (attached && !file->live_ns)
		file->live_ns = rls_monotonic_ns();
	file->sites += attached;
	files->sites += attached;
	return r;
}

static int plan_in_spare_time(const struct rls_library *library, struct rls_elf *elf,
			      struct rls_plan *out)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);

	return rls_plan_library(library, elf, out);
}

static int plan_new_functions(const struct rls_library *library, struct rls_plan *out)
{
	struct rls_elf *elf;
	int r = rls_elf_open(library->host_path, &elf);

	if (r)
		return rls_error_r(r, "cannot read %s: %s", library->path, rls_reason(r));
	r = plan_in_spare_time(library, elf, out);
	rls_elf_close(elf);
	for (int skip = 0; !r && skip < RLS_PLAN_SKIP_MAX; skip++) {
		if (out->skipped[skip])
			rls_debug("%s: %zu functions %s", library->path, out->skipped[skip],
				  rls_plan_skip_text(skip));
	}
	return r;
}

/* Hard links, or two mounts of one folder: probes belong to the file, whatever its name. */
static void warn_of_roles(struct rls_probed_file *file, const struct rls_library *library)
{
	if (file->role == library->role || file->has_two_roles)
		return;
	file->has_two_roles = true;
	rls_warning("%s has the role %s and %s the role %s, but they are one file: its calls count "
		    "as %s",
		    file->path, rls_role_name(file->role), library->path,
		    rls_role_name(library->role), rls_role_name(file->role));
}

int rls_probed_files_plan(struct rls_probed_files *files, const struct rls_library *library,
			  struct rls_probed_plan *out)
{
	struct rls_probed_plan planned = {.host_path = library->host_path};
	struct rls_library fresh = {0};
	struct rls_file *identity;
	int r = rls_files_get(files->table, library->device, library->inode, &identity);

	if (r)
		return r;
	planned.file = identity->probed;
	if (!planned.file)
		r = new_file(files, library, identity, &planned.file);
	if (!r)
		warn_of_roles(planned.file, library);
	if (!r && library->function_count && !planned.file->written)
		r = take_new_functions(planned.file, library, &fresh);
	if (!r && fresh.function_count) {
		r = plan_new_functions(&fresh, &planned.plan);
		if (r && rls_reason_is_end(r)) /* the next that maps it has all of them planned */
			planned.file->function_count = 0;
	}
	free(fresh.functions);
	if (r)
		return r;
	planned.spared = planned.file->spared;
	*out = planned;
	return 0;
}

int rls_probed_files_attach(struct rls_probed_files *files, struct rls_probed_plan *planned)
{
	int r = 0;

	/* Spared meanwhile, it has been planned and attached anew. */
	if (planned->spared == planned->file->spared && !planned->file->written)
		r = attach_plan(files, planned->file, planned->host_path, &planned->plan);
	rls_plan_clear(&planned->plan);
	return r;
}

int rls_probed_files_add(struct rls_probed_files *files, const struct rls_library *library)
{
	struct rls_probed_plan planned;
	int r = rls_probed_files_plan(files, library, &planned);

	return r ? r : rls_probed_files_attach(files, &planned);
}

static struct rls_probed_file *find_watched(const struct rls_probed_files *files, int watch)
{
	for (size_t i = 0; i < files->count; i++) {
		if (files->files[i]->watch == watch)
			return files->files[i];
	}
	return NULL;
}

static int let_be(struct rls_probed_files *files, struct rls_probed_file *file)
{
	int r = 0;

	for (size_t i = 0; !r && i < file->batch_count; i++)
		r = rls_kernel_detach_sites(files->kernel, file->batches[i]);
	rls_modified_files_unwatch(files->written_fd, file->watch);
	file->watch = -1;
	file->written = true;
	file->batch_count = 0;
	files->sites -= file->sites;
	file->sites = 0;
	return r;
}

int rls_probed_files_check(struct rls_probed_files *files,
			   int (*report)(void *context, const struct rls_probed_file *file),
			   void *context)
{
	int numbers[WRITTEN_AT_ONCE], r = 0;
	size_t count = rls_modified_files_read(files->written_fd, numbers, WRITTEN_AT_ONCE);

	for (size_t i = 0; !r && i < count; i++) {
		struct rls_probed_file *file = find_watched(files, numbers[i]);
		bool probed = file && file->sites;

		if (file)
			r = let_be(files, file);
		if (!r && probed)
			r = report(context, file);
	}
	return r;
}

int rls_probed_files_spare(struct rls_probed_files *files, struct rls_probed_file *file)
{
	int r = 0;

	for (size_t i = 0; !r && i < file->batch_count; i++)
		r = rls_kernel_detach_returns(files->kernel, file->batches[i]);
	file->spared = true;
	file->function_count = 0;
	return r;
}
