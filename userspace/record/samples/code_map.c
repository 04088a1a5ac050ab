#include "userspace/record/samples/code_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/record/probes/probed_files.h"

#define EVALUATION_LOOP "_PyEval_EvalFrameDefault"

/* What a process maps; each mapping's file is found when it is first hit. */
struct process {
	pid_t pid;
	size_t known;               /* files with a role when it was read: more make it stale */
	uint64_t read_ns;
	struct rls_mappings mappings;
	struct slot {
		bool asked;
		struct rls_place_file *file;    /* NULL: no role */
		bool asked_frames;
		const struct rls_elf *elf;      /* NULL: it tells of no frames */
	} *slots;
};

/* A file without a role. */
struct plain_file {
	dev_t device;
	ino_t inode;
	struct rls_elf *elf;        /* NULL when it cannot be read */
};

struct rls_places {
	const struct rls_libraries *libraries;
	RLS_LIST(struct rls_place_file *) files;
	RLS_LIST(struct plain_file) plain_files;
	RLS_LIST(struct process) processes;
};

/* ---- files ---- */

static void file_free(struct rls_place_file *file)
{
	if (file->elf)
		rls_elf_close(file->elf);
	free(file->name);
	free(file);
}

/* The loop with what compilers have put aside of it. */
static int find_evaluation(struct rls_place_file *file)
{
	struct rls_evaluation *evaluation = &file->leaf.evaluation;
	struct rls_elf_symbol loop;
	size_t known = 0;
	int r;

	if (rls_elf_find_symbol(file->elf, EVALUATION_LOOP, &loop))
		return 0;
	r = rls_evaluation_find(file->elf, loop.vaddr, loop.size_bytes, evaluation);
	for (size_t i = 0; !r && i < evaluation->count; i++) {
		struct rls_elf_extent part = evaluation->parts[i];

		if (!rls_elf_file_offset(file->elf, part.vaddr, &part.vaddr))
			evaluation->parts[known++] = part;
	}
	evaluation->count = known;
	return r;
}

static int file_new(struct rls_places *places, const struct rls_probed_file *probed,
		    const char *host_path, const char *path, struct rls_place_file **out)
{
	const char *slash = strrchr(path, '/');
	struct rls_place_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->probed = probed;
	file->leaf.role = probed->role;
	file->name = strdup(slash ? slash + 1 : path);
	if (rls_elf_open(host_path, &file->elf))
		file->elf = NULL;
	if (!file->name ||
	    (file->elf && probed->role == RLS_ROLE_PYTHON && find_evaluation(file)) ||
	    rls_list_push(&places->files, file)) {
		file_free(file);
		return -ENOMEM;
	}
	*out = file;
	return 0;
}

/* The mapping's file: *out is NULL when it has no role. */
static int file_of(struct rls_places *places, pid_t pid, const struct rls_mapping *mapping,
		   struct rls_place_file **out)
{
	const struct rls_probed_file *probed = NULL;
	_cleanup_free_ char *host_path = NULL;
	dev_t device;
	ino_t inode;

	if (rls_mapping_is_file(mapping) &&
	    !rls_mapping_locate(pid, mapping, &host_path, &device, &inode))
		probed = rls_libraries_file(places->libraries, device, inode);
	*out = NULL;
	if (!probed)
		return 0;
	for (size_t i = 0; i < places->files.count; i++) {
		if (places->files.items[i]->probed == probed) {
			*out = places->files.items[i];
			return 0;
		}
	}
	return file_new(places, probed, host_path, mapping->path, out);
}

/* ---- processes ---- */

static void process_release(struct process *process)
{
	rls_mappings_release(&process->mappings);
	free(process->slots);
}

static struct process *process_find(struct rls_places *places, pid_t pid)
{
	for (size_t i = 0; i < places->processes.count; i++) {
		if (places->processes.items[i].pid == pid)
			return &places->processes.items[i];
	}
	return NULL;
}

void rls_places_forget(struct rls_places *places, pid_t pid)
{
	for (size_t i = places ? places->processes.count : 0; i > 0; i--) {
		struct process *process = &places->processes.items[i - 1];

		if (pid && process->pid != pid)
			continue;
		process_release(process);
		*process = places->processes.items[--places->processes.count];
	}
}

static int process_read(struct rls_places *places, pid_t pid, uint64_t time_ns,
			struct process **out)
{
	struct process process = { .pid = pid, .known = rls_libraries_known(places->libraries),
				   .read_ns = time_ns };
	int r = rls_mappings_read(pid, &process.mappings);

	if (r)
		return r;
	process.slots = calloc(process.mappings.count + 1, sizeof(*process.slots));
	if (!process.slots || rls_list_push(&places->processes, process)) {
		process_release(&process);
		return -ENOMEM;
	}
	*out = &places->processes.items[places->processes.count - 1];
	return 0;
}

/* Mapped but unknown addresses are read for again at most this often. */
#define READ_AGAIN_NS 100000000ULL

static int process_at(struct rls_places *places, pid_t pid, uint64_t time_ns, uint64_t address,
		      bool certain, struct process **out)
{
	struct process *process = process_find(places, pid);

	if (process && process->known == rls_libraries_known(places->libraries) &&
	    (!certain || rls_mappings_at(&process->mappings, address) ||
	     time_ns < process->read_ns + READ_AGAIN_NS)) {
		*out = process;
		return 0;
	}
	rls_places_forget(places, pid);
	return process_read(places, pid, time_ns, out);
}

static int file_at(struct rls_places *places, const struct process *process,
		   const struct rls_mapping *mapping, struct rls_place_file **out)
{
	struct slot *slot = &process->slots[mapping - process->mappings.entries];

	if (!slot->asked) {
		int r = file_of(places, process->pid, mapping, &slot->file);

		if (r)
			return r;
		slot->asked = true;
	}
	*out = slot->file;
	if (slot->file) { /* more may have been probed since */
		slot->file->leaf.sites = slot->file->probed->offsets;
		slot->file->leaf.site_count = slot->file->probed->offset_count;
	}
	return 0;
}

int rls_places_find(struct rls_places *places, pid_t pid, uint64_t time_ns, uint64_t address,
		    bool certain, struct rls_place *out)
{
	struct rls_place place = { 0 };
	struct process *process;
	int r = process_at(places, pid, time_ns, address, certain, &process);

	if (r)
		return r;
	place.mapping = rls_mappings_at(&process->mappings, address);
	if (place.mapping)
		r = file_at(places, process, place.mapping, &place.file);
	if (!r)
		*out = place;
	return r;
}

/* ---- frames ---- */

static int plain_file_of(struct rls_places *places, pid_t pid, const struct rls_mapping *mapping,
			 const struct rls_elf **out)
{
	struct plain_file file = { 0 };
	_cleanup_free_ char *host_path = NULL;

	*out = NULL;
	if (!rls_mapping_is_file(mapping) ||
	    rls_mapping_locate(pid, mapping, &host_path, &file.device, &file.inode))
		return 0;
	for (size_t i = 0; i < places->plain_files.count; i++) {
		const struct plain_file *known = &places->plain_files.items[i];

		if (known->device == file.device && known->inode == file.inode) {
			*out = known->elf;
			return 0;
		}
	}
	if (rls_elf_open(host_path, &file.elf))
		file.elf = NULL;
	if (rls_list_push(&places->plain_files, file)) {
		if (file.elf)
			rls_elf_close(file.elf);
		return -ENOMEM;
	}
	*out = file.elf;
	return 0;
}

int rls_places_frame_bytes(struct rls_places *places, pid_t pid, const struct rls_place *place,
			   uint64_t address, uint64_t *out)
{
	const struct process *process = process_find(places, pid);
	struct slot *slot;
	uint64_t vaddr;
	int r = 0;

	if (!process || !place->mapping)
		return -ENOENT;
	slot = &process->slots[place->mapping - process->mappings.entries];
	if (!slot->asked_frames && place->file)
		slot->elf = place->file->elf;
	else if (!slot->asked_frames)
		r = plain_file_of(places, pid, place->mapping, &slot->elf);
	if (r)
		return r;
	slot->asked_frames = true;
	if (!slot->elf || rls_elf_vaddr_of_offset(slot->elf, address - place->mapping->start +
							     place->mapping->file_offset, &vaddr))
		return -ENOENT;
	return rls_elf_frame_bytes(slot->elf, vaddr, out);
}

/* ---- all ---- */

int rls_places_new(const struct rls_libraries *libraries, struct rls_places **out)
{
	struct rls_places *places = calloc(1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	places->libraries = libraries;
	*out = places;
	return 0;
}

void rls_places_free(struct rls_places *places)
{
	if (!places)
		return;
	rls_places_forget(places, 0);
	for (size_t i = 0; i < places->files.count; i++)
		file_free(places->files.items[i]);
	for (size_t i = 0; i < places->plain_files.count; i++) {
		if (places->plain_files.items[i].elf)
			rls_elf_close(places->plain_files.items[i].elf);
	}
	free(places->plain_files.items);
	free(places->files.items);
	free(places->processes.items);
	free(places);
}
