#include "userspace/discover/inspection.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/clock.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/discover/callbacks/callbacks.h"
#include "userspace/discover/live_scan.h"
#include "userspace/process/seen_files.h"

/* Small regions come first, so what a limit leaves out is tensors. */
#define SCAN_LIMIT_BYTES (1UL << 30)

/* --- the libraries of an inspection ----------------------------------------------------------- */

void rls_inspection_release(struct rls_inspection *inspection)
{
	for (size_t i = 0; i < inspection->count; i++) {
		rls_function_set_release(&inspection->harvest[i].functions);
		rls_open_library_release(&inspection->open[i]);
	}
	free(inspection->open);
	free(inspection->harvest);
	free(inspection->targets);
	rls_mappings_release(&inspection->mappings);
}

/* Room for one library per mapping is room enough. */
static int make_room(struct rls_inspection *inspection)
{
	inspection->open = calloc(inspection->mappings.count + 1, sizeof(*inspection->open));
	inspection->harvest = calloc(inspection->mappings.count + 1, sizeof(*inspection->harvest));
	inspection->targets = calloc(inspection->mappings.count + 1, sizeof(*inspection->targets));
	if (inspection->open && inspection->harvest && inspection->targets)
		return 0;
	rls_inspection_release(inspection);
	return -ENOMEM;
}

int rls_inspection_begin(struct rls_inspection *inspection, struct rls_process_image *image,
			 const struct rls_roles *roles)
{
	int error;

	*inspection = (struct rls_inspection){.image = image, .roles = roles};
	error = rls_mappings_read(image->pid, &inspection->mappings);
	return error ? error : make_room(inspection);
}

int rls_inspection_begin_mapping(struct rls_inspection *inspection, struct rls_process_image *image,
				 const struct rls_roles *roles, const struct rls_mapping *mapping)
{
	*inspection = (struct rls_inspection){.image = image, .roles = roles};
	inspection->mappings.entries = malloc(sizeof(*mapping));
	if (!inspection->mappings.entries)
		return -ENOMEM;
	inspection->mappings.entries[0] = *mapping;
	inspection->mappings.count = 1;
	return make_room(inspection);
}

static bool match_role(const struct rls_inspection *inspection, const struct rls_mapping *mapping,
		       struct rls_role_match *match)
{
	const char *python_path = inspection->image->python_path;

	/* Whatever it is called: a static python, a program that embeds one. */
	if (python_path && !strcmp(python_path, mapping->path)) {
		*match = (struct rls_role_match){.role = RLS_ROLE_PYTHON};
		return true;
	}
	return rls_roles_match(inspection->roles, mapping->path, match);
}

/* A library that cannot be opened is a warning: the others are still good. */
static int add_library(struct rls_inspection *inspection, const struct rls_mapping *mapping,
		       const struct rls_role_match *match)
{
	struct rls_open_library *open = &inspection->open[inspection->count];
	struct rls_harvest_library *harvest = &inspection->harvest[inspection->count];
	int error = rls_open_library_init(inspection->image->pid, mapping, match, open);

	if (error == -ENOMEM)
		return error;
	if (error) {
		rls_image_warn(inspection->image, "%s cannot be read (%s): it is not probed",
			       mapping->path, rls_reason(error));
		return 0;
	}
	*harvest = (struct rls_harvest_library){
		.elf = open->elf, .load_bias = open->library->load_bias, .match = &open->match};
	if (rls_open_library_target(open, &inspection->targets[inspection->target_count]))
		inspection->targets[inspection->target_count++].library = inspection->count;
	inspection->count++;
	return 0;
}

int rls_inspection_add_libraries(struct rls_inspection *inspection, enum rls_inspection_of which)
{
	_cleanup_seen_ struct rls_seen_files *own = NULL;
	struct rls_seen_files *seen = inspection->image->seen;

	if (which == RLS_INSPECT_ALL) {
		own = seen = rls_seen_files_new();
		if (!own)
			return -ENOMEM;
	}
	for (size_t i = 0; i < inspection->mappings.count; i++) {
		const struct rls_mapping *mapping = &inspection->mappings.entries[i];
		struct rls_role_match match;
		int error;

		if (!mapping->executable || !rls_mapping_is_file(mapping))
			continue;
		error = rls_seen_files_add(seen, mapping);
		if (error < 0)
			return error;
		if (!error || !match_role(inspection, mapping, &match))
			continue;
		error = add_library(inspection, mapping, &match);
		if (error)
			return error;
	}
	return 0;
}

/* --- functions ------------------------------------------------------------------------- */

static void set_up_scan(const struct rls_inspection *inspection, struct rls_scan *scan)
{
	rls_scan_init(scan, inspection->targets, inspection->target_count);
	scan->objects = inspection->image->python.layout_known;
	scan->module_def_type = scan->objects ? inspection->image->python.module_def_type : 0;
}

static int scan_file(struct rls_inspection *inspection, const struct rls_scan_target *target)
{
	struct rls_harvest_library *library = &inspection->harvest[target->library];
	struct rls_image_space image;
	struct rls_scan scan;
	int error = rls_image_space_init(&image, library->elf, library->load_bias);

	if (error)
		return error;
	set_up_scan(inspection, &scan);
	for (size_t i = 0; i < image.segment_count; i++)
		rls_scan_block(&scan, image.segments[i].address, image.segments[i].bytes,
			       image.segments[i].length_bytes);
	error = rls_scan_finish(&scan);
	if (!error)
		error = rls_harvest(&scan, &image.space, inspection->harvest,
				    RLS_SOURCE_METHOD_FILE, inspection->image->python.minor);
	rls_scan_release(&scan);
	rls_image_space_release(&image);
	return error;
}

int rls_inspection_scan_files(struct rls_inspection *inspection)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);
	int error = 0;

	for (size_t i = 0; i < inspection->count && !error; i++) {
		error = rls_open_library_add_exports(&inspection->open[i],
						     &inspection->harvest[i].functions);
		if (!error)
			error = rls_open_library_add_callbacks(&inspection->open[i],
							       &inspection->harvest[i].functions);
	}
	for (size_t i = 0; i < inspection->target_count && !error; i++)
		error = scan_file(inspection, &inspection->targets[i]);
	return error;
}

static bool calls_python_inline(const struct rls_open_library *open)
{
	return open->elf && rls_role_match_takes_methods(&open->match) &&
	       rls_calls_python_inline(open->elf);
}

static struct rls_harvest_library *find_interpreter(struct rls_inspection *inspection)
{
	const char *path = inspection->image->python_path;

	for (size_t i = 0; path && i < inspection->count; i++)
		if (!strcmp(inspection->open[i].library->path, path))
			return &inspection->harvest[i];
	return NULL;
}

int rls_inspection_add_eval_entry(struct rls_inspection *inspection)
{
	struct rls_harvest_library *interpreter = find_interpreter(inspection);
	struct rls_boundary_function entry;
	const char *caller = NULL;
	int error;

	for (size_t i = 0; i < inspection->count && !caller; i++)
		if (calls_python_inline(&inspection->open[i]))
			caller = inspection->open[i].library->path;
	if (!caller || !interpreter || !interpreter->elf)
		return 0;
	error = rls_find_eval_entry(interpreter->elf, &entry);
	if (error)
		return error == -ENOENT ? 0 : error;
	rls_debug("%s calls Python inline: the evaluation loop is probed too", caller);
	error = rls_function_set_add(&interpreter->functions,
				     &(struct rls_find){.vaddr = entry.vaddr,
							.size_bytes = entry.size_bytes,
							.name = entry.name,
							.rank = RLS_NAME_SYMBOL,
							.sources = RLS_SOURCE_CALLBACK,
							.kind = entry.kind});
	free(entry.name);
	return error;
}

int rls_inspection_scan_memory(struct rls_inspection *inspection, enum rls_live_scan_extent extent)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_POLITE);
	_cleanup_live_space_ struct rls_live_space live = {.memory = -1};
	struct rls_scan scan;
	uint64_t cut_bytes = 0, start = rls_monotonic_ns(), scanned;
	int error;

	if (!inspection->target_count)
		return 0;
	rls_live_space_open(&live, inspection->image->pid);
	error = rls_live_space_probe(&live, inspection->mappings.entries[0].start);
	if (error)
		return error;
	set_up_scan(inspection, &scan);
	scan.mappings = &inspection->mappings;
	error = rls_live_scan(&scan, &live, extent, SCAN_LIMIT_BYTES, &cut_bytes);
	if (!error)
		error = rls_scan_finish(&scan);
	scanned = rls_monotonic_ns();
	if (!error)
		error = rls_harvest(&scan, &live.space, inspection->harvest, RLS_SOURCE_METHOD_LIVE,
				    inspection->image->python.minor);
	rls_debug("memory of process %d: %lu KiB scanned in %lu us, harvested in %lu us (%zu "
		  "methods, %zu types, %zu callables, %zu modules)",
		  inspection->image->pid, scan.scanned_bytes >> 10, (scanned - start) / 1000,
		  (rls_monotonic_ns() - scanned) / 1000, scan.methods.count, scan.types.count,
		  scan.callables.count, scan.module_defs.count);
	rls_scan_release(&scan);
	if (cut_bytes)
		rls_image_warn(inspection->image,
			       "%lu MiB of the process's largest mappings were not searched for "
			       "method tables",
			       cut_bytes >> 20);
	return error;
}
