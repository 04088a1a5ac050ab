/* Processes of several hosts in one picture.
 *
 * Hosts number their processes alike. One whose pid a process of another host has already gets a
 * number of its own, above all that Linux gives (PID_MAX_LIMIT, 2^22), so that a pid stands for
 * one process everywhere; its host and its pid there are said beside it.
 */
#ifndef RLS_HOST_PID_H
#define RLS_HOST_PID_H

#include <stdbool.h>
#include <stdint.h>

#define RLS_HOST_PID_BITS 22
#define RLS_HOSTS_MAX 500 /* so that numbers stay below 2^31 */

static inline bool rls_host_pid_fits(uint32_t pid)
{
	return pid < 1u << RLS_HOST_PID_BITS;
}

/* host from 0, below RLS_HOSTS_MAX. */
static inline uint32_t rls_host_pid(uint32_t host, uint32_t pid)
{
	return (host + 1) << RLS_HOST_PID_BITS | pid;
}

#endif
