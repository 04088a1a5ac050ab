/* A library's file, through all that is asked of one: tables, callbacks into Python, the
 * image that the loader would make, what the scanner and the harvest find in it, the plan.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/annotate/foreign_ranges.h"
#include "userspace/discover/callbacks/callbacks.h"
#include "userspace/discover/library.h"
#include "userspace/elf/elf.h"
#include "userspace/plan/planner.h"
#include "userspace/process/space.h"

#define LOAD_BIAS 0x7f0000000000ULL

static int visit_symbol(const struct rls_elf_symbol *symbol, void *context)
{
	size_t *bytes = context;

	*bytes += strlen(symbol->name);
	return 0;
}

static int visit_relocation(const struct rls_elf_relocation *relocation, void *context)
{
	size_t *bytes = context;

	*bytes += relocation->symbol ? strlen(relocation->symbol) : 0;
	return 0;
}

static void read_tables(struct rls_elf *elf)
{
	struct rls_elf_symbol symbol;
	size_t bytes = 0;

	rls_elf_each_symbol(elf, visit_symbol, &bytes);
	rls_elf_each_relocation(elf, visit_relocation, &bytes);
	if (!rls_elf_find_symbol(elf, "mj_step", &symbol))
		fuzz_require(!strcmp(symbol.name, "mj_step") && symbol.defined,
			     "a symbol is found");
	rls_library_may_throw(elf);
	rls_calls_python_inline(elf);
}

static void check_segments(const struct rls_elf *elf)
{
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(elf, &segments);
	uint64_t vaddr, offset;

	for (size_t i = 0; i < count; i++) {
		fuzz_require(!i || segments[i - 1].vaddr + segments[i - 1].memory_bytes <=
					     segments[i].vaddr,
			     "segments ascend and are disjoint");
		if (!segments[i].file_bytes)
			continue;
		fuzz_require(
			rls_elf_bytes(elf, segments[i].vaddr, segments[i].file_bytes) &&
				!rls_elf_bytes(elf, segments[i].vaddr, segments[i].file_bytes + 1),
			"a segment is as long as it is");
		fuzz_require(!rls_elf_file_offset(elf, segments[i].vaddr, &offset) &&
				     offset == segments[i].offset,
			     "a segment begins at its offset");
		rls_elf_vaddr_of_offset(elf, segments[i].offset, &vaddr);
	}
}

static void check_extents(struct rls_elf *elf)
{
	const struct rls_elf_extent *extents;
	size_t count = rls_elf_extents(elf, &extents);
	uint64_t bytes;

	for (size_t i = 0; i < count; i++) {
		fuzz_require(!i || extents[i - 1].vaddr + extents[i - 1].size_bytes <=
					     extents[i].vaddr,
			     "extents ascend and are disjoint");
		fuzz_require(rls_elf_bytes(elf, extents[i].vaddr, extents[i].size_bytes),
			     "an extent is in the file");
		fuzz_require(rls_elf_extent_at(elf, extents[i].vaddr) == &extents[i],
			     "an extent is found");
		if (!rls_elf_frame_bytes(elf, extents[i].vaddr + extents[i].size_bytes / 2, &bytes))
			fuzz_require(bytes >= 8, "a frame has a return address");
	}
}

static void check_callbacks(struct rls_elf *elf)
{
	struct rls_boundary_function *functions;
	size_t count;

	if (rls_find_callbacks_of(elf, RLS_CALLBACKS_CALLING | RLS_CALLBACKS_PROTOCOL, &functions,
				  &count))
		abort();
	for (size_t i = 0; i < count; i++) {
		fuzz_require(!i || functions[i - 1].vaddr < functions[i].vaddr,
			     "callbacks ascend and are unique");
		fuzz_require(rls_elf_is_executable(elf, functions[i].vaddr), "a callback is code");
	}
	rls_callbacks_free(functions, count);
}

static void check_ranges(struct rls_elf *elf, size_t file_bytes)
{
	struct rls_range_site sites[RLS_RANGE_SITES_MAX];
	size_t count = rls_range_sites(elf, sites);

	fuzz_require(count <= RLS_RANGE_SITES_MAX, "sites have a bound");
	for (size_t i = 0; i < count; i++)
		fuzz_require(sites[i].file_offset < file_bytes &&
				     rls_elf_is_executable(elf, sites[i].vaddr),
			     "a range's site is code of the file");
}

/* As discovery does for a library of which no process is running. */
static void scan_image(const struct rls_open_library *open, struct rls_function_set *functions)
{
	struct rls_harvest_library library = {
		.elf = open->elf, .load_bias = LOAD_BIAS, .match = &open->match};
	struct rls_scan_target target;
	struct rls_image_space image;
	struct rls_scan scan;

	if (!rls_open_library_target(open, &target) ||
	    rls_image_space_init(&image, open->elf, LOAD_BIAS))
		return;
	target.library = 0;
	rls_scan_init(&scan, &target, 1);
	scan.objects = true;
	for (size_t i = 0; i < image.segment_count; i++)
		rls_scan_block(&scan, image.segments[i].address, image.segments[i].bytes,
			       image.segments[i].length_bytes);
	library.functions = *functions;
	if (rls_scan_finish(&scan) ||
	    rls_harvest(&scan, &image.space, &library, RLS_SOURCE_METHOD_FILE, 11))
		abort();
	*functions = library.functions;
	rls_scan_release(&scan);
	rls_image_space_release(&image);
}

static void check_plan(const struct rls_library *library, struct rls_elf *elf, size_t file_bytes)
{
	struct rls_plan plan;

	if (rls_plan_library(library, elf, &plan))
		abort();
	for (size_t i = 0; i < plan.count; i++) {
		fuzz_require(!i || plan.sites[i - 1].file_offset < plan.sites[i].file_offset,
			     "sites ascend and are unique");
		fuzz_require(plan.sites[i].file_offset < file_bytes &&
				     rls_elf_is_executable(elf, plan.sites[i].vaddr),
			     "a site is code of the file");
	}
	rls_plan_clear(&plan);
}

/* Planned as a library whose exits are return probes, and as one that may throw. */
static void discover_and_plan(struct rls_open_library *open, size_t file_bytes)
{
	struct rls_function_set functions = {0};
	struct rls_library *library = open->library;

	if (rls_open_library_add_exports(open, &functions) ||
	    rls_open_library_add_callbacks(open, &functions))
		abort();
	scan_image(open, &functions);
	if (rls_function_set_finish(&functions, &library->functions, &library->function_count))
		abort();
	check_plan(library, open->elf, file_bytes);
	library->may_throw = true;
	check_plan(library, open->elf, file_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const all[] = {"*", NULL};
	static const struct rls_role_rule whole = {.role = RLS_ROLE_NATIVE,
						   .file_glob = "*",
						   .methods = RLS_METHODS_ALL,
						   .symbols = all};
	struct rls_open_library open = {
		.match = {.role = RLS_ROLE_NATIVE, .rules = {&whole}, .count = 1}};
	char path[FUZZ_PATH_BYTES];
	int fd = fuzz_file(data, size);

	fuzz_file_path(fd, path);
	if (!rls_elf_open(path, &open.elf)) {
		open.library = rls_library_new(path, path);
		if (!open.library)
			abort();
		open.library->load_bias = LOAD_BIAS;
		open.library->role = RLS_ROLE_NATIVE;
		read_tables(open.elf);
		check_segments(open.elf);
		check_extents(open.elf);
		check_callbacks(open.elf);
		check_ranges(open.elf, size);
		discover_and_plan(&open, size);
		rls_open_library_release(&open);
	}
	close(fd);
	return 0;
}
