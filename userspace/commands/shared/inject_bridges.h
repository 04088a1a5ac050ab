/* attach --inject: the CUPTI bridge into processes that use CUDA without it. */
#ifndef RLS_INJECT_BRIDGES_H
#define RLS_INJECT_BRIDGES_H

#include <stddef.h>
#include <sys/types.h>

/* Reports on stderr what fails or is not needed; recording continues either way. */
void rls_inject_bridges(const pid_t *pids, size_t count);

#endif
