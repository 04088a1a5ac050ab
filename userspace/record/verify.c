#include "userspace/record/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cleanup.h"
#include "userspace/discover/list.h"
#include "userspace/log.h"
#include "userspace/record/hot_functions.h"
#include "userspace/record/leaf.h"
#include "userspace/record/probed_files.h"
#include "userspace/record/verify_text.h"

#define EVALUATION_LOOP "_PyEval_EvalFrameDefault"

/* A file with a role that was seen executing. */
struct file {
	const struct rls_probed_file *probed;
	char *name;                 /* of its path, for people */
	struct rls_elf *elf;        /* NULL when it cannot be read */
	struct rls_leaf_file leaf;
	RLS_LIST(uint64_t) blind;   /* vaddrs */
};

/* What a process maps; each mapping's file is found when it is first hit. */
struct process {
	pid_t pid;
	size_t known;               /* files with a role when it was read: more make it stale */
	uint64_t read_ns;
	struct rls_mappings mappings;
	struct place {
		bool asked;
		struct file *file;  /* NULL: no role */
	} *places;
};

struct rls_verify {
	const struct rls_libraries *libraries;
	struct rls_verify_counts counts;
	RLS_LIST(struct file *) files;
	RLS_LIST(struct process) processes;
};

/* ---- files ---- */

static void file_free(struct file *file)
{
	if (file->elf)
		rls_elf_close(file->elf);
	free(file->blind.items);
	free(file->name);
	free(file);
}

static void find_evaluation(struct file *file)
{
	struct rls_elf_symbol loop;
	uint64_t offset;

	if (rls_elf_find_symbol(file->elf, EVALUATION_LOOP, &loop) ||
	    rls_elf_file_offset(file->elf, loop.vaddr, &offset))
		return;
	file->leaf.evaluation.start = offset;
	file->leaf.evaluation.end = offset + loop.size_bytes;
}

static int file_new(struct rls_verify *verify, const struct rls_probed_file *probed,
		    const char *host_path, const char *path, struct file **out)
{
	const char *slash = strrchr(path, '/');
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->probed = probed;
	file->leaf.role = probed->role;
	file->name = strdup(slash ? slash + 1 : path);
	if (!file->name || rls_list_push(&verify->files, file)) {
		file_free(file);
		return -ENOMEM;
	}
	if (rls_elf_open(host_path, &file->elf))
		file->elf = NULL;
	else if (probed->role == RLS_ROLE_PYTHON)
		find_evaluation(file);
	*out = file;
	return 0;
}

/* The mapping's file: *out is NULL when it has no role. */
static int file_of(struct rls_verify *verify, pid_t pid, const struct rls_mapping *mapping,
		   struct file **out)
{
	const struct rls_probed_file *probed = NULL;
	_cleanup_free_ char *host_path = NULL;
	dev_t device;
	ino_t inode;

	if (rls_mapping_is_file(mapping) &&
	    !rls_mapping_locate(pid, mapping, &host_path, &device, &inode))
		probed = rls_libraries_file(verify->libraries, device, inode);
	*out = NULL;
	if (!probed)
		return 0;
	for (size_t i = 0; i < verify->files.count; i++) {
		if (verify->files.items[i]->probed == probed) {
			*out = verify->files.items[i];
			return 0;
		}
	}
	return file_new(verify, probed, host_path, mapping->path, out);
}

/* ---- processes ---- */

static void process_release(struct process *process)
{
	rls_mappings_release(&process->mappings);
	free(process->places);
}

static struct process *process_find(struct rls_verify *verify, pid_t pid)
{
	for (size_t i = 0; i < verify->processes.count; i++) {
		if (verify->processes.items[i].pid == pid)
			return &verify->processes.items[i];
	}
	return NULL;
}

void rls_verify_forget(struct rls_verify *verify, pid_t pid)
{
	for (size_t i = verify ? verify->processes.count : 0; i > 0; i--) {
		struct process *process = &verify->processes.items[i - 1];

		if (pid && process->pid != pid)
			continue;
		process_release(process);
		*process = verify->processes.items[--verify->processes.count];
	}
}

static int process_read(struct rls_verify *verify, pid_t pid, uint64_t time_ns,
			struct process **out)
{
	struct process process = { .pid = pid, .known = rls_libraries_known(verify->libraries),
				   .read_ns = time_ns };
	int r = rls_mappings_read(pid, &process.mappings);

	if (r)
		return r;
	process.places = calloc(process.mappings.count + 1, sizeof(*process.places));
	if (!process.places || rls_list_push(&verify->processes, process)) {
		process_release(&process);
		return -ENOMEM;
	}
	*out = &verify->processes.items[verify->processes.count - 1];
	return 0;
}

/* Mapped but unknown addresses are read for again at most this often. */
#define READ_AGAIN_NS 100000000ULL

static int process_at(struct rls_verify *verify, const struct rls_wire_sample *sample,
		      struct process **out)
{
	pid_t pid = (pid_t)sample->header.pid;
	struct process *process = process_find(verify, pid);

	if (process && process->known == rls_libraries_known(verify->libraries) &&
	    (rls_mappings_at(&process->mappings, sample->ip) ||
	     sample->header.time_ns < process->read_ns + READ_AGAIN_NS)) {
		*out = process;
		return 0;
	}
	rls_verify_forget(verify, pid);
	return process_read(verify, pid, sample->header.time_ns, out);
}

/* ---- samples ---- */

static int place_of(struct rls_verify *verify, const struct process *process,
		    const struct rls_mapping *mapping, struct file **out)
{
	struct place *place = &process->places[mapping - process->mappings.entries];

	if (!place->asked) {
		int r = file_of(verify, process->pid, mapping, &place->file);

		if (r)
			return r;
		place->asked = true;
	}
	*out = place->file;
	if (place->file) { /* more may have been probed since */
		place->file->leaf.sites = place->file->probed->offsets;
		place->file->leaf.site_count = place->file->probed->offset_count;
	}
	return 0;
}

static int note_blind(struct file *file, const struct rls_mapping *mapping, uint64_t address)
{
	uint64_t vaddr;

	if (!file->elf || rls_elf_vaddr_of_offset(file->elf,
						  address - mapping->start + mapping->file_offset,
						  &vaddr))
		return 0;
	return rls_list_push(&file->blind, vaddr);
}

static int judge(struct rls_verify *verify, const struct rls_wire_sample *sample,
		 const struct process *process)
{
	const struct rls_mapping *mapping = rls_mappings_at(&process->mappings, sample->ip);
	bool in_kernel = sample->header.flags & RLS_SAMPLE_KERNEL;
	struct file *file = NULL;
	enum rls_category should;
	enum rls_leaf leaf;
	int r = mapping ? place_of(verify, process, mapping, &file) : 0;

	if (r)
		return r;
	leaf = rls_leaf_of(mapping, file ? &file->leaf : NULL, sample->ip, in_kernel);
	verify->counts.by[sample->category][leaf]++;
	if (sample->category == RLS_CATEGORY_PYTHON && rls_leaf_has_category(leaf, &should))
		return note_blind(file, mapping, sample->ip);
	return 0;
}

int rls_verify_add(struct rls_verify *verify, const struct rls_wire_header *record, size_t size)
{
	const struct rls_wire_sample *sample = (const struct rls_wire_sample *)record;
	struct process *process;
	int r;

	if (size < sizeof(*sample) || sample->category >= RLS_CATEGORY_MAX)
		return 0;
	if (!(sample->header.flags & RLS_SAMPLE_TRACED)) {
		verify->counts.untraced++;
		return 0;
	}
	r = process_at(verify, sample, &process);
	if (r == -ENOMEM)
		return r;
	if (r) {
		verify->counts.unplaced++;
		return 0;
	}
	return judge(verify, sample, process);
}

/* ---- telling ---- */

/* The functions in the blind spot, most samples first. */
static int blind_functions(struct rls_verify *verify, struct rls_hot_function **out, size_t *count)
{
	_cleanup_free_ struct rls_hot_function *functions = NULL;
	size_t found = 0;

	for (size_t i = 0; i < verify->files.count; i++) {
		struct file *file = verify->files.items[i];
		int r = rls_hot_functions_add(file->elf, file->name, file->blind.items,
					      file->blind.count, &functions, &found);

		if (r)
			return r;
	}
	rls_hot_functions_sort(functions, found);
	*out = rls_take(functions);
	*count = found;
	return 0;
}

/* Takes the text. */
static int tell(struct rls_trace_output *output, uint64_t time_ns, char *text)
{
	_cleanup_free_ char *owned = text;

	if (!text)
		return -ENOMEM;
	rls_info("%s", text);
	return rls_trace_output_warning(output, time_ns, text);
}

int rls_verify_report(struct rls_verify *verify, struct rls_trace_output *output, uint64_t time_ns)
{
	_cleanup_free_ struct rls_hot_function *functions = NULL;
	const struct rls_verify_counts *counts = &verify->counts;
	size_t count = 0;
	int r = blind_functions(verify, &functions, &count);

	for (size_t i = 0; i < count; i++)
		rls_debug("blind: %zu samples, %s+0x%lx %s", functions[i].samples,
			  functions[i].file, functions[i].vaddr,
			  functions[i].name ? functions[i].name : "");
	if (!r)
		r = tell(output, time_ns, rls_verify_blind_text(counts, functions, count));
	if (!r)
		r = tell(output, time_ns, rls_verify_missed_callbacks_text(counts));
	if (!r)
		r = tell(output, time_ns, rls_verify_shares_text(counts));
	return r;
}

/* ---- opening ---- */

int rls_verify_new(const struct rls_libraries *libraries, struct rls_verify **out)
{
	struct rls_verify *verify = calloc(1, sizeof(*verify));

	if (!verify)
		return -ENOMEM;
	verify->libraries = libraries;
	*out = verify;
	return 0;
}

void rls_verify_free(struct rls_verify *verify)
{
	if (!verify)
		return;
	rls_verify_forget(verify, 0);
	for (size_t i = 0; i < verify->files.count; i++)
		file_free(verify->files.items[i]);
	free(verify->files.items);
	free(verify->processes.items);
	free(verify);
}
