#include "userspace/discover/discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/discover/inspection.h"
#include "userspace/process/seen_files.h"
#include "userspace/python/python_frames.h"

/* Makes the inspected libraries part of the image. */
static int keep_libraries(struct rls_inspection *inspection)
{
	struct rls_process_image *image = inspection->image;
	struct rls_library **larger = reallocarray(
		image->libraries, image->library_count + inspection->count + 1, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	image->libraries = larger;
	for (size_t i = 0; i < inspection->count; i++) {
		struct rls_library *library = inspection->open[i].library;
		struct rls_function_set *functions = &inspection->harvest[i].functions;
		int error;

		if (functions->full)
			rls_image_warn(
				image,
				"%s has too many functions: the first %zu of them are probed, "
				"the rest are not",
				library->path, functions->finds.count);
		error = rls_function_set_finish(functions, &library->functions,
						&library->function_count);
		if (error)
			return error;
		image->libraries[image->library_count++] = rls_take(inspection->open[i].library);
	}
	return 0;
}

static int inspect_new(struct rls_inspection *inspection, enum rls_live_scan_extent extent)
{
	int error = rls_inspection_add_libraries(inspection, RLS_INSPECT_NEW);

	if (error || !inspection->count)
		return error;
	error = rls_inspection_scan_files(inspection);
	if (error)
		return error;
	error = rls_inspection_add_eval_entry(inspection);
	if (error)
		return error;
	error = rls_inspection_scan_memory(inspection, extent);
	if (error)
		return error;
	return keep_libraries(inspection);
}

/* --- the interpreter --------------------------------------------------------------------- */

static int find_python(struct rls_inspection *inspection)
{
	struct rls_process_image *image = inspection->image;
	int error = rls_python_find(image->pid, &inspection->mappings, &image->python);

	if (error || !image->python.version[0])
		return error;
	free(image->python_path);
	image->python_path = strdup(image->python.mapping->path);
	if (!image->python_path)
		return -ENOMEM;
	if (image->python.free_threaded)
		rls_image_warn(image,
			       "Python %s is a free-threaded build: its methods are found by "
			       "their tables, its slots and getters are not",
			       image->python.version);
	else if (!image->python.layout_known)
		rls_image_warn(image,
			       "Python %s is not one of 3.8 to 3.14: its methods are found by "
			       "their tables, its slots and getters are not",
			       image->python.version);
	return 0;
}

/* 0: unknown. */
static uint64_t count_modules(const struct rls_process_image *image)
{
	const struct rls_frame_layout *layout = rls_frame_layout_of(&image->python);
	uint64_t count;

	return layout && !rls_frame_count_modules(image->pid, &image->python, layout, &count)
		       ? count
		       : 0;
}

/* --- what was not there before --------------------------------------------------------- */

static int by_vaddr(const void *a, const void *b)
{
	const struct rls_boundary_function *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

static struct rls_library *find_library(const struct rls_process_image *image,
					const struct rls_library *like)
{
	for (size_t i = 0; i < image->library_count; i++)
		if (image->libraries[i]->device == like->device &&
		    image->libraries[i]->inode == like->inode)
			return image->libraries[i];
	return NULL;
}

/* Drops from found what known has already. */
static void keep_unknown(struct rls_library *found, const struct rls_library *known)
{
	size_t kept = 0;

	for (size_t i = 0; i < found->function_count; i++) {
		struct rls_boundary_function *function = &found->functions[i];

		if (known->function_count &&
		    bsearch(function, known->functions, known->function_count, sizeof(*function),
			    by_vaddr))
			free(function->name);
		else
			found->functions[kept++] = *function;
	}
	found->function_count = kept;
}

/* Copies the additions into the library that the image has. */
static int extend(struct rls_library *known, const struct rls_library *additions)
{
	size_t total = known->function_count + additions->function_count;
	struct rls_boundary_function *larger =
		reallocarray(known->functions, total, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	known->functions = larger;
	for (size_t i = 0; i < additions->function_count; i++) {
		struct rls_boundary_function copy = additions->functions[i];

		copy.name = strdup(copy.name);
		if (!copy.name)
			return -ENOMEM;
		larger[known->function_count++] = copy;
	}
	qsort(larger, known->function_count, sizeof(*larger), by_vaddr);
	return 0;
}

static int add_additions(struct rls_process_image *image, struct rls_inspection *inspection,
			 struct rls_process_image *added)
{
	for (size_t i = 0; i < inspection->count; i++) {
		struct rls_library *found = inspection->open[i].library;
		struct rls_library *known = find_library(image, found);
		int error;

		error = rls_function_set_finish(&inspection->harvest[i].functions,
						&found->functions, &found->function_count);
		if (error)
			return error;
		if (!known)
			continue;
		keep_unknown(found, known);
		if (!found->function_count)
			continue;
		error = extend(known, found);
		if (error)
			return error;
		added->libraries[added->library_count++] = rls_take(inspection->open[i].library);
	}
	return 0;
}

/* --- public -------------------------------------------------------------------------------- */

static struct rls_process_image *new_image(pid_t pid)
{
	struct rls_process_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->pid = pid;
	image->seen = rls_seen_files_new();
	if (!image->seen) {
		free(image);
		return NULL;
	}
	return image;
}

static int inspect_process(struct rls_process_image *image, const struct rls_roles *roles)
{
	struct rls_inspection inspection;
	int error = rls_inspection_begin(&inspection, image, roles);

	if (error)
		return error;
	error = find_python(&inspection);
	image->modules = count_modules(image);
	if (!error)
		error = inspect_new(&inspection, RLS_LIVE_SCAN_ALL);
	image->python.mapping = NULL;
	rls_inspection_release(&inspection);
	return error;
}

int rls_discover_process(pid_t pid, const struct rls_roles *roles, struct rls_process_image **out)
{
	struct rls_process_image *image = new_image(pid);
	int error;

	if (!image)
		return -ENOMEM;
	error = inspect_process(image, roles);
	if (error) {
		rls_process_image_free(image);
		return error;
	}
	*out = image;
	return 0;
}

static int inspect_mapping(struct rls_process_image *image, const struct rls_roles *roles,
			   const struct rls_mapping *mapping)
{
	struct rls_inspection inspection;
	int error = rls_inspection_begin_mapping(&inspection, image, roles, mapping);

	if (error)
		return error;
	error = rls_inspection_add_libraries(&inspection, RLS_INSPECT_NEW);
	if (!error)
		error = rls_inspection_scan_files(&inspection);
	if (!error)
		error = keep_libraries(&inspection);
	rls_inspection_release(&inspection);
	return error;
}

int rls_discover_mapping(pid_t pid, const struct rls_mapping *mapping,
			 const struct rls_python *python, const struct rls_roles *roles,
			 struct rls_process_image **out)
{
	struct rls_process_image *image = new_image(pid);
	int error;

	if (!image)
		return -ENOMEM;
	if (python) {
		image->python = *python;
		image->python.mapping = NULL;
		image->python.module_def_type = 0; /* it is elsewhere in each process */
	}
	error = inspect_mapping(image, roles, mapping);
	if (error) {
		rls_process_image_free(image);
		return error;
	}
	*out = image;
	return 0;
}

int rls_discover_new_libraries(struct rls_process_image *image, const struct rls_roles *roles,
			       size_t *first_new)
{
	size_t before = image->library_count;
	struct rls_inspection inspection;
	int error = rls_inspection_begin(&inspection, image, roles);

	if (error)
		return error;
	/* `run` watches a process from before its interpreter was mapped. */
	if (!image->python.version[0])
		error = find_python(&inspection);
	if (!error)
		error = inspect_new(&inspection, RLS_LIVE_SCAN_TARGETS);
	image->python.mapping = NULL;
	rls_inspection_release(&inspection);
	if (!error)
		*first_new = before;
	return error;
}

static int inspect_again(struct rls_process_image *image, const struct rls_roles *roles,
			 struct rls_process_image *added)
{
	struct rls_inspection inspection;
	int error = rls_inspection_begin(&inspection, image, roles);

	if (error)
		return error;
	error = rls_inspection_add_libraries(&inspection, RLS_INSPECT_ALL);
	if (!error)
		error = rls_inspection_add_eval_entry(&inspection);
	if (!error)
		error = rls_inspection_scan_memory(&inspection, RLS_LIVE_SCAN_ALL);
	added->libraries = calloc(inspection.count + 1, sizeof(*added->libraries));
	if (!error && !added->libraries)
		error = -ENOMEM;
	if (!error)
		error = add_additions(image, &inspection, added);
	rls_inspection_release(&inspection);
	return error;
}

int rls_discover_again(struct rls_process_image *image, const struct rls_roles *roles,
		       struct rls_process_image **added)
{
	struct rls_process_image *additions = new_image(image->pid);
	int error;

	if (!additions)
		return -ENOMEM;
	additions->python = image->python;
	image->modules = count_modules(image);
	error = inspect_again(image, roles, additions);
	if (error) {
		rls_process_image_free(additions);
		return error;
	}
	*added = additions;
	return 0;
}

bool rls_discover_imported(const struct rls_process_image *image)
{
	return !image->modules || image->modules != count_modules(image);
}

int rls_discover_explain(pid_t pid, int error)
{
	switch (error) {
	case -ESRCH:
	case -ENOENT:
		return rls_error_r(error, "there is no process with pid %d", pid);
	case -EPERM:
	case -EACCES:
		if (geteuid() != 0)
			return rls_error_r(error,
					   "not allowed to read process %d: run as root "
					   "(sudo)",
					   pid);
		return rls_error_r(error,
				   "not allowed to read process %d, even as root: CAP_SYS_PTRACE "
				   "is missing, or a user namespace or security module protects it",
				   pid);
	default:
		return rls_error_r(error, "cannot read process %d: %s", pid, rls_reason(error));
	}
}
