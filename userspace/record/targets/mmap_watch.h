/* Mmap watch: detects that a process maps something executable (dlopen, exec).
 *
 * A dummy software perf event per CPU carries PERF_RECORD_MMAP2 for the whole host. It costs
 * nothing while nothing is mapped, and needs neither tracefs nor kprobes. The caller looks up in
 * /proc what is mapped; the path in the record is only a hint whether that is urgent.
 */
#ifndef RLS_MMAP_WATCH_H
#define RLS_MMAP_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include "userspace/process/mappings.h"

struct rls_mmap_watch;

/* 0 or -errno. */
int rls_mmap_watch_open(struct rls_mmap_watch **out);
void rls_mmap_watch_close(struct rls_mmap_watch *watch);

/* An epoll descriptor, readable when there is something to drain. */
int rls_mmap_watch_fd(const struct rls_mmap_watch *watch);

/* mapping: for the call; its path is as the process sees it, cut to 255 bytes. time_ns: when it was mapped, on
 * CLOCK_MONOTONIC. */
typedef void (*rls_mapped_handler)(void *context, pid_t pid, const struct rls_mapping *mapping,
				   uint64_t time_ns);

/* Calls back for each executable file mapping since the last time. A full ring is reported
 * as pid 0 and a path of "": anyone may have mapped anything. */
void rls_mmap_watch_drain(struct rls_mmap_watch *watch, rls_mapped_handler mapped, void *context);

#endif
