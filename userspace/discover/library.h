/* Library: one that is being examined; its file, where the process maps it, and what was found. */
#ifndef RLS_LIBRARY_H
#define RLS_LIBRARY_H

#include "userspace/discover/harvest.h"
#include "userspace/discover/roles/boundary.h"
#include "userspace/discover/roles/roles.h"
#include "userspace/elf/elf.h"
#include "userspace/process/mappings.h"

struct rls_open_library {
	struct rls_library *library; /* without functions until rls_open_library_finish */
	struct rls_elf *elf; /* NULL when the role has nothing to take from it */
	struct rls_role_match match;
};

/* mapping: the library's executable mapping. 0; -ENOEXEC; -errno. */
int rls_open_library_init(pid_t pid, const struct rls_mapping *mapping,
			  const struct rls_role_match *match, struct rls_open_library *out);
void rls_open_library_release(struct rls_open_library *open);

/* Where the process has it, for the scanner. False when it is not to be looked for. */
bool rls_open_library_target(const struct rls_open_library *open, struct rls_scan_target *out);

/* Exported functions that the match wants, and calls out into Python. 0 or -ENOMEM. */
int rls_open_library_add_exports(const struct rls_open_library *open,
				 struct rls_function_set *functions);
int rls_open_library_add_callbacks(const struct rls_open_library *open,
				   struct rls_function_set *functions);

/* Whether an exception may come from the file's own code: it has an exception table, or calls what C++ has. */
bool rls_library_may_throw(const struct rls_elf *elf);

struct rls_library *rls_library_new(const char *path, const char *host_path);
void rls_library_free(struct rls_library *library);

#endif
