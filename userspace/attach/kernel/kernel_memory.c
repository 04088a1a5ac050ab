#include "userspace/attach/kernel/kernel_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/event/event.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/process/living_thread.h"

#define BLOCKS_AT_ONCE 4096
/* Links of ended processes that may be kept: closing takes 50 ms, of one as of many. */
#define ENDED_LINKS_MAX 256
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

#define ALL_SOURCES ((1U << RLS_MEMORY_SOURCES) - 1)

static void set_mask(uint32_t *mask, uint32_t sources, bool on)
{
	if (on)
		__atomic_fetch_or(mask, sources, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(mask, ~sources, __ATOMIC_SEQ_CST);
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
	set_mask(&kernel->skeleton->bss->memory_followed, ALL_SOURCES, true);
	set_mask(&kernel->skeleton->bss->memory_counted, ALL_SOURCES, true);
	return 0;
}

void rls_kernel_unmap_memory(struct rls_kernel *kernel)
{
	struct rls_memory_probes *memory = &kernel->memory;

	if (memory->lines)
		munmap(memory->lines, LINES_BYTES);
	for (size_t i = 0; i < memory->file_count; i++)
		rls_held_file_close(&memory->files[i].held);
	free(memory->files);
	free(memory->items);
	free(memory->own);
	*memory = (struct rls_memory_probes){0};
}

/* ---- sites ---- */

/* Of which source a report is, and how little must be probed of that for its site to be. */
static const struct {
	uint32_t source;
	enum rls_memory_probing least;
} reports[RLS_MEMORY_REPORT_MAX] = {
	[RLS_MEMORY_TENSOR_NEW] = {RLS_MEMORY_TENSOR, RLS_MEMORY_PROBE_BIRTHS},
	[RLS_MEMORY_TENSOR_DELETE] = {RLS_MEMORY_TENSOR, RLS_MEMORY_PROBE_BLOCKS},
	[RLS_MEMORY_DEVICE] = {RLS_MEMORY_GPU, RLS_MEMORY_PROBE_BIRTHS},
	[RLS_MEMORY_DEVICE_FULL] = {RLS_MEMORY_GPU, RLS_MEMORY_PROBE_NOTHING},
	[RLS_MEMORY_TRACK] = {RLS_MEMORY_ARRAY, RLS_MEMORY_PROBE_BIRTHS},
	[RLS_MEMORY_UNTRACK] = {RLS_MEMORY_ARRAY, RLS_MEMORY_PROBE_BLOCKS},
	[RLS_MEMORY_FINALIZE] = {RLS_MEMORY_TENSOR, RLS_MEMORY_PROBE_NOTHING},
	[RLS_MEMORY_EXIT] = {RLS_MEMORY_TENSOR, RLS_MEMORY_PROBE_NOTHING},
	[RLS_MEMORY_COPY_TENSOR] = {RLS_MEMORY_COPY_COST, RLS_MEMORY_PROBE_BIRTHS},
	[RLS_MEMORY_COPY_BYTES] = {RLS_MEMORY_COPY_COST, RLS_MEMORY_PROBE_BIRTHS},
	[RLS_MEMORY_RUNG] = {RLS_MEMORY_MALLOC, RLS_MEMORY_PROBE_BIRTHS},
};

static uint32_t report_of(const struct rls_memory_probe *probe)
{
	return (uint8_t)probe->cookie;
}

/* Puts on or takes off (into gone) what one site is to have now. */
static int follow_probing(struct rls_kernel *kernel, struct rls_memory_probe *probe,
			  struct rls_links *gone)
{
	const struct rls_memory_file *file = &kernel->memory.files[probe->file];
	uint32_t report = report_of(probe);
	bool on = !file->gone &&
		  kernel->memory.probing[reports[report].source] <= reports[report].least;

	if (!on) {
		rls_links_gather(&probe->links, gone);
		return 0;
	}
	if (probe->links.count)
		return 0;
	return rls_kernel_attach_one(kernel, &probe->links, kernel->skeleton->progs.on_memory_multi,
				     kernel->skeleton->progs.on_memory, file->held.path,
				     probe->offset, 0, probe->cookie);
}

static int follow_probings(struct rls_kernel *kernel, size_t first)
{
	struct rls_links gone = {0};
	int r = 0;

	rls_kernel_begin_switching(kernel);
	for (size_t i = first; !r && i < kernel->memory.count; i++)
		r = follow_probing(kernel, &kernel->memory.items[i], &gone);
	rls_links_clear(&gone, 0);
	rls_kernel_end_switching(kernel);
	return r;
}

static int store_site(struct rls_kernel *kernel, size_t file, const struct rls_memory_site *site)
{
	struct rls_memory_probes *memory = &kernel->memory;
	uint32_t cost_ns = kernel->costs.ns[site->site_class][0];

	if (rls_grow(&memory->items, &memory->room, memory->count))
		return -ENOMEM;
	memory->items[memory->count++] = (struct rls_memory_probe){
		.file = file,
		.offset = site->file_offset,
		.cookie = RLS_MEMORY_COOKIE(site->report, rls_cookie_cost(cost_ns)),
	};
	return 0;
}

int rls_kernel_attach_memory(struct rls_kernel *kernel, uint32_t file, const char *path,
			     const struct rls_memory_site *sites, size_t count)
{
	struct rls_memory_probes *memory = &kernel->memory;
	struct rls_memory_file added = {.number = file};
	size_t first = memory->count;
	int r;

	if (!memory->wanted || !count)
		return 0;
	r = rls_grow(&memory->files, &memory->file_room, memory->file_count);
	if (!r)
		r = rls_held_file_open(&added.held, path);
	if (r)
		return r;
	memory->files[memory->file_count++] = added;
	for (size_t i = 0; !r && i < count; i++)
		r = store_site(kernel, memory->file_count - 1, &sites[i]);
	if (!r)
		r = follow_probings(kernel, first);
	if (r) /* ends without beginnings, or the reverse, are of no use */
		rls_kernel_detach_memory(kernel, file);
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
	struct rls_memory_own_probe *probe;
	int r;

	if (!memory->wanted ||
	    memory->probing[reports[site->report].source] == RLS_MEMORY_PROBE_NOTHING)
		return 0;
	if (rls_grow(&memory->own, &memory->own_room, memory->own_count))
		return -ENOMEM;
	probe = &memory->own[memory->own_count];
	*probe = (struct rls_memory_own_probe){.number = file, .pid = pid, .report = site->report};
	rls_kernel_begin_switching(kernel);
	r = attach_to_process(
		kernel, &probe->links, pid, path, site->file_offset,
		RLS_MEMORY_RUNG_COOKIE(RLS_MEMORY_COOKIE(site->report, rls_cookie_cost(cost_ns)),
				       site->size_register));
	rls_kernel_end_switching(kernel);
	if (!r)
		memory->own_count++;
	return r;
}

static void gather_own(struct rls_memory_probes *memory, size_t i, struct rls_links *gone)
{
	rls_links_gather(&memory->own[i].links, gone);
	memory->own[i] = memory->own[--memory->own_count];
}

void rls_kernel_detach_memory_of(struct rls_kernel *kernel, pid_t pid,
				 enum rls_memory_report report)
{
	struct rls_memory_probes *memory = &kernel->memory;

	for (size_t i = memory->own_count; i-- > 0;)
		if ((!pid || memory->own[i].pid == pid) &&
		    (!report || memory->own[i].report == report))
			gather_own(memory, i, &memory->ended);
	if (!pid || memory->ended.count >= ENDED_LINKS_MAX)
		rls_links_clear(&memory->ended, 0);
}

void rls_kernel_detach_memory(struct rls_kernel *kernel, uint32_t file)
{
	struct rls_memory_probes *memory = &kernel->memory;

	for (size_t i = memory->own_count; i-- > 0;)
		if (memory->own[i].number == file)
			gather_own(memory, i, &memory->ended);
	rls_links_clear(&memory->ended, 0);
	for (size_t i = 0; i < memory->file_count; i++) {
		if (memory->files[i].number != file || memory->files[i].gone)
			continue;
		memory->files[i].gone = true;
		rls_held_file_close(&memory->files[i].held);
	}
	follow_probings(kernel, 0);
}

void rls_kernel_leave_memory(struct rls_kernel *kernel)
{
	struct rls_memory_probes *memory = &kernel->memory;

	for (size_t i = 0; i < memory->count; i++)
		rls_links_gather(&memory->items[i].links, &kernel->links);
	for (size_t i = 0; i < memory->own_count; i++)
		rls_links_gather(&memory->own[i].links, &kernel->links);
	rls_links_gather(&memory->ended, &kernel->links);
	memory->count = memory->own_count = 0;
}

bool rls_kernel_memory_has_windows(const struct rls_kernel *kernel)
{
	return kernel->way == RLS_ATTACH_MULTI;
}

int rls_kernel_probe_memory(struct rls_kernel *kernel, uint32_t source,
			    enum rls_memory_probing probing)
{
	uint32_t *followed = &kernel->skeleton->bss->memory_followed;
	uint32_t *counted = &kernel->skeleton->bss->memory_counted;
	int r;

	if (probing != RLS_MEMORY_PROBE_BLOCKS)
		set_mask(followed, 1U << source, false);
	if (probing == RLS_MEMORY_PROBE_NOTHING)
		set_mask(counted, 1U << source, false);
	kernel->memory.probing[source] = probing;
	if (source == RLS_MEMORY_COPY_COST && probing == RLS_MEMORY_PROBE_NOTHING)
		rls_kernel_detach_memory_of(kernel, 0, RLS_MEMORY_COPY_BYTES);
	r = follow_probings(kernel, 0);
	if (r) {
		kernel->memory.probing[source] = RLS_MEMORY_PROBE_NOTHING;
		follow_probings(kernel, 0);
		return r;
	}
	if (probing != RLS_MEMORY_PROBE_NOTHING)
		set_mask(counted, 1U << source, true);
	return 0;
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
