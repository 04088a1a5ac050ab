/* Probed files: which library files have probes, and where.
 *
 * A probed site stays probed until the recording ends. The exceptions are return probes that would
 * harm (stack_switching.h) and files that are written to (modified_files.h). Functions that are
 * found later only add sites.
 */
#ifndef RLS_PROBED_FILES_H
#define RLS_PROBED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/discover/roles/boundary.h"
#include "userspace/plan/planner.h"
#include "userspace/record/probes/file_table.h"

struct rls_probed_file {
	struct rls_file *identity;
	enum rls_role role;
	size_t sites; /* live probes */
	uint64_t live_ns; /* when the first of them were */
	uint64_t *offsets; /* of the sites tried, ascending */
	size_t offset_count;
	uint64_t *functions; /* addresses of the functions planned, ascending: a function found
	                         * again must not get a second site */
	size_t function_count;
	uint32_t *batches; /* the first ids of the sites that were attached together */
	size_t batch_count, batch_room;
	bool has_two_roles; /* another process maps it by a name of another role, which was reported */
	bool spared; /* no return probes, see stack_switching.h */
	int watch; /* its number in modified_files.h; -1: none */
	bool written; /* to, since it was probed: it has no probes any more, and gets none */
	char *path; /* as the first process that mapped it sees it */
};

struct rls_probed_files {
	struct rls_kernel *kernel;
	/* Gets each site at an entry of CUDA, before its first hit: 0 or -errno. NULL: nobody wants it. */
	int (*cuda_entry)(void *context, uint32_t site, const char *name);
	void *cuda_entry_context;
	struct rls_files *table;
	struct rls_probed_file **files;
	size_t count, room;
	int written_fd; /* of modified_files.h; -1: there is none */
	uint32_t
		sites_max; /* ids from here on are not given: no budget could count their hits; 0: there is none */
	uint32_t next_site; /* ids go up and are never used again */
	size_t sites; /* live, over all files */
};

/* Zeroed but for what is borrowed, it may be used after this. */
void rls_probed_files_open(struct rls_probed_files *files);
void rls_probed_files_clear(struct rls_probed_files *files);

/* What is to be probed in a file. */
struct rls_probed_plan {
	struct rls_probed_file *file;
	const char *host_path; /* the library's, as are names in the plan */
	bool spared; /* the file was when it was planned */
	struct rls_plan plan;
};

/* Planning takes its time, in which what is probed already is hit; so plan all that is to be probed together
 * before any of it is attached. What of the library is not probed or planned yet, which may be nothing: 0
 * and *out, to be attached while the library lives; or -errno after a message. */
int rls_probed_files_plan(struct rls_probed_files *files, const struct rls_library *library,
			  struct rls_probed_plan *out);
/* The plan is used up. 0 or -errno after a message. */
int rls_probed_files_attach(struct rls_probed_files *files, struct rls_probed_plan *planned);

/* One after the other. */
int rls_probed_files_add(struct rls_probed_files *files, const struct rls_library *library);

/* Takes all probes off the files that somebody writes to, reports each that had any, and lets them be from then on.
 * Inexpensive where there is none, so it may be called often. 0, -ENOMEM or what report returned. */
int rls_probed_files_check(struct rls_probed_files *files,
			   int (*report)(void *context, const struct rls_probed_file *file),
			   void *context);

/* Takes the return probes off; the file's functions count as new again, so that adding its
 * library gives them other ends. 0 or -ENOMEM. */
int rls_probed_files_spare(struct rls_probed_files *files, struct rls_probed_file *file);

#endif
