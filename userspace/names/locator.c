#include "userspace/names/locator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/base/index_map.h"
#include "userspace/process/mappings.h"
#include "userspace/names/perf_map.h"

/* Mapped but unknown addresses are read for again at most this often. */
#define READ_AGAIN_NS 100000000ULL
/* And names of compiled code the less often the more there are, for reading takes time. */
#define READ_AGAIN_NS_PER_BYTE 100

struct file {
	dev_t device;
	ino_t inode;
	struct rls_native_file *native; /* NULL: cannot be read */
};

/* What a process maps. A child has its parent's until either maps something else. */
struct view {
	unsigned int users;
	uint64_t read_ns;
	struct rls_mappings mappings;
	struct slot {               /* one for each mapping */
		bool asked;
		struct file *file;
	} *slots;
};

struct process {
	struct view *view;
	struct rls_perf_map *compiled; /* NULL: not read, or none */
	uint64_t compiled_again_ns; /* not to be read again before */
};

struct rls_locator {
	struct rls_index_map processes; /* pid → struct process */
	struct rls_index_map files; /* device, inode → struct file */
	RLS_LIST(struct file *) all_files;
};

static void view_drop(struct view *view)
{
	if (!view || --view->users)
		return;
	rls_mappings_release(&view->mappings);
	free(view->slots);
	free(view);
}

static void process_free(struct process *process)
{
	view_drop(process->view);
	rls_perf_map_free(process->compiled);
	free(process);
}

int rls_locator_new(struct rls_locator **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void rls_locator_free(struct rls_locator *locator)
{
	if (!locator)
		return;
	for (size_t i = 0; i < locator->processes.capacity; i++) {
		if (locator->processes.entries[i].value)
			process_free(locator->processes.entries[i].value);
	}
	for (size_t i = 0; i < locator->all_files.count; i++) {
		rls_native_file_close(locator->all_files.items[i]->native);
		free(locator->all_files.items[i]);
	}
	free(locator->all_files.items);
	rls_index_map_free(&locator->processes);
	rls_index_map_free(&locator->files);
	free(locator);
}

void rls_locator_forget(struct rls_locator *locator, pid_t pid)
{
	struct process *process = rls_index_map_get(&locator->processes, (uint64_t)pid, 0);

	if (!process)
		return;
	rls_index_map_remove(&locator->processes, (uint64_t)pid, 0);
	process_free(process);
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

/* Takes the view over. */
static int process_new(struct rls_locator *locator, pid_t pid, struct view *view,
		       struct process **out)
{
	struct process *process = calloc(1, sizeof(*process));
	int r = process ? rls_index_map_put(&locator->processes, (uint64_t)pid, 0, process) :
			  -ENOMEM;

	if (r) {
		free(process);
		view_drop(view);
		return r;
	}
	process->view = view;
	*out = process;
	return 0;
}

static int process_read(struct rls_locator *locator, pid_t pid, uint64_t time_ns,
			struct process **out)
{
	struct view *view;
	int r = view_read(pid, time_ns, &view);

	return r ? r : process_new(locator, pid, view, out);
}

int rls_locator_fork(struct rls_locator *locator, pid_t parent, pid_t child, uint64_t time_ns)
{
	struct process *from = rls_index_map_get(&locator->processes, (uint64_t)parent, 0), *to;
	int r = from ? 0 : process_read(locator, parent, time_ns, &from);

	if (r || rls_index_map_get(&locator->processes, (uint64_t)child, 0))
		return r == -ENOMEM ? r : 0;
	from->view->users++;
	return process_new(locator, child, from->view, &to);
}

/* The process and, unless nothing is mapped there, the mapping at the address. */
static int mapping_at(struct rls_locator *locator, pid_t pid, uint64_t address, uint64_t time_ns,
		      struct process **out, const struct rls_mapping **mapping)
{
	struct process *process = rls_index_map_get(&locator->processes, (uint64_t)pid, 0);
	struct view *view;
	int r;

	if (!process) {
		r = process_read(locator, pid, time_ns, &process);
		if (r)
			return r;
	}
	*out = process;
	*mapping = rls_mappings_at(&process->view->mappings, address);
	if (*mapping || time_ns < process->view->read_ns + READ_AGAIN_NS)
		return 0;
	r = view_read(pid, time_ns, &view);
	if (r)
		return r;
	view_drop(process->view);
	process->view = view;
	*mapping = rls_mappings_at(&view->mappings, address);
	return 0;
}

static bool is_vdso(const struct rls_mapping *mapping)
{
	return !strcmp(mapping->path, RLS_VDSO_PATH);
}

static int file_open(const char *path, pid_t pid, const struct rls_mapping *mapping,
		     struct rls_native_file **out)
{
	return is_vdso(mapping) ? rls_native_file_open_vdso(out) :
				  rls_native_file_open(path, pid, mapping->path, out);
}

static int file_of(struct rls_locator *locator, pid_t pid, const struct rls_mapping *mapping,
		   struct file **out)
{
	_cleanup_free_ char *path = NULL;
	struct file *file, key = {0};
	int r;

	*out = NULL;
	if (!is_vdso(mapping) &&
	    (!rls_mapping_is_file(mapping) ||
	     rls_mapping_locate(pid, mapping, &path, &key.device, &key.inode)))
		return 0;
	*out = rls_index_map_get(&locator->files, key.device, key.inode);
	if (*out)
		return 0;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = key;
	r = rls_list_push(&locator->all_files, file);
	if (r) {
		free(file);
		return r;
	}
	if (file_open(path, pid, mapping, &file->native))
		file->native = NULL;
	*out = file;
	return rls_index_map_put(&locator->files, key.device, key.inode, file);
}

/* What the process's compiler says of an address in no file. */
static const char *name_compiled(struct process *process, pid_t pid, uint64_t address,
				 uint64_t time_ns, uint64_t *start)
{
	const char *name = process->compiled ?
				   rls_perf_map_find(process->compiled, address, start) : NULL;
	struct rls_perf_map *map;

	if (name || time_ns < process->compiled_again_ns)
		return name;
	process->compiled_again_ns = time_ns + READ_AGAIN_NS;
	if (rls_perf_map_read(pid, &map))
		return NULL;
	process->compiled_again_ns += rls_perf_map_bytes(map) * READ_AGAIN_NS_PER_BYTE;
	rls_perf_map_free(process->compiled);
	process->compiled = map;
	return rls_perf_map_find(map, address, start);
}

static int slot_at(struct rls_locator *locator, pid_t pid, const struct view *view,
		   const struct rls_mapping *mapping, struct rls_native_file **out)
{
	struct slot *slot = &view->slots[mapping - view->mappings.entries];

	if (!slot->asked) {
		int r = file_of(locator, pid, mapping, &slot->file);

		if (r)
			return r;
		slot->asked = true;
	}
	*out = slot->file ? slot->file->native : NULL;
	return 0;
}

int rls_locator_prepare(struct rls_locator *locator, pid_t pid, uint64_t code_bytes, uint64_t time_ns)
{
	struct process *process = rls_index_map_get(&locator->processes, (uint64_t)pid, 0);
	int r = process ? 0 : process_read(locator, pid, time_ns, &process);

	for (size_t i = 0; !r && i < process->view->mappings.count; i++) {
		const struct rls_mapping *mapping = &process->view->mappings.entries[i];
		struct rls_native_file *native;

		if (!mapping->executable || mapping->end - mapping->start < code_bytes)
			continue;
		r = slot_at(locator, pid, process->view, mapping, &native);
		if (!r && native)
			rls_native_file_prepare(native);
	}
	return r;
}

int rls_locator_find(struct rls_locator *locator, pid_t pid, uint64_t address, uint64_t time_ns,
		     struct rls_location *out)
{
	const struct rls_mapping *mapping = NULL;
	struct rls_native_file *native;
	struct process *process;
	int r = mapping_at(locator, pid, address, time_ns, &process, &mapping);

	if (!r && !mapping)
		r = -ENOENT;
	if (!r)
		r = slot_at(locator, pid, process->view, mapping, &native);
	if (r)
		return r;
	*out = (struct rls_location){ .vaddr = address, .path = mapping->path };
	if (native &&
	    !rls_native_file_vaddr(native, address - mapping->start + mapping->file_offset,
				   &out->vaddr))
		out->file = native;
	else if (mapping->executable)
		out->compiled = name_compiled(process, pid, address, time_ns, &out->vaddr);
	return 0;
}
