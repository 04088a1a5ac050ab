#include "userspace/names/locator.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/cleanup.h"
#include "analysis/index_map.h"
#include "userspace/discover/list.h"
#include "userspace/discover/mappings.h"

/* Mapped but unknown addresses are read for again at most this often. */
#define READ_AGAIN_NS 100000000ULL

struct file {
	dev_t device;
	ino_t inode;
	struct rls_native_file *native; /* NULL: cannot be read */
};

struct process {
	uint64_t read_ns;
	struct rls_mappings mappings;
	struct slot {               /* one for each mapping */
		bool asked;
		struct file *file;
	} *slots;
};

struct rls_locator {
	struct rls_index_map processes; /* pid → struct process */
	struct rls_index_map files; /* device, inode → struct file */
	RLS_LIST(struct file *) all_files;
};

static void process_free(struct process *process)
{
	rls_mappings_release(&process->mappings);
	free(process->slots);
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

static int process_read(struct rls_locator *locator, pid_t pid, uint64_t time_ns,
			struct process **out)
{
	struct process *process = calloc(1, sizeof(*process));
	int r = process ? rls_mappings_read(pid, &process->mappings) : -ENOMEM;

	if (r) {
		free(process);
		return r;
	}
	process->read_ns = time_ns;
	process->slots = calloc(process->mappings.count + 1, sizeof(*process->slots));
	r = process->slots ? rls_index_map_put(&locator->processes, (uint64_t)pid, 0, process) :
			     -ENOMEM;
	if (r) {
		process_free(process);
		return r;
	}
	*out = process;
	return 0;
}

/* The process and, unless nothing is mapped there, the mapping at the address. */
static int mapping_at(struct rls_locator *locator, pid_t pid, uint64_t address, uint64_t time_ns,
		      struct process **process, const struct rls_mapping **mapping)
{
	*process = rls_index_map_get(&locator->processes, (uint64_t)pid, 0);
	if (*process) {
		*mapping = rls_mappings_at(&(*process)->mappings, address);
		if (*mapping || time_ns < (*process)->read_ns + READ_AGAIN_NS)
			return 0;
		rls_locator_forget(locator, pid);
	}
	int r = process_read(locator, pid, time_ns, process);

	if (!r)
		*mapping = rls_mappings_at(&(*process)->mappings, address);
	return r;
}

static int file_of(struct rls_locator *locator, pid_t pid, const struct rls_mapping *mapping,
		   struct file **out)
{
	_cleanup_free_ char *path = NULL;
	struct file *file, key = {0};
	int r;

	*out = NULL;
	if (!rls_mapping_is_file(mapping) ||
	    rls_mapping_locate(pid, mapping, &path, &key.device, &key.inode))
		return 0;
	*out = rls_index_map_get(&locator->files, key.device, key.inode);
	if (*out)
		return 0;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = key;
	r = rls_list_push(&locator->all_files, file);
	if (!r)
		r = rls_index_map_put(&locator->files, key.device, key.inode, file);
	if (r) {
		locator->all_files.count -= locator->all_files.count &&
					   locator->all_files.items[locator->all_files.count - 1] == file;
		free(file);
		return r;
	}
	if (rls_native_file_open(path, &file->native))
		file->native = NULL;
	*out = file;
	return 0;
}

int rls_locator_find(struct rls_locator *locator, pid_t pid, uint64_t address, uint64_t time_ns,
		    struct rls_location *out)
{
	const struct rls_mapping *mapping = NULL;
	struct process *process;
	struct slot *slot;
	int r = mapping_at(locator, pid, address, time_ns, &process, &mapping);

	if (r)
		return r;
	if (!mapping)
		return -ENOENT;
	slot = &process->slots[mapping - process->mappings.entries];
	if (!slot->asked) {
		r = file_of(locator, pid, mapping, &slot->file);
		if (r)
			return r;
		slot->asked = true;
	}
	*out = (struct rls_location){ .vaddr = address, .path = mapping->path };
	if (slot->file && slot->file->native &&
	    !rls_native_file_vaddr(slot->file->native,
				   address - mapping->start + mapping->file_offset, &out->vaddr))
		out->file = slot->file->native;
	return 0;
}
