/* Identity: the name of a job.
 *
 *     RLSCOPE_JOB in its first process's environment, else the id of its container, its systemd
 *     unit, its cgroup, its command
 *
 * All of it is hostile input: it is cut, and control characters become '?'.
 */
#ifndef RLS_MONITOR_IDENTITY_H
#define RLS_MONITOR_IDENTITY_H

#include <stddef.h>
#include <sys/types.h>

#include "userspace/record/targets/process_info.h"

#define RLS_JOB_NAME_BYTES 128
#define RLS_JOB_CGROUP_BYTES 512
#define RLS_JOB_CONTAINER_DIGITS 12 /* of its id, in a job's name */

struct rls_job_identity {
	char name[RLS_JOB_NAME_BYTES];
	char container[RLS_CONTAINER_BYTES];
	char unit[RLS_JOB_NAME_BYTES];
	char cgroup[RLS_JOB_CGROUP_BYTES];
	char command[64];
};

/* Of a running process; what cannot be read of it any more is "", its name never. */
void rls_job_identity_read(pid_t pid, struct rls_job_identity *out);

/* The parts, pure. */

/* The value of RLSCOPE_JOB in the text of /proc/PID/environ; "" when it has none. */
void rls_job_of_environment(const char *text, size_t length, char out[RLS_JOB_NAME_BYTES]);
/* The path of cgroup v2, else of systemd's own hierarchy, in the text of /proc/PID/cgroup. */
void rls_cgroup_path(const char *text, char out[RLS_JOB_CGROUP_BYTES]);
/* The innermost element that is a systemd service or scope; "" when none is. */
void rls_unit_of_cgroup(const char *path, char out[RLS_JOB_NAME_BYTES]);
/* Chooses the name from the rest. */
void rls_job_name(const char *asked, struct rls_job_identity *identity);

#endif
