#include "userspace/record/samples/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/index_map.h"
#include "userspace/names/perf_map.h"
#include "userspace/record/probes/probed_files.h"

/* Mapped but unknown addresses are read for again at most this often. */
#define READ_AGAIN_NS 100000000ULL
/* And names of compiled code the less often the more there are, for reading takes time. */
#define READ_AGAIN_NS_PER_BYTE 100

struct code_file {
	struct code_file *next;
	dev_t device;
	ino_t inode;
	bool opened;
	struct rls_native_file *native; /* NULL: not opened, or cannot be read */
	const struct rls_probed_file *probed; /* NULL: no role */
	struct rls_code_file role; /* of that */
	bool asked, interpreter; /* without it: whether it is one by itself */
	size_t known; /* files with a role when the role was asked for: more may have come */
};

/* What a process maps. A child has its parent's until either maps something else. */
struct view {
	unsigned int users;
	uint64_t read_ns;
	struct rls_mappings mappings;
	struct slot { /* one for each mapping */
		bool asked;
		struct code_file *file; /* NULL: memory of no file */
	} * slots;
};

struct process {
	struct view *view;
	struct rls_perf_map *compiled; /* NULL: not read, or none */
	uint64_t compiled_again_ns; /* not to be read again before */
};

struct rls_code_map {
	const struct rls_libraries *libraries;
	struct rls_index_map processes; /* pid → struct process */
	struct rls_index_map files; /* device, inode → struct code_file */
	struct code_file *all_files;
};

/* ---- processes ---- */

static void view_drop(struct view *view)
{
	if (!view || --view->users)
		return;
	rls_mappings_release(&view->mappings);
	free(view->slots);
	free(view);
}

static int view_read(pid_t pid, uint64_t time_ns, struct view **out)
{
	struct view *view = calloc(1, sizeof(*view));
	int r = view ? rls_mappings_read(pid, &view->mappings) : -ENOMEM;

	if (r) {
		free(view);
		return r;
	}
	view->users = 1;
	view->read_ns = time_ns;
	view->slots = calloc(view->mappings.count + 1, sizeof(*view->slots));
	if (!view->slots) {
		view_drop(view);
		return -ENOMEM;
	}
	*out = view;
	return 0;
}

static struct process *process_find(const struct rls_code_map *map, pid_t pid)
{
	return rls_index_map_get(&map->processes, (uint64_t)pid, 0);
}

static void process_free(struct process *process)
{
	view_drop(process->view);
	rls_perf_map_free(process->compiled);
	free(process);
}

/* Takes the view over. */
static int process_new(struct rls_code_map *map, pid_t pid, struct view *view, struct process **out)
{
	struct process *process = calloc(1, sizeof(*process));
	int r = process ? rls_index_map_put(&map->processes, (uint64_t)pid, 0, process) : -ENOMEM;

	if (r) {
		free(process);
		view_drop(view);
		return r;
	}
	process->view = view;
	*out = process;
	return 0;
}

static int process_have(struct rls_code_map *map, pid_t pid, uint64_t time_ns, struct process **out)
{
	struct view *view;
	int r;

	*out = process_find(map, pid);
	if (*out)
		return 0;
	r = view_read(pid, time_ns, &view);
	return r ? r : process_new(map, pid, view, out);
}

int rls_code_map_fork(struct rls_code_map *map, pid_t parent, pid_t child, uint64_t time_ns)
{
	struct process *from, *to;
	int r = process_have(map, parent, time_ns, &from);

	if (r || process_find(map, child))
		return r == -ENOMEM ? r : 0;
	from->view->users++;
	return process_new(map, child, from->view, &to);
}

static void forget_all(struct rls_code_map *map)
{
	for (size_t i = 0; i < map->processes.capacity; i++) {
		if (map->processes.entries[i].value)
			process_free(map->processes.entries[i].value);
	}
	rls_index_map_free(&map->processes);
}

void rls_code_map_forget(struct rls_code_map *map, pid_t pid)
{
	struct process *process = map && pid ? process_find(map, pid) : NULL;

	if (map && !pid)
		forget_all(map);
	if (!process)
		return;
	rls_index_map_remove(&map->processes, (uint64_t)pid, 0);
	process_free(process);
}

/* ---- files ---- */

static bool is_vdso(const struct rls_mapping *mapping)
{
	return !strcmp(mapping->path, RLS_VDSO_PATH);
}

static int file_new(struct rls_code_map *map, dev_t device, ino_t inode, struct code_file **out)
{
	struct code_file *file = calloc(1, sizeof(*file));
	int r = file ? rls_index_map_put(&map->files, device, inode, file) : -ENOMEM;

	if (r) {
		free(file);
		return r;
	}
	file->device = device;
	file->inode = inode;
	file->next = map->all_files;
	map->all_files = file;
	*out = file;
	return 0;
}

/* The mapping's file: *out is NULL for memory of none. */
static int file_of(struct rls_code_map *map, pid_t pid, const struct rls_mapping *mapping,
		   struct code_file **out)
{
	_cleanup_free_ char *path = NULL;
	dev_t device = 0;
	ino_t inode = 0;

	*out = NULL;
	if (!is_vdso(mapping) && (!rls_mapping_is_file(mapping) ||
				  rls_mapping_locate(pid, mapping, &path, &device, &inode)))
		return 0;
	*out = rls_index_map_get(&map->files, device, inode);
	return *out ? 0 : file_new(map, device, inode, out);
}

/* By a process that maps it. Words of a stack point into files of which nothing more is asked: it waits for a
 * question. */
static struct rls_native_file *file_open(struct code_file *file, pid_t pid,
					 const struct rls_mapping *mapping)
{
	_cleanup_free_ char *path = NULL;
	dev_t device;
	ino_t inode;

	if (file->opened)
		return file->native;
	if (!is_vdso(mapping) && (rls_mapping_locate(pid, mapping, &path, &device, &inode) ||
				  device != file->device || inode != file->inode))
		return NULL;
	file->opened = true;
	if (is_vdso(mapping) ? rls_native_file_open_vdso(&file->native)
			     : rls_native_file_open(path, pid, mapping->path, &file->native))
		file->native = NULL;
	return file->native;
}

static int slot_at(struct rls_code_map *map, pid_t pid, const struct view *view,
		   const struct rls_mapping *mapping, struct code_file **out)
{
	struct slot *slot = &view->slots[mapping - view->mappings.entries];

	if (!slot->asked) {
		int r = file_of(map, pid, mapping, &slot->file);

		if (r)
			return r;
		slot->asked = true;
	}
	*out = slot->file;
	return 0;
}

/* Known by its name, ahead of the libraries' table: a program that has just begun is
 * sampled before it is inspected. */
static bool find_interpreter(struct code_file *file, pid_t pid, const struct rls_mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	if (!slash || (strncmp(slash, "/python", 7) && strncmp(slash, "/libpython", 10)) ||
	    !file_open(file, pid, mapping) || !rls_native_file_is_interpreter(file->native))
		return false;
	file->role.role = RLS_ROLE_PYTHON;
	rls_native_file_evaluation(file->native, &file->role.evaluation);
	return true;
}

/* A file may be found to have a role, and more of it be probed, after it was first seen here. */
static const struct rls_code_file *role_of(const struct rls_code_map *map, pid_t pid,
					   const struct rls_mapping *mapping,
					   struct code_file *file)
{
	size_t known = map->libraries ? rls_libraries_known(map->libraries) : 0;

	if (!file->probed && file->known != known) {
		file->known = known;
		file->probed = rls_libraries_file(map->libraries, file->device, file->inode);
		if (file->probed)
			file->role.role = file->probed->role;
		if (file->probed && file->role.role == RLS_ROLE_PYTHON &&
		    file_open(file, pid, mapping))
			rls_native_file_evaluation(file->native, &file->role.evaluation);
	}
	if (!file->probed && !file->asked) {
		file->asked = true;
		file->interpreter = find_interpreter(file, pid, mapping);
	}
	if (!file->probed)
		return file->interpreter ? &file->role : NULL;
	file->role.sites = file->probed->offsets;
	file->role.site_count = file->probed->offset_count;
	return &file->role;
}

/* ---- questions ---- */

/* *mapping is NULL where nothing is known. */
static int mapping_at(struct process *process, pid_t pid, uint64_t time_ns, uint64_t address,
		      bool certain, const struct rls_mapping **mapping)
{
	struct view *view;
	int r;

	*mapping = rls_mappings_at(&process->view->mappings, address);
	if (*mapping || !certain || time_ns < process->view->read_ns + READ_AGAIN_NS)
		return 0;
	r = view_read(pid, time_ns, &view);
	if (r)
		return r;
	view_drop(process->view);
	process->view = view;
	*mapping = rls_mappings_at(&view->mappings, address);
	return 0;
}

int rls_code_map_find(struct rls_code_map *map, pid_t pid, uint64_t time_ns, uint64_t address,
		      bool certain, struct rls_code_place *out)
{
	struct rls_code_place place = {.address = address};
	struct code_file *file = NULL;
	struct process *process;
	int r = process_have(map, pid, time_ns, &process);

	if (!r)
		r = mapping_at(process, pid, time_ns, address, certain, &place.mapping);
	if (!r && place.mapping)
		r = slot_at(map, pid, process->view, place.mapping, &file);
	if (r)
		return r;
	if (file)
		place.role = role_of(map, pid, place.mapping, file);
	*out = place;
	return 0;
}

struct rls_native_file *rls_code_map_native(struct rls_code_map *map, pid_t pid,
					    const struct rls_code_place *place, uint64_t *vaddr)
{
	const struct rls_mapping *mapping = place->mapping;
	struct process *process = mapping ? process_find(map, pid) : NULL;
	struct rls_native_file *native;
	struct code_file *file;

	*vaddr = place->address;
	if (!process || slot_at(map, pid, process->view, mapping, &file) || !file)
		return NULL;
	native = file_open(file, pid, mapping);
	if (!native ||
	    rls_native_file_vaddr(native, place->address - mapping->start + mapping->file_offset,
				  vaddr))
		return NULL;
	return native;
}

int rls_code_map_frame_bytes(struct rls_code_map *map, pid_t pid,
			     const struct rls_code_place *place, uint64_t *out)
{
	uint64_t vaddr;
	const struct rls_native_file *file = rls_code_map_native(map, pid, place, &vaddr);

	return file ? rls_native_file_frame_bytes(file, vaddr, out) : -ENOENT;
}

const char *rls_code_map_compiled(struct rls_code_map *map, pid_t pid, uint64_t time_ns,
				  const struct rls_code_place *place, uint64_t *start)
{
	struct process *process = process_find(map, pid);
	struct rls_perf_map *compiled;
	const char *name;

	if (!process || !place->mapping || !place->mapping->executable)
		return NULL;
	name = process->compiled ? rls_perf_map_find(process->compiled, place->address, start)
				 : NULL;
	if (name || time_ns < process->compiled_again_ns)
		return name;
	process->compiled_again_ns = time_ns + READ_AGAIN_NS;
	if (rls_perf_map_read(pid, &compiled))
		return NULL;
	process->compiled_again_ns += rls_perf_map_bytes(compiled) * READ_AGAIN_NS_PER_BYTE;
	rls_perf_map_free(process->compiled);
	process->compiled = compiled;
	return rls_perf_map_find(compiled, place->address, start);
}

int rls_code_map_prepare(struct rls_code_map *map, pid_t pid, uint64_t code_bytes, uint64_t time_ns)
{
	struct process *process;
	int r = process_have(map, pid, time_ns, &process);

	for (size_t i = 0; !r && i < process->view->mappings.count; i++) {
		const struct rls_mapping *mapping = &process->view->mappings.entries[i];
		struct rls_native_file *native;
		struct code_file *file;

		if (!mapping->executable || mapping->end - mapping->start < code_bytes)
			continue;
		r = slot_at(map, pid, process->view, mapping, &file);
		native = !r && file ? file_open(file, pid, mapping) : NULL;
		if (native)
			rls_native_file_prepare(native);
	}
	return r;
}

/* ---- all ---- */

int rls_code_map_new(const struct rls_libraries *libraries, struct rls_code_map **out)
{
	struct rls_code_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	map->libraries = libraries;
	*out = map;
	return 0;
}

void rls_code_map_free(struct rls_code_map *map)
{
	if (!map)
		return;
	forget_all(map);
	while (map->all_files) {
		struct code_file *file = map->all_files;

		map->all_files = file->next;
		rls_native_file_close(file->native);
		free(file);
	}
	rls_index_map_free(&map->files);
	free(map);
}
