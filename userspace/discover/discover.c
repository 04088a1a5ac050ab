#include "userspace/discover/discover.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/cleanup.h"
#include "userspace/discover/library.h"
#include "userspace/discover/live_scan.h"
#include "userspace/discover/seen_files.h"
#include "userspace/log.h"

/* Small regions come first, so what a limit leaves out is tensors. */
#define SCAN_LIMIT_BYTES (1UL << 30)

/* One look at a process: the libraries it is about, open. */
struct look {
	struct rls_process_image *image;
	const struct rls_roles *roles;
	struct rls_mappings mappings;
	struct rls_open_library *open;      /* [count] */
	struct rls_harvest_library *harvest; /* [count], the same order */
	struct rls_scan_target *targets;
	size_t count, target_count;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static void
warn(struct rls_process_image *image, const char *format, ...)
{
	char **larger = reallocarray(image->warnings, image->warning_count + 1, sizeof(*larger));
	va_list arguments;

	if (!larger)
		return;
	image->warnings = larger;
	va_start(arguments, format);
	if (vasprintf(&image->warnings[image->warning_count], format, arguments) >= 0)
		image->warning_count++;
	va_end(arguments);
}

/* --- the libraries of a look ----------------------------------------------------------- */

static void release_look(struct look *look)
{
	for (size_t i = 0; i < look->count; i++) {
		rls_function_set_release(&look->harvest[i].functions);
		rls_open_library_release(&look->open[i]);
	}
	free(look->open);
	free(look->harvest);
	free(look->targets);
	rls_mappings_release(&look->mappings);
}

/* Room for one library per mapping is room enough. */
static int begin_look(struct look *look, struct rls_process_image *image,
		      const struct rls_roles *roles)
{
	int error;

	*look = (struct look){.image = image, .roles = roles};
	error = rls_mappings_read(image->pid, &look->mappings);
	if (error)
		return error;
	look->open = calloc(look->mappings.count + 1, sizeof(*look->open));
	look->harvest = calloc(look->mappings.count + 1, sizeof(*look->harvest));
	look->targets = calloc(look->mappings.count + 1, sizeof(*look->targets));
	if (look->open && look->harvest && look->targets)
		return 0;
	release_look(look);
	return -ENOMEM;
}

static bool match_role(const struct look *look, const struct rls_mapping *mapping,
		       struct rls_role_match *match)
{
	const struct rls_python *python = &look->image->python;

	/* Whatever it is called: a static python, a program that embeds one. */
	if (python->mapping && python->mapping->inode == mapping->inode &&
	    !strcmp(python->mapping->path, mapping->path)) {
		*match = (struct rls_role_match){.role = RLS_ROLE_PYTHON};
		return true;
	}
	return rls_roles_match(look->roles, mapping->path, match);
}

/* A library that cannot be opened is a warning: the others are still good. */
static int add_library(struct look *look, const struct rls_mapping *mapping,
		       const struct rls_role_match *match)
{
	struct rls_open_library *open = &look->open[look->count];
	struct rls_harvest_library *harvest = &look->harvest[look->count];
	int error = rls_open_library_init(look->image->pid, mapping, match, open);

	if (error == -ENOMEM)
		return error;
	if (error) {
		warn(look->image, "%s cannot be read (%s): it is not probed", mapping->path,
		     strerror(-error));
		return 0;
	}
	*harvest = (struct rls_harvest_library){.elf = open->elf,
						.load_bias = open->library->load_bias,
						.match = &open->match};
	if (rls_open_library_target(open, &look->targets[look->target_count]))
		look->targets[look->target_count++].library = look->count;
	look->count++;
	return 0;
}

/* Those mapped files that have a role and were not seen before. */
static int add_new_libraries(struct look *look)
{
	for (size_t i = 0; i < look->mappings.count; i++) {
		const struct rls_mapping *mapping = &look->mappings.entries[i];
		struct rls_role_match match;
		int error;

		if (!mapping->executable || !rls_mapping_is_file(mapping))
			continue;
		error = rls_seen_files_add(look->image->seen, mapping);
		if (error < 0)
			return error;
		if (!error || !match_role(look, mapping, &match))
			continue;
		error = add_library(look, mapping, &match);
		if (error)
			return error;
	}
	return 0;
}

static struct rls_library *find_library(const struct rls_process_image *image, dev_t device,
					ino_t inode)
{
	for (size_t i = 0; i < image->library_count; i++)
		if (image->libraries[i]->device == device && image->libraries[i]->inode == inode)
			return image->libraries[i];
	return NULL;
}

/* The image's libraries once more, where they are still mapped. */
static int add_known_libraries(struct look *look)
{
	const char *last = "";

	for (size_t i = 0; i < look->mappings.count; i++) {
		const struct rls_mapping *mapping = &look->mappings.entries[i];
		struct rls_role_match match;
		int error;

		if (!mapping->executable || !rls_mapping_is_file(mapping) ||
		    !strcmp(mapping->path, last) ||
		    !rls_roles_match(look->roles, mapping->path, &match) ||
		    !rls_role_match_takes_methods(&match))
			continue;
		last = mapping->path;
		error = add_library(look, mapping, &match);
		if (error)
			return error;
	}
	return 0;
}

/* --- functions ------------------------------------------------------------------------- */

static void set_up_scan(const struct look *look, struct rls_scan *scan)
{
	rls_scan_init(scan, look->targets, look->target_count);
	scan->objects = look->image->python.layout_known;
	scan->module_def_type = scan->objects ? look->image->python.module_def_type : 0;
}

static int scan_file(struct look *look, const struct rls_scan_target *target)
{
	struct rls_harvest_library *library = &look->harvest[target->library];
	struct rls_image_space image;
	struct rls_scan scan;
	int error = rls_image_space_init(&image, library->elf, library->load_bias);

	if (error)
		return error;
	set_up_scan(look, &scan);
	for (size_t i = 0; i < image.segment_count; i++)
		rls_scan_block(&scan, image.segments[i].address, image.segments[i].bytes,
			       image.segments[i].length_bytes);
	error = rls_scan_finish(&scan);
	if (!error)
		error = rls_harvest(&scan, &image.space, look->harvest, RLS_SOURCE_METHOD_FILE,
				    look->image->python.minor);
	rls_scan_release(&scan);
	rls_image_space_release(&image);
	return error;
}

static int scan_files(struct look *look)
{
	int error = 0;

	for (size_t i = 0; i < look->count && !error; i++) {
		error = rls_open_library_add_exports(&look->open[i], &look->harvest[i].functions);
		if (!error)
			error = rls_open_library_add_callbacks(&look->open[i],
							       &look->harvest[i].functions);
	}
	for (size_t i = 0; i < look->target_count && !error; i++)
		error = scan_file(look, &look->targets[i]);
	return error;
}

static int scan_memory(struct look *look, enum rls_live_scan_extent extent)
{
	struct rls_live_space live;
	struct rls_scan scan;
	uint64_t cut_bytes = 0, start = now_ns(), scanned;
	int error;

	if (!look->target_count)
		return 0;
	error = rls_live_space_probe(look->image->pid, look->mappings.entries[0].start);
	if (error)
		return error;
	rls_live_space_init(&live, look->image->pid);
	set_up_scan(look, &scan);
	scan.mappings = &look->mappings;
	error = rls_live_scan(&scan, &live, extent, SCAN_LIMIT_BYTES, &cut_bytes);
	if (!error)
		error = rls_scan_finish(&scan);
	scanned = now_ns();
	if (!error)
		error = rls_harvest(&scan, &live.space, look->harvest, RLS_SOURCE_METHOD_LIVE,
				    look->image->python.minor);
	rls_debug("memory of process %d: %lu KiB scanned in %lu us, harvested in %lu us (%zu "
		  "methods, %zu types, %zu callables, %zu modules)", look->image->pid,
		  scan.scanned_bytes >> 10, (scanned - start) / 1000, (now_ns() - scanned) / 1000,
		  scan.methods.count, scan.types.count, scan.callables.count,
		  scan.module_defs.count);
	rls_scan_release(&scan);
	if (cut_bytes)
		warn(look->image, "%lu MiB of the process's largest mappings were not searched for "
		     "method tables", cut_bytes >> 20);
	return error;
}

/* Makes the look's libraries part of the image. */
static int keep_libraries(struct look *look)
{
	struct rls_process_image *image = look->image;
	struct rls_library **larger = reallocarray(
		image->libraries, image->library_count + look->count + 1, sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	image->libraries = larger;
	for (size_t i = 0; i < look->count; i++) {
		struct rls_library *library = look->open[i].library;
		int error = rls_function_set_finish(&look->harvest[i].functions,
						    &library->functions, &library->function_count);

		if (error)
			return error;
		image->libraries[image->library_count++] = rls_take(look->open[i].library);
	}
	return 0;
}

static int look_at_new(struct look *look, enum rls_live_scan_extent extent)
{
	uint64_t start = now_ns(), opened, read;
	int error = add_new_libraries(look);

	if (error || !look->count)
		return error;
	opened = now_ns();
	error = scan_files(look);
	if (error)
		return error;
	read = now_ns();
	error = scan_memory(look, extent);
	if (error)
		return error;
	rls_debug("%zu libraries of process %d: opened in %lu us, files read in %lu us, memory in "
		  "%lu us", look->count, look->image->pid, (opened - start) / 1000,
		  (read - opened) / 1000, (now_ns() - read) / 1000);
	return keep_libraries(look);
}

/* --- the interpreter --------------------------------------------------------------------- */

static int find_python(struct look *look)
{
	struct rls_process_image *image = look->image;
	int error = rls_python_find(image->pid, &look->mappings, &image->python);

	if (error || !image->python.version[0])
		return error;
	if (image->python.free_threaded)
		warn(image, "Python %s is a free-threaded build: methods are found by their tables, "
		     "slots and getters are not", image->python.version);
	else if (!image->python.layout_known)
		warn(image, "Python %s is not one of 3.8 to 3.14: methods are found by their tables, "
		     "slots and getters are not", image->python.version);
	return 0;
}

/* --- public -------------------------------------------------------------------------------- */

void rls_process_image_free(struct rls_process_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->library_count; i++)
		rls_library_free(image->libraries[i]);
	for (size_t i = 0; i < image->warning_count; i++)
		free(image->warnings[i]);
	free(image->libraries);
	free(image->warnings);
	rls_seen_files_free(image->seen);
	free(image);
}

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

static int look_at_process(struct rls_process_image *image, const struct rls_roles *roles)
{
	struct look look;
	int error = begin_look(&look, image, roles);

	if (error)
		return error;
	error = find_python(&look);
	if (!error)
		error = look_at_new(&look, RLS_LIVE_SCAN_ALL);
	image->python.mapping = NULL;
	release_look(&look);
	return error;
}

int rls_discover_process(pid_t pid, const struct rls_roles *roles,
			 struct rls_process_image **out)
{
	struct rls_process_image *image = new_image(pid);
	int error;

	if (!image)
		return -ENOMEM;
	error = look_at_process(image, roles);
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
	struct look look;
	int error = begin_look(&look, image, roles);

	if (error)
		return error;
	/* `run` watches a process from before its interpreter was mapped. */
	if (!image->python.version[0])
		error = find_python(&look);
	if (!error)
		error = look_at_new(&look, RLS_LIVE_SCAN_TARGETS);
	image->python.mapping = NULL;
	release_look(&look);
	if (!error)
		*first_new = before;
	return error;
}

size_t rls_process_image_known_libraries(const struct rls_process_image *image)
{
	size_t count = 0;

	for (size_t i = 0; i < image->library_count; i++)
		count += image->libraries[i]->role != RLS_ROLE_PYTHON;
	return count;
}

int rls_discover_explain(pid_t pid, int error)
{
	switch (error) {
	case -ESRCH:
	case -ENOENT:
		return rls_error_r(error, "there is no process with pid %d", pid);
	case -EPERM:
	case -EACCES:
		return rls_error_r(error, "not allowed to read process %d: run as root (sudo)", pid);
	default:
		return rls_error_r(error, "cannot look at process %d: %s", pid, strerror(-error));
	}
}
