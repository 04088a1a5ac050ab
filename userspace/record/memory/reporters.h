/* Reporters: which mapped files have probes where allocators report blocks of memory (plan/memory_sites.h). Each file
 * is probed once; the C library in each process alone, as all others of the host map it too. Probes go when somebody writes to it (modified_files.h).
 */
#ifndef RLS_REPORTERS_H
#define RLS_REPORTERS_H

#include <stddef.h>
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
};

/* rung: the lowest one at first. */
void rls_reporters_open(struct rls_reporters *reporters, struct rls_kernel *kernel, uint8_t rung);
void rls_reporters_clear(struct rls_reporters *reporters);

/* Probes what is new among a process's mappings. 0 or -ENOMEM; a file that cannot be probed is a debug message. */
int rls_reporters_scan(struct rls_reporters *reporters, struct rls_files *table, pid_t pid,
		       const struct rls_mappings *mappings);
/* From now on that rung; where it cannot be relied on, the next higher one that can. */
void rls_reporters_set_rung(struct rls_reporters *reporters, uint8_t rung);
/* The process has ended, or executes another program. */
void rls_reporters_forget(struct rls_reporters *reporters, pid_t pid);
/* For each turn of the loop: takes the probes off files that are written to, and reports each. 0 or what report returned. */
int rls_reporters_check(struct rls_reporters *reporters,
			int (*report)(void *context, const char *path), void *context);

#endif
