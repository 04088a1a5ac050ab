#include "userspace/attach/kernel/kernel_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/process/living_thread.h"

#define BLOCKS_AT_ONCE 4096
#define LINES_BYTES (RLS_MEMORY_LINES * sizeof(struct rls_wire_memory_line))

/* ---- loading ---- */

int rls_kernel_size_memory(struct rls_kernel *kernel, bool memory)
{
	struct rlscope *skeleton = kernel->skeleton;
	struct bpf_map *maps[] = {
		skeleton->maps.memory_lines,       skeleton->maps.memory_places,
		skeleton->maps.memory_free_places, skeleton->maps.memory_blocks,
		skeleton->maps.memory_devices,
	};
	bool multi = kernel->way == RLS_ATTACH_MULTI;
	int r = 0;

	kernel->memory.wanted = memory;
	bpf_program__set_autoload(skeleton->progs.on_memory_multi, memory && multi);
	bpf_program__set_autoload(skeleton->progs.on_memory, memory); /* also for one process */
	for (size_t i = 0; !r && !memory && i < sizeof(maps) / sizeof(maps[0]); i++)
		r = bpf_map__set_max_entries(maps[i], 1);
	return r;
}

int rls_kernel_map_memory(struct rls_kernel *kernel)
{
	void *lines;

	if (!kernel->memory.wanted)
		return 0;
	lines = mmap(NULL, LINES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(kernel->skeleton->maps.memory_lines), 0);
	if (lines == MAP_FAILED)
		return -errno;
	kernel->memory.lines = lines;
	rls_kernel_count_memory(kernel, true);
	return 0;
}

void rls_kernel_count_memory(struct rls_kernel *kernel, bool counted)
{
	__atomic_store_n(&kernel->skeleton->bss->memory_wanted, counted, __ATOMIC_RELEASE);
}

void rls_kernel_unmap_memory(struct rls_kernel *kernel)
{
	if (kernel->memory.lines)
		munmap(kernel->memory.lines, LINES_BYTES);
	kernel->memory.lines = NULL;
	free(kernel->memory.files);
	kernel->memory.files = NULL;
}

/* ---- sites ---- */

int rls_kernel_attach_memory(struct rls_kernel *kernel, uint32_t file, const char *path,
			     const struct rls_memory_site *sites, size_t count)
{
	struct rls_memory_probes *memory = &kernel->memory;
	int r = 0;

	if (!memory->wanted || !count)
		return 0;
	if (rls_grow(&memory->files, &memory->room, memory->count))
		return -ENOMEM;
	memory->files[memory->count] = (struct rls_memory_file){.file = file};
	rls_kernel_begin_switching(kernel);
	for (size_t i = 0; !r && i < count; i++) {
		uint32_t cost_ns = kernel->costs.ns[sites[i].site_class][0];

		r = rls_kernel_attach_one(
			kernel, &memory->files[memory->count].links,
			kernel->skeleton->progs.on_memory_multi, kernel->skeleton->progs.on_memory,
			path, sites[i].file_offset, 0,
			RLS_MEMORY_COOKIE(sites[i].report, rls_cookie_cost(cost_ns)));
	}
	rls_kernel_end_switching(kernel);
	if (r) /* ends without beginnings, or the reverse, are of no use */
		rls_links_clear(&memory->files[memory->count].links, 0);
	else
		memory->count++;
	return r;
}

static int attach_to_process(struct rls_kernel *kernel, struct rls_links *links, pid_t pid,
			     const char *path, unsigned long offset, __u64 cookie)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, multi, .offsets = &offset, .cookies = &cookie, .cnt = 1);
	LIBBPF_OPTS(bpf_uprobe_opts, perf, .bpf_cookie = cookie);
	pid_t living = rls_living_thread(pid);

	/* A uprobe_multi link is for the memory of a process's first thread, which may have left. */
	if (rls_kernel_arms_by_multi(kernel) && living == pid)
		return rls_links_add(links, bpf_program__attach_uprobe_multi(
						    kernel->skeleton->progs.on_memory_multi, pid,
						    path, NULL, &multi));
	links->slow = true;
	return rls_links_add(links,
			     bpf_program__attach_uprobe_opts(kernel->skeleton->progs.on_memory,
							     living, path, offset, &perf));
}

int rls_kernel_attach_memory_of(struct rls_kernel *kernel, pid_t pid, uint32_t file,
				const char *path, const struct rls_memory_site *site)
{
	struct rls_memory_probes *memory = &kernel->memory;
	uint32_t cost_ns = kernel->costs.ns[site->site_class][0];
	struct rls_memory_file *probe;
	int r;

	if (!memory->wanted)
		return 0;
	if (rls_grow(&memory->files, &memory->room, memory->count))
		return -ENOMEM;
	probe = &memory->files[memory->count];
	*probe = (struct rls_memory_file){.file = file, .pid = pid, .report = site->report};
	rls_kernel_begin_switching(kernel);
	r = attach_to_process(kernel, &probe->links, pid, path, site->file_offset,
			      RLS_MEMORY_COOKIE(site->report, rls_cookie_cost(cost_ns)));
	rls_kernel_end_switching(kernel);
	if (!r)
		memory->count++;
	return r;
}

void rls_kernel_detach_memory_of(struct rls_kernel *kernel, pid_t pid,
				 enum rls_memory_report report)
{
	struct rls_memory_probes *memory = &kernel->memory;

	for (size_t i = memory->count; i-- > 0;) {
		struct rls_memory_file *probe = &memory->files[i];

		if (!probe->pid || (pid && probe->pid != pid) ||
		    (report && probe->report != report))
			continue;
		rls_links_clear(&probe->links, 0);
		*probe = memory->files[--memory->count];
	}
}

void rls_kernel_detach_memory(struct rls_kernel *kernel, uint32_t file)
{
	struct rls_memory_probes *memory = &kernel->memory;

	rls_kernel_begin_switching(kernel);
	for (size_t i = 0; i < memory->count; i++)
		if (file == UINT32_MAX || memory->files[i].file == file)
			rls_links_clear(&memory->files[i].links, 0);
	rls_kernel_end_switching(kernel);
}

void rls_kernel_leave_memory(struct rls_kernel *kernel)
{
	struct rls_memory_probes *memory = &kernel->memory;

	for (size_t i = 0; i < memory->count; i++)
		rls_links_gather(&memory->files[i].links, &kernel->links);
	memory->count = 0;
}

/* ---- what is counted ---- */

const volatile struct rls_wire_memory_line *rls_kernel_memory_lines(const struct rls_kernel *kernel)
{
	return kernel->memory.lines;
}

uint64_t rls_kernel_memory_count(const struct rls_kernel *kernel, enum rls_memory_count which)
{
	return __atomic_load_n(&kernel->skeleton->bss->memory_counts[which], __ATOMIC_RELAXED);
}

int rls_kernel_each_block(struct rls_kernel *kernel,
			  int (*visit)(void *context, const struct rls_wire_block_key *key,
				       const struct rls_wire_block *block),
			  void *context)
{
	_cleanup_free_ struct rls_wire_block_key *keys = calloc(BLOCKS_AT_ONCE, sizeof(*keys));
	_cleanup_free_ struct rls_wire_block *blocks = calloc(BLOCKS_AT_ONCE, sizeof(*blocks));
	int fd = bpf_map__fd(kernel->skeleton->maps.memory_blocks), end = 0;
	uint32_t position = 0;
	bool first = true;

	if (!kernel->memory.wanted)
		return 0;
	if (!keys || !blocks)
		return -ENOMEM;
	while (!end) {
		uint32_t count = BLOCKS_AT_ONCE;

		end = bpf_map_lookup_batch(fd, first ? NULL : &position, &position, keys, blocks,
					   &count, NULL);
		if (end && end != -ENOENT)
			return end;
		first = false;
		for (uint32_t i = 0; i < count; i++) {
			int r = visit(context, &keys[i], &blocks[i]);

			if (r)
				return r;
		}
	}
	return 0;
}

int rls_kernel_drop_block(struct rls_kernel *kernel, const struct rls_wire_block_key *key)
{
	return bpf_map__delete_elem(kernel->skeleton->maps.memory_blocks, key, sizeof(*key), 0);
}

void rls_kernel_join_line(struct rls_kernel *kernel, uint32_t place, uint32_t before)
{
	struct rls_wire_memory_line *lines = kernel->memory.lines;
	uint32_t next = lines[before].next;

	__atomic_store_n(&lines[place].next, next ? next : before + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&lines[before].next, place + 1, __ATOMIC_RELEASE);
}

void rls_kernel_drop_line(struct rls_kernel *kernel, uint32_t place)
{
	struct rls_wire_memory_line *line = &kernel->memory.lines[place];

	bpf_map__delete_elem(kernel->skeleton->maps.memory_places, &line->key, sizeof(line->key),
			     0);
	*line = (struct rls_wire_memory_line){0};
	bpf_map_update_elem(bpf_map__fd(kernel->skeleton->maps.memory_free_places), NULL, &place,
			    0);
}

int rls_kernel_each_device(struct rls_kernel *kernel,
			   int (*visit)(void *context, const struct rls_wire_device_key *key,
					const struct rls_wire_device *device),
			   void *context)
{
	struct bpf_map *map = kernel->skeleton->maps.memory_devices;
	struct rls_wire_device_key key, *before = NULL;
	size_t seen = 0;

	while (seen++ < RLS_MEMORY_DEVICES &&
	       !bpf_map__get_next_key(map, before, &key, sizeof(key))) {
		struct rls_wire_device device;
		int r = 0;

		if (!bpf_map__lookup_elem(map, &key, sizeof(key), &device, sizeof(device), 0))
			r = visit(context, &key, &device);
		if (r)
			return r;
		before = &key;
	}
	return 0;
}
