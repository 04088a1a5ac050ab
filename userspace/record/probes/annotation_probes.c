#include "userspace/record/probes/annotation_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/annotate/foreign_ranges.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/elf/elf.h"
#include "userspace/record/events/annotation_reader.h"

#define ANNOTATE_LIBRARY "librlscope_annotate.so"
#define DESCRIPTOR_SYMBOL "rlscope_annotate_descriptor"

static void attach_flush(struct rls_kernel *kernel, const char *path, const struct rls_elf *elf,
			 uint64_t load_bias, const struct rls_annotate_descriptor *descriptor,
			 uint64_t descriptor_vaddr)
{
	uint64_t counter_vaddr =
		descriptor_vaddr + offsetof(struct rls_annotate_descriptor, listeners);
	uint64_t site, counter;
	int r = rls_elf_file_offset(elf, descriptor->flush_site - load_bias, &site);

	if (!r)
		r = rls_elf_file_offset(elf, counter_vaddr, &counter);
	if (!r)
		r = rls_kernel_attach_flush(kernel, path, site, counter);
	if (r)
		rls_debug("no flush probe in %s: %s", path, strerror(-r));
}

static void find_annotation(struct rls_kernel *kernel, struct rls_files *files, pid_t pid,
			    const struct rls_mapping *mapping, uint64_t *annotation)
{
	struct rls_annotate_descriptor descriptor;
	_cleanup_free_ char *path = NULL;
	struct rls_elf_symbol symbol;
	uint64_t vaddr, load_bias;
	struct rls_file *file;
	struct rls_elf *elf;

	if (rls_files_locate(files, pid, mapping, &path, &file) || rls_elf_open(path, &elf))
		return;
	if (!rls_elf_find_symbol(elf, DESCRIPTOR_SYMBOL, &symbol) &&
	    !rls_elf_vaddr_of_offset(elf, mapping->file_offset, &vaddr)) {
		load_bias = mapping->start - vaddr;
		if (!rls_annotation_reader_descriptor(pid, symbol.vaddr + load_bias, &descriptor)) {
			*annotation = symbol.vaddr + load_bias;
			if (!file->has_operation_probes)
				attach_flush(kernel, path, elf, load_bias, &descriptor,
					     symbol.vaddr);
			file->has_operation_probes = true;
		}
	}
	rls_elf_close(elf);
}

static size_t find_sites(struct rls_elf *elf, struct rls_range_site *sites)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);

	return rls_range_sites(elf, sites);
}

static void probe_ranges(struct rls_kernel *kernel, struct rls_files *files, pid_t pid,
			 const struct rls_mapping *mapping)
{
	struct rls_range_site sites[RLS_RANGE_SITES_MAX];
	_cleanup_free_ char *path = NULL;
	struct rls_file *file;
	struct rls_elf *elf;
	size_t count;
	int r;

	if (rls_files_locate(files, pid, mapping, &path, &file) || file->has_operation_probes)
		return;
	file->has_operation_probes = true;
	if (rls_elf_open(path, &elf))
		return;
	count = find_sites(elf, sites);
	rls_elf_close(elf);
	r = rls_kernel_attach_ranges(kernel, path, sites, count);
	rls_debug("%s: %zu range sites%s%s", mapping->path, count, r ? ": " : "",
		  r ? strerror(-r) : "");
}

void rls_annotation_probes_scan(struct rls_kernel *kernel, struct rls_files *files, pid_t pid,
				const struct rls_mappings *mappings, uint64_t *annotation)
{
	*annotation = 0;
	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];
		const char *name = strrchr(mapping->path, '/');

		if (!mapping->executable || !name)
			continue;
		name++;
		if (!strncmp(name, ANNOTATE_LIBRARY, strlen(ANNOTATE_LIBRARY)))
			find_annotation(kernel, files, pid, mapping, annotation);
		else if (rls_range_library(name))
			probe_ranges(kernel, files, pid, mapping);
	}
}
