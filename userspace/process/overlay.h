/* Overlay file systems: which file of which layer is mapped. Private to process/. */
#ifndef RLS_OVERLAY_H
#define RLS_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

bool rls_overlay_holds(const char *path);

/* The identity of the file mapped at the address, as the kernel has it, and a path that leads to it from here.
 * name: what /proc/PID/maps calls it. *path leads to the file of
 * that name, and is replaced where that is another by now: it was copied up, and the mapping still has the one below.
 * 0; -ESTALE: that one cannot be reached from here; -ENOENT: the mapping is not there any more; -ENOTSUP: cannot be
 * found out here, of no file; -errno. */
int rls_overlay_locate(pid_t pid, uint64_t address, const char *name, char **path, dev_t *device,
		       ino_t *inode);

#endif
