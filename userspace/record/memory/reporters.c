#include "userspace/record/memory/reporters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/base/clock.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/elf/elf.h"
#include "userspace/plan/libc_code.h"
#include "userspace/record/probes/modified_files.h"

#define WRITTEN_AT_ONCE 16
/* After a process has mapped its C library: most that end soon have ended. What is counted of it takes the recorder's time
 * at their ends, when the names of their last lines cannot wait. */
#define LATER_NS 5000000000ULL

void rls_reporters_open(struct rls_reporters *reporters, struct rls_kernel *kernel, bool at_once)
{
	*reporters = (struct rls_reporters){
		.kernel = kernel, .written_fd = rls_modified_files_open(), .at_once = at_once};
	rls_libc_sites_prepare(&reporters->libc);
}

static void clear_waiting(struct rls_reporter_waiting *waiting)
{
	free(waiting->path);
	free(waiting->target_path);
}

void rls_reporters_clear(struct rls_reporters *reporters)
{
	for (size_t i = 0; i < reporters->count; i++)
		free(reporters->files[i].path);
	free(reporters->files);
	for (size_t i = 0; i < reporters->process_count; i++)
		free(reporters->processes[i].path);
	free(reporters->processes);
	for (size_t i = 0; i < reporters->waiting_count; i++)
		clear_waiting(&reporters->waiting[i]);
	free(reporters->waiting);
	if (reporters->kernel && reporters->written_fd >= 0)
		close(reporters->written_fd);
	*reporters = (struct rls_reporters){.written_fd = -1};
}

static size_t find_sites(const char *path, struct rls_memory_site *sites)
{
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
	for (size_t i = 0; i < reporters->waiting_count; i++)
		if (reporters->waiting[i].pid == pid)
			return true;
	return false;
}

static struct rls_reporter_waiting take_waiting(struct rls_reporters *reporters, size_t i)
{
	struct rls_reporter_waiting taken = reporters->waiting[i];

	reporters->waiting[i] = reporters->waiting[--reporters->waiting_count];
	return taken;
}

void rls_reporters_forget(struct rls_reporters *reporters, pid_t pid)
{
	for (size_t i = reporters->waiting_count; i-- > 0;) {
		struct rls_reporter_waiting gone;

		if (reporters->waiting[i].pid != pid)
			continue;
		gone = take_waiting(reporters, i);
		clear_waiting(&gone);
	}
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

		if (r && !rls_reason_is_end(r))
			warn_of_libc(reporters->files[process->file].path, "blocks", rls_reason(r));
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
	if (r && !rls_reason_is_end(r))
		warn_of_libc(path, "copies and blocks", rls_reason(r));
	return r == -ENOMEM ? r : 0;
}

/* ---- later ---- */

static int probe_libc_later(struct rls_reporters *reporters, pid_t pid, const char *path,
			    const char *target_path)
{
	struct rls_reporter_waiting waiting = {.pid = pid,
					       .due_ns = rls_monotonic_ns() +
							 (reporters->at_once ? 0 : LATER_NS),
					       .path = strdup(path),
					       .target_path = strdup(target_path)};

	if (!waiting.path || !waiting.target_path ||
	    rls_grow(&reporters->waiting, &reporters->waiting_room, reporters->waiting_count)) {
		clear_waiting(&waiting);
		return -ENOMEM;
	}
	reporters->waiting[reporters->waiting_count++] = waiting;
	return 0;
}

int rls_reporters_forked(struct rls_reporters *reporters, pid_t parent, pid_t child)
{
	const char *path = NULL, *target_path = NULL, *rest;
	_cleanup_free_ char *own = NULL;

	for (size_t i = 0; i < reporters->process_count; i++)
		if (reporters->processes[i].pid == parent) {
			path = reporters->processes[i].path;
			target_path = reporters->files[reporters->processes[i].file].path;
		}
	for (size_t i = 0; i < reporters->waiting_count; i++)
		if (reporters->waiting[i].pid == parent) {
			path = reporters->waiting[i].path;
			target_path = reporters->waiting[i].target_path;
		}
	if (!path || is_known(reporters, child))
		return 0;
	rest = strncmp(path, "/proc/", 6) ? NULL : strchr(path + 6, '/');
	if (rest && asprintf(&own, "/proc/%d%s", (int)child, rest) < 0)
		return -ENOMEM;
	return probe_libc_later(reporters, child, own ? own : path, target_path);
}

/* One at a time: each takes milliseconds. */
static int probe_waiting(struct rls_reporters *reporters, uint64_t time_ns)
{
	for (size_t i = 0; i < reporters->waiting_count; i++) {
		struct rls_reporter_waiting due;
		int r;

		if (reporters->waiting[i].due_ns > time_ns)
			continue;
		due = take_waiting(reporters, i);
		reporters->late += !reporters->at_once;
		r = probe_libc(reporters, due.pid, due.path, due.target_path);
		clear_waiting(&due);
		return r;
	}
	return 0;
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
			r = reporters->running && !reporters->at_once
				    ? probe_libc_later(reporters, pid, path, mapping->path)
				    : probe_libc(reporters, pid, path, mapping->path);
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

void rls_reporters_begin(struct rls_reporters *reporters)
{
	reporters->running = true;
}

int rls_reporters_check(struct rls_reporters *reporters, uint64_t time_ns,
			int (*report)(void *context, const char *path), void *context)
{
	int numbers[WRITTEN_AT_ONCE], r;
	size_t count = rls_modified_files_read(reporters->written_fd, numbers, WRITTEN_AT_ONCE);

	r = probe_waiting(reporters, time_ns);
	for (size_t i = 0; !r && i < count; i++) {
		for (size_t k = 0; !r && k < reporters->count; k++) {
			if (reporters->files[k].watch < 0 ||
			    reporters->files[k].watch != numbers[i])
				continue;
			rls_kernel_detach_memory(reporters->kernel, (uint32_t)k);
			rls_modified_files_unwatch(reporters->written_fd, numbers[i]);
			reporters->files[k].watch = -1;
			for (size_t p = 0; p < reporters->process_count; p++)
				if (reporters->processes[p].file == k)
					reporters->processes[p].fits = false;
			r = report(context, reporters->files[k].path);
		}
	}
	return r;
}
