#include "userspace/record/memory/reporters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"
#include "userspace/elf/elf.h"
#include "userspace/plan/libc_code.h"
#include "userspace/record/probes/modified_files.h"

#define WRITTEN_AT_ONCE 16

void rls_reporters_open(struct rls_reporters *reporters, struct rls_kernel *kernel, uint8_t rung)
{
	*reporters = (struct rls_reporters){
		.kernel = kernel, .written_fd = rls_modified_files_open(), .rung = rung};
}

void rls_reporters_clear(struct rls_reporters *reporters)
{
	for (size_t i = 0; i < reporters->count; i++)
		free(reporters->files[i].path);
	free(reporters->files);
	for (size_t i = 0; i < reporters->process_count; i++)
		free(reporters->processes[i].path);
	free(reporters->processes);
	if (reporters->kernel && reporters->written_fd >= 0)
		close(reporters->written_fd);
	*reporters = (struct rls_reporters){.written_fd = -1};
}

static size_t find_sites(const char *path, struct rls_memory_site *sites)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);
	struct rls_elf *elf;
	size_t count;

	if (rls_elf_open(path, &elf))
		return 0;
	count = rls_memory_sites(elf, sites);
	rls_elf_close(elf);
	return count;
}

static int add_file(struct rls_reporters *reporters, const char *host_path, const char *path,
		    size_t *number)
{
	struct rls_reporter_file file;
	int r = rls_grow(&reporters->files, &reporters->room, reporters->count);

	if (r)
		return r;
	file.path = strdup(path);
	if (!file.path)
		return -ENOMEM;
	file.watch = rls_modified_files_watch(reporters->written_fd, host_path);
	*number = reporters->count;
	reporters->files[reporters->count++] = file;
	return 0;
}

/* It is watched before it is read. */
static int probe_file(struct rls_reporters *reporters, const char *host_path, const char *path)
{
	struct rls_memory_site sites[RLS_MEMORY_SITES_MAX];
	size_t number, count;
	int r = add_file(reporters, host_path, path, &number);

	if (r)
		return r;
	count = find_sites(host_path, sites);
	r = rls_kernel_attach_memory(reporters->kernel, (uint32_t)number, host_path, sites, count);
	if (!r)
		reporters->sites += count;
	if (r || !count)
		rls_modified_files_unwatch(reporters->written_fd, reporters->files[number].watch);
	rls_debug("%s: %zu memory sites%s%s", path, count, r ? ": " : "", r ? strerror(-r) : "");
	return r == -ENOMEM ? r : 0;
}

/* The program itself may contain an interpreter under any name. It lies first, as a rule. */
static bool may_report(const struct rls_mapping *mapping, bool first)
{
	const char *name = strrchr(mapping->path, '/');

	return name && (first || rls_memory_sites_library(name + 1));
}

/* ---- the C library ---- */

static bool is_libc(const struct rls_mapping *mapping)
{
	const char *name = strrchr(mapping->path, '/');

	return name && rls_libc_library(name + 1);
}

static bool is_known(const struct rls_reporters *reporters, pid_t pid)
{
	for (size_t i = 0; i < reporters->process_count; i++)
		if (reporters->processes[i].pid == pid)
			return true;
	return false;
}

void rls_reporters_forget(struct rls_reporters *reporters, pid_t pid)
{
	for (size_t i = 0; i < reporters->process_count; i++) {
		if (reporters->processes[i].pid != pid)
			continue;
		free(reporters->processes[i].path);
		reporters->processes[i] = reporters->processes[--reporters->process_count];
		rls_kernel_detach_memory_of(reporters->kernel, pid, 0);
		return;
	}
}

/* Once for each file and reason. */
static void warn_of_libc(const char *path, const char *what, const char *reason)
{
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "%s of %s are not counted: %s", what, path, reason) >= 0 &&
	    !rls_log_has_warned(text))
		rls_warning("%s", text);
}

static int attach_rung(struct rls_reporters *reporters, const struct rls_reporter_process *process)
{
	int r = 0;

	if (!process->fits || reporters->rung >= RLS_LIBC_RUNGS)
		return 0;
	for (size_t i = 0; !r && i < reporters->libc.rungs[reporters->rung].count; i++)
		r = rls_kernel_attach_memory_of(reporters->kernel, process->pid, process->file,
						process->path,
						&reporters->libc.rungs[reporters->rung].sites[i]);
	return r;
}

void rls_reporters_set_rung(struct rls_reporters *reporters, uint8_t rung)
{
	while (rung < RLS_LIBC_RUNGS && reporters->libc.tried && !reporters->libc.rungs[rung].count)
		rung++;
	if (rung == reporters->rung)
		return;
	reporters->rung = rung;
	rls_kernel_detach_memory_of(reporters->kernel, 0, RLS_MEMORY_RUNG);
	for (size_t i = 0; i < reporters->process_count; i++) {
		const struct rls_reporter_process *process = &reporters->processes[i];
		int r = attach_rung(reporters, process);

		if (r && r != -ESRCH)
			warn_of_libc(reporters->files[process->file].path, "blocks", rls_reason(-r));
	}
}

/* 0 or -errno. */
static int attach_libc(struct rls_reporters *reporters, const struct rls_reporter_process *process,
		       const char *path)
{
	const struct rls_libc_sites *libc = &reporters->libc;
	int r = 0;

	if (libc->copies_reason)
		warn_of_libc(path, "copies", libc->copies_reason);
	else
		r = rls_kernel_attach_memory_of(reporters->kernel, process->pid, process->file,
						process->path, &libc->copies);
	if (libc->rungs_reason)
		warn_of_libc(path, "blocks", libc->rungs_reason);
	else if (!r)
		r = attach_rung(reporters, process);
	return r;
}

static int add_process(struct rls_reporters *reporters, pid_t pid, const char *host_path,
		       const char *path, struct rls_reporter_process **out)
{
	size_t number = 0;
	int r = rls_grow(&reporters->processes, &reporters->process_room, reporters->process_count);

	while (number < reporters->count && strcmp(reporters->files[number].path, path))
		number++;
	if (!r && number == reporters->count)
		r = add_file(reporters, host_path, path, &number);
	if (r)
		return r;
	*out = &reporters->processes[reporters->process_count];
	**out = (struct rls_reporter_process){
		.pid = pid, .file = (uint32_t)number, .path = strdup(host_path)};
	if (!(*out)->path)
		return -ENOMEM;
	reporters->process_count++;
	return 0;
}

static int probe_libc(struct rls_reporters *reporters, pid_t pid, const char *host_path,
		      const char *path)
{
	struct rls_reporter_process *process;
	const char *reason;
	int r = add_process(reporters, pid, host_path, path, &process);

	if (r)
		return r;
	reason = rls_libc_sites_fit(&reporters->libc, host_path, pid);
	if (reason) {
		warn_of_libc(path, "copies and blocks", reason);
		return 0;
	}
	process->fits = true;
	rls_reporters_set_rung(reporters, reporters->rung); /* it may be none to rely on */
	r = attach_libc(reporters, process, path);
	if (r && r != -ESRCH)
		warn_of_libc(path, "copies and blocks", strerror(-r));
	return r == -ENOMEM ? r : 0;
}

/* ---- mappings ---- */

int rls_reporters_scan(struct rls_reporters *reporters, struct rls_files *table, pid_t pid,
		       const struct rls_mappings *mappings)
{
	bool first = true;

	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];
		_cleanup_free_ char *path = NULL;
		struct rls_file *file;
		bool libc;
		int r;

		if (!mapping->executable || !rls_mapping_is_file(mapping))
			continue;
		libc = is_libc(mapping) && !is_known(reporters, pid);
		if (!libc && !may_report(mapping, first))
			continue;
		first = false;
		r = rls_files_locate(table, pid, mapping, &path, &file);
		if (!r && libc)
			r = probe_libc(reporters, pid, path, mapping->path);
		if (r == -ENOMEM)
			return r;
		if (libc)
			continue;
		if (r || file->reports_memory)
			continue;
		file->reports_memory = true;
		r = probe_file(reporters, path, mapping->path);
		if (r)
			return r;
	}
	return 0;
}

int rls_reporters_check(struct rls_reporters *reporters,
			int (*report)(void *context, const char *path), void *context)
{
	int numbers[WRITTEN_AT_ONCE], r = 0;
	size_t count = rls_modified_files_read(reporters->written_fd, numbers, WRITTEN_AT_ONCE);

	for (size_t i = 0; !r && i < count; i++) {
		for (size_t k = 0; !r && k < reporters->count; k++) {
			if (reporters->files[k].watch < 0 ||
			    reporters->files[k].watch != numbers[i])
				continue;
			rls_kernel_detach_memory(reporters->kernel, (uint32_t)k);
			rls_modified_files_unwatch(reporters->written_fd, numbers[i]);
			reporters->files[k].watch = -1;
			r = report(context, reporters->files[k].path);
		}
	}
	return r;
}
