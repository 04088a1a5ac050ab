/* Reporters: which mapped files have probes where allocators report blocks of memory (plan/memory_sites.h). Each file
 * is probed once; the C library in each process alone, as all others of the host map it too. Probes go when somebody writes to it (modified_files.h).
 */
#ifndef RLS_REPORTERS_H
#define RLS_REPORTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"
#include "userspace/record/memory/libc_sites.h"
#include "userspace/record/probes/file_table.h"

struct rls_reporters {
	struct rls_kernel *kernel;
	int written_fd; /* of modified_files.h */
	struct rls_reporter_file {
		int watch;
		char *path; /* as the first process that mapped it sees it; owned */
	} * files;
	size_t count, room;
	size_t sites; /* put on so far */
	struct rls_libc_sites libc;
	/* Which rung of the C library's malloc has probes (plan/libc_code.h); RLS_LIBC_RUNGS: none. */
	uint8_t rung;
	struct rls_reporter_process {
		pid_t pid;
		uint32_t file; /* its C library, among files */
		char *path; /* from here; owned */
		bool fits; /* it has sites */
	} * processes; /* whose C library has been looked at */
	size_t process_count, process_room;
	struct rls_reporter_waiting {
		pid_t pid;
		uint64_t due_ns;
		char *path, *target_path; /* of its C library, from here and as it sees it; owned */
	} * waiting;
	size_t waiting_count, waiting_room;
	bool running; /* recording has begun: what can wait waits */
	bool at_once; /* nothing waits */
	size_t late; /* processes whose C library was probed some time after they began */
};

/* at_once: C libraries are probed as soon as they are mapped, else 5 s later. From the lowest rung on. */
void rls_reporters_open(struct rls_reporters *reporters, struct rls_kernel *kernel, bool at_once);
void rls_reporters_clear(struct rls_reporters *reporters);

/* Probes what is new among a process's mappings; once recording has begun, its C library 5 s later (rls_reporters_check). 0 or -ENOMEM; a file that cannot be probed is a debug message. */
int rls_reporters_scan(struct rls_reporters *reporters, struct rls_files *table, pid_t pid,
		       const struct rls_mappings *mappings);
/* A child has the C library of its parent, at the same place. 0 or -ENOMEM. */
int rls_reporters_forked(struct rls_reporters *reporters, pid_t parent, pid_t child);
/* From now on that rung; where it cannot be relied on, the next higher one that can. */
void rls_reporters_set_rung(struct rls_reporters *reporters, uint8_t rung);
/* The process has ended, or executes another program. */
void rls_reporters_forget(struct rls_reporters *reporters, pid_t pid);
/* Recording has begun. */
void rls_reporters_begin(struct rls_reporters *reporters);
/* For each turn of the loop: probes the C library of a process that waits for that, and takes the probes off files that
 * are written to, and reports each. 0, -ENOMEM or what report returned. */
int rls_reporters_check(struct rls_reporters *reporters, uint64_t time_ns,
			int (*report)(void *context, const char *path), void *context);

#endif
