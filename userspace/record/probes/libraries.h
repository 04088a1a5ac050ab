/* Libraries: which files have probes, and which processes map them.
 *
 *     scan(pid): /proc/PID/maps ─▶ discover (new files only) ─▶ plan ─▶ attach
 *                                    └─▶ ranges for the kernel side, LIBRARY events
 *
 * Probes belong to files. A process that maps a known file costs only the scan of its mappings.
 * Tables of Python methods may fill long after their file was mapped, so a process is scanned
 * again after it mapped something new (rescan_schedule.h).
 */
#ifndef RLS_LIBRARIES_H
#define RLS_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/targets/target_table.h"

struct rls_files;
struct rls_mapping;
struct rls_mappings;
struct rls_probed_file;
struct rls_roles;
struct rls_libraries;

/* All borrowed. It observes the targets: to it, only they are processes. 0 or -errno. */
int rls_libraries_new(struct rls_kernel *kernel, const struct rls_roles *roles,
		      struct rls_event_output *output, struct rls_targets *targets,
		      struct rls_libraries **out);
/* Calls back with the files that a process maps whenever these have changed. 0 or -ENOMEM. */
void rls_libraries_on_mappings(struct rls_libraries *libraries,
			       int (*mapped)(void *context, struct rls_files *files, pid_t pid,
					     const struct rls_mappings *mappings),
			       void *context);
/* Calls back for each site at an entry of CUDA from here on, before its first hit: 0 or -errno. */
void rls_libraries_on_cuda_entry(struct rls_libraries *libraries,
				 int (*cuda_entry)(void *context, uint32_t site, const char *name),
				 void *context);
/* Whether some process has a CUPTI bridge that can be armed; arms or disarms all of them. */
bool rls_libraries_bridged(const struct rls_libraries *libraries);
void rls_libraries_arm(struct rls_libraries *libraries, bool armed);
void rls_libraries_free(struct rls_libraries *libraries);

/* Looks at what the process maps now, probes what is new and has a role. 0, or -errno
 * when the process is gone or cannot be read; libraries that fail alone are warnings. */
int rls_libraries_scan(struct rls_libraries *libraries, pid_t pid, uint64_t now_ns);

/* Probes what the file of a mapping says, whose process has ended. pid: a process that finds it by the mapping's path, so
 * that it is the same file by device and inode. Once for each file. 0, -ENOMEM; another failure is a message. */
int rls_libraries_probe_mapping(struct rls_libraries *libraries, pid_t pid,
				const struct rls_mapping *mapping);

/* Calls back each time that a file has been probed, which takes a while when there are many: for
 * looking at what was mapped meanwhile. It may call rls_libraries_mapped, but not scan. */
void rls_libraries_on_probed(struct rls_libraries *libraries, void (*probed)(void *context),
			     void *context);

/* Some process of the host, recorded or not, has mapped path (pid 0: anyone anything). Takes
 * return probes off at once where they would harm it (stack_switching.h). 0 or -ENOMEM. */
int rls_libraries_mapped(struct rls_libraries *libraries, pid_t pid, const char *path);

/* When a scan of this process is due again because of young files; 0: not by itself. */
uint64_t rls_libraries_due_ns(const struct rls_libraries *libraries, pid_t pid);

/* "3.11.2", "" when it is not (or not yet known to be) Python. */
const char *rls_libraries_python(const struct rls_libraries *libraries, pid_t pid);
/* Libraries with a role other than python that the process maps. */
size_t rls_libraries_count(const struct rls_libraries *libraries, pid_t pid);
/* Does it map the CUDA driver and no CUPTI bridge, so that nobody tells of its GPU times? */
bool rls_libraries_is_blind(const struct rls_libraries *libraries, pid_t pid);
/* Address in the process of its rls_annotate_descriptor, or 0. */
uint64_t rls_libraries_annotation(const struct rls_libraries *libraries, pid_t pid);

/* Takes probes off files that are written to, and says so: for each turn of the loop, which may wait for the
 * descriptor (-1: there is none). 0 or -errno. */
int rls_libraries_check_files(struct rls_libraries *libraries);
int rls_libraries_written_fd(const struct rls_libraries *libraries);

/* Files whose sites would get ids from this one on are not probed, with a message. */
void rls_libraries_count_to(struct rls_libraries *libraries, uint32_t sites_max);

/* The file with this identity, NULL when none with a role has been seen; it stays where it is
 * until the libraries are freed, its sites do not. */
const struct rls_probed_file *rls_libraries_file(const struct rls_libraries *libraries,
						 dev_t device, ino_t inode);
/* Files with a role seen so far, probed or not. */
size_t rls_libraries_known(const struct rls_libraries *libraries);
/* Live probes and files, over all. */
size_t rls_libraries_sites(const struct rls_libraries *libraries);
/* Ids that sites have been given: 0 and on. */
size_t rls_libraries_site_ids(const struct rls_libraries *libraries);
size_t rls_libraries_files(const struct rls_libraries *libraries);

#endif
