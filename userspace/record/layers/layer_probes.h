/* Layer probes: which interpreters have probes where they call objects.
 *
 * The function is found in a class of a running process, one that has a __call__ of its own: those of `exit` and
 * `help` are there before any library is imported. The probes belong to the interpreter's file, and so are there
 * for all processes that run it. They go when somebody writes to it (modified_files.h).
 */
#ifndef RLS_LAYER_PROBES_H
#define RLS_LAYER_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/plan/layer_sites.h"
#include "userspace/process/mappings.h"
#include "userspace/python/objects.h"
#include "userspace/python/python.h"
#include "userspace/record/probes/file_table.h"

struct rls_layer_probes_table {
	struct rls_kernel *kernel;
	int written_fd; /* of modified_files.h */
	struct rls_files *table; /* borrowed */
	struct rls_layer_probed {
		const struct rls_file *identity;
		int watch;
		bool refused; /* it cannot be probed, or not any more */
		bool spared; /* no return probes (stack_switching.h) */
		char *path,
			*host_path; /* as the first process that mapped it sees it, and as we do; owned */
		struct rls_layer_sites sites;
	} * files;
	size_t count, room;
};

void rls_layer_probes_open(struct rls_layer_probes_table *table, struct rls_kernel *kernel);
void rls_layer_probes_close(struct rls_layer_probes_table *table);

/* Probes the interpreter of a process. 0: its probes are live; -EAGAIN: no class shows the function yet; -ENOTSUP:
 * the interpreter cannot be probed; -ENOMEM or another -errno. */
int rls_layer_probes_add(struct rls_layer_probes_table *table, pid_t pid,
			 const struct rls_mappings *mappings, const struct rls_python *python,
			 const struct rls_object_reader *reader);

/* At once where a process has begun to switch stacks: takes the return probes off what it maps. Reports each file
 * that has no probes any more for that, and why. 0 or what report returned. */
int rls_layer_probes_spare(struct rls_layer_probes_table *table,
			   int (*report)(void *context, const char *path, const char *why),
			   void *context);
/* For each turn of the loop: the same of files that are written to, all probes. */
int rls_layer_probes_check(struct rls_layer_probes_table *table,
			   int (*report)(void *context, const char *path, const char *why),
			   void *context);

#endif
