#include "userspace/record/probes/cupti_bridges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/elf/elf.h"
#include "userspace/base/log.h"
#include "userspace/attach/kernel/kernel_sites.h"

#define DRIVER_LIBRARY "libcuda.so"

void rls_bridges_clear(struct rls_bridges *bridges)
{
	free(bridges->items);
	bridges->items = NULL;
	bridges->count = bridges->room = 0;
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

bool rls_bridges_mapped(const struct rls_mappings *mappings)
{
	return any_named(mappings, RLS_BRIDGE_LIBRARY);
}

bool rls_bridges_cuda_mapped(const struct rls_mappings *mappings)
{
	return any_named(mappings, DRIVER_LIBRARY);
}

/* False when it has been looked at before, or there is no memory. */
static bool remember(struct rls_bridges *bridges, pid_t pid, dev_t device, ino_t inode)
{
	for (size_t i = 0; i < bridges->count; i++) {
		const struct rls_bridge *bridge = &bridges->items[i];

		if (bridge->pid == pid && bridge->inode == inode && bridge->device == device)
			return false;
	}
	if (rls_grow(&bridges->items, &bridges->room, bridges->count))
		return false;
	bridges->items[bridges->count++] = (struct rls_bridge){ pid, device, inode };
	return true;
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

static void arm(struct rls_bridges *bridges, pid_t pid, const struct rls_mapping *mapping)
{
	_cleanup_free_ char *path = NULL;
	uint64_t site, semaphore;
	dev_t device;
	ino_t inode;
	int r;

	if (rls_mapping_locate(pid, mapping, &path, &device, &inode) || !remember(bridges, pid, device, inode))
		return;
	r = find_site(path, &site, &semaphore);
	if (!r)
		r = rls_kernel_arm(bridges->kernel, pid, path, site, semaphore);
	if (r)
		rls_warning("process %d: its CUPTI bridge %s cannot be armed, so its GPU times are not known: %s",
			    pid, mapping->path, strerror(-r));
	else
		rls_debug("process %d: the CUPTI bridge is armed", pid);
}

void rls_bridges_scan(struct rls_bridges *bridges, pid_t pid, const struct rls_mappings *mappings)
{
	for (size_t i = 0; i < mappings->count; i++) {
		if (is_named(&mappings->entries[i], RLS_BRIDGE_LIBRARY))
			arm(bridges, pid, &mappings->entries[i]);
	}
}

void rls_bridges_forget(struct rls_bridges *bridges, pid_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < bridges->count; i++) {
		if (bridges->items[i].pid != pid)
			bridges->items[kept++] = bridges->items[i];
	}
	if (kept < bridges->count)
		rls_kernel_disarm(bridges->kernel, pid);
	bridges->count = kept;
}
