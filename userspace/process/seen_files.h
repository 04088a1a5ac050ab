/* Seen files: which mapped files were examined already, so that a new scan costs little. */
#ifndef RLS_SEEN_FILES_H
#define RLS_SEEN_FILES_H

#include <stdbool.h>

#include "userspace/process/mappings.h"

struct rls_seen_files;

struct rls_seen_files *rls_seen_files_new(void);
void rls_seen_files_free(struct rls_seen_files *seen);

static inline void rls_cleanup_seen_files(struct rls_seen_files **seen)
{
	rls_seen_files_free(*seen);
}
#define _cleanup_seen_ __attribute__((cleanup(rls_cleanup_seen_files)))

/* 1 when the mapping's file is new (it is added), 0 when it was known, -ENOMEM. Files are
 * compared by what maps prints, so none is opened. */
int rls_seen_files_add(struct rls_seen_files *seen, const struct rls_mapping *mapping);

#endif
