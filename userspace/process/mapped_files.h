/* Mapped files: which file the kernel has behind a mapping.
 *
 * On an overlay file system a path leads to a file of a layer below: the one that was mapped, or the copy that has
 * been made of it since. Probes belong to the file below.
 *
 *     maps, stat()   /merged/lib.so   device and inode of the overlay
 *     the kernel     /lower/lib.so    device and inode of the layer
 *
 * Needs CAP_BPF and Linux 6.1. One thread.
 */
#ifndef RLS_MAPPED_FILES_H
#define RLS_MAPPED_FILES_H

#include <stdint.h>
#include <sys/types.h>

/* The file behind the mapping at the address. The mappings of one process are kept for a moment, for there are others
 * to ask about. 0; -ENOENT: no file there; -ENOTSUP: cannot be found out here; -errno. */
int rls_mapped_file_at(pid_t pid, uint64_t address, dev_t *device, ino_t *inode);

/* The file that this process, or a probe, gets by a path now. The same errors, and open()'s. */
int rls_mapped_file_of_path(const char *path, dev_t *device, ino_t *inode);

#endif
