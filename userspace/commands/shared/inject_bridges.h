/* attach --inject: the CUPTI bridge into processes that use CUDA without it. */
#ifndef RLS_INJECT_BRIDGES_H
#define RLS_INJECT_BRIDGES_H

#include <stddef.h>
#include <sys/types.h>

/* What cannot be done, or need not be, is said on stderr; recording goes on either way. */
void rls_inject_bridges(const pid_t *pids, size_t count);

#endif
