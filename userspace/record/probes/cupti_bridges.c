#include "userspace/record/probes/cupti_bridges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/elf/elf.h"

#define DRIVER_LIBRARY "libcuda.so"

void rls_cupti_bridges_clear(struct rls_cupti_bridges *bridges)
{
	for (size_t i = 0; i < bridges->seen.count; i++)
		free(bridges->seen.items[i].path);
	free(bridges->seen.items);
	*bridges = (struct rls_cupti_bridges){0};
}

static bool is_named(const struct rls_mapping *mapping, const char *library)
{
	const char *name = strrchr(mapping->path, '/');

	return mapping->executable && name && !strncmp(name + 1, library, strlen(library));
}

static bool any_named(const struct rls_mappings *mappings, const char *library)
{
	for (size_t i = 0; i < mappings->count; i++) {
		if (is_named(&mappings->entries[i], library))
			return true;
	}
	return false;
}

bool rls_cupti_bridges_mapped(const struct rls_mappings *mappings)
{
	return any_named(mappings, RLS_BRIDGE_LIBRARY);
}

bool rls_cupti_bridges_cuda_mapped(const struct rls_mappings *mappings)
{
	return any_named(mappings, DRIVER_LIBRARY);
}

/* NULL when it has been looked at before, or there is no memory. */
static struct rls_bridge *cupti_bridges_record(struct rls_cupti_bridges *bridges,
					       const struct rls_file *file)
{
	for (size_t i = 0; i < bridges->seen.count; i++) {
		if (bridges->seen.items[i].file == file)
			return NULL;
	}
	if (rls_list_push(&bridges->seen, ((struct rls_bridge){.file = file})))
		return NULL;
	return &bridges->seen.items[bridges->seen.count - 1];
}

/* The file is the target's: what the note says must lie where code and data lie. */
static int find_site(const char *path, uint64_t *site, uint64_t *semaphore)
{
	struct rls_elf_usdt usdt;
	struct rls_elf *elf;
	int r = rls_elf_open(path, &elf);

	if (r)
		return r;
	r = rls_elf_find_usdt(elf, "rlscope_cupti", "batch", &usdt);
	if (!r && (!usdt.semaphore_vaddr || !rls_elf_is_executable(elf, usdt.site_vaddr)))
		r = -ENOEXEC;
	if (!r)
		r = rls_elf_file_offset(elf, usdt.site_vaddr, site);
	if (!r)
		r = rls_elf_file_offset(elf, usdt.semaphore_vaddr, semaphore);
	rls_elf_close(elf);
	return r;
}

/* path: becomes the bridge's where it can be armed. */
static void arm(struct rls_kernel *kernel, pid_t pid, const struct rls_mapping *mapping,
		char **path, struct rls_bridge *bridge)
{
	int r = find_site(*path, &bridge->site, &bridge->semaphore);

	if (!r)
		r = rls_kernel_arm(kernel, pid, *path, bridge->site, bridge->semaphore);
	if (!r) {
		bridge->path = *path;
		*path = NULL;
	}
	if (r)
		rls_warning("process %d: its CUPTI bridge %s cannot be armed, so its GPU times are "
			    "not known: %s",
			    pid, mapping->path, rls_reason(r));
	else
		rls_debug("process %d: the CUPTI bridge is armed", pid);
}

void rls_cupti_bridges_scan(struct rls_kernel *kernel, struct rls_files *files,
			    struct rls_cupti_bridges *bridges, pid_t pid,
			    const struct rls_mappings *mappings)
{
	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];
		_cleanup_free_ char *path = NULL;
		struct rls_bridge *bridge;
		struct rls_file *file;

		if (!is_named(mapping, RLS_BRIDGE_LIBRARY) ||
		    rls_files_locate(files, pid, mapping, &path, &file))
			continue;
		bridge = cupti_bridges_record(bridges, file);
		if (bridge)
			arm(kernel, pid, mapping, &path, bridge);
	}
}

bool rls_cupti_bridges_can_arm(const struct rls_cupti_bridges *bridges)
{
	for (size_t i = 0; i < bridges->seen.count; i++) {
		if (bridges->seen.items[i].path)
			return true;
	}
	return false;
}

void rls_cupti_bridges_arm(struct rls_kernel *kernel, const struct rls_cupti_bridges *bridges,
			   pid_t pid)
{
	for (size_t i = 0; i < bridges->seen.count; i++) {
		const struct rls_bridge *bridge = &bridges->seen.items[i];
		int r = bridge->path ? rls_kernel_arm(kernel, pid, bridge->path, bridge->site,
						      bridge->semaphore)
				     : 0;

		if (r)
			rls_debug("process %d: its CUPTI bridge is not armed again: %s", pid,
				  strerror(-r));
	}
}

void rls_cupti_bridges_disarm(struct rls_kernel *kernel, const struct rls_cupti_bridges *bridges,
			      pid_t pid)
{
	if (bridges->seen.count)
		rls_kernel_disarm(kernel, pid);
}
