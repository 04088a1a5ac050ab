/* Selection: which processes the user means by --name, --cgroup, --container and --all.
 * A process is selected when any of them says so. Pure: scan.h brings the processes. */
#ifndef RLS_SELECTION_H
#define RLS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "userspace/record/targets/process_info.h"

/* Bits: what a selector goes by, and so what must be known of a process. */
enum rls_selector_kind {
	RLS_SELECT_NAME = 1,
	RLS_SELECT_CGROUP = 2,
	RLS_SELECT_CONTAINER = 4,
	RLS_SELECT_ALL = 8,
};

struct rls_selector {
	enum rls_selector_kind kind;
	char *text; /* glob, cgroup's path, container's id; NULL for ALL */
	size_t matches; /* processes it selected when it was resolved; not for ALL */
};

struct rls_selection {
	struct rls_selector *selectors;
	size_t count, room;
	unsigned int kinds; /* all their bits */
};

/* What is known of a process. The texts are its own; NULL where no selector asks. */
struct rls_candidate {
	pid_t pid, ppid;
	char comm[64]; /* 15 characters, those that stat escapes escaped */
	char *cmdline; /* words, a NUL behind each */
	size_t cmdline_bytes;
	char *cgroup; /* as /proc/PID/cgroup */
	char container[RLS_CONTAINER_BYTES];
	bool is_job; /* Python with a library that has a role */
};

/* Adds a selector; text is copied. 0; -EINVAL for a text that can select nothing: an empty
 * one, a container's id that is not 1 to 64 hex digits; -ENOMEM. */
int rls_selection_add(struct rls_selection *selection, enum rls_selector_kind kind,
		      const char *text);
void rls_selection_clear(struct rls_selection *selection);

/* NAME: a glob on comm, the base name of the command, or that of the script or the name of
 * the module (-m) that an interpreter is given. CGROUP: cgroup v2 path, and what is below.
 * CONTAINER: the id, or its beginning. ALL: is_job. */
bool rls_selector_matches(const struct rls_selector *selector,
			  const struct rls_candidate *candidate);
bool rls_selection_matches(const struct rls_selection *selection,
			   const struct rls_candidate *candidate);

#endif
