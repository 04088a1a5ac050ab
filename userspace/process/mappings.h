/* Mappings: what /proc/PID/maps says, and the way back from a mapping to its file. */
#ifndef RLS_MAPPINGS_H
#define RLS_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rls_mapping {
	uint64_t start, end; /* addresses in the process */
	uint64_t file_offset;
	uint64_t inode; /* as the kernel prints it; not stat()'s on overlayfs */
	uint32_t device_major, device_minor; /* the same */
	bool readable, writable, executable, shared;
	bool deleted; /* the path has been unlinked or replaced */
	const char *path; /* "" when anonymous, "[heap]", "/usr/lib/..." */
};

struct rls_mappings {
	struct rls_mapping *entries; /* ascending, disjoint */
	size_t count;
	char *text; /* owns the paths */
};

/* Takes over text (of length bytes and a NUL behind them; modified). Lines that do not read
 * as mappings are left out. 0 or -ENOMEM (text is freed either way at last). */
int rls_mappings_parse(char *text, size_t length, struct rls_mappings *out);

/* 0; -ESRCH: no such process; -EACCES, -EPERM: no permission; -errno. */
int rls_mappings_read(pid_t pid, struct rls_mappings *out);
void rls_mappings_release(struct rls_mappings *mappings);

/* The mapping holding address, or NULL. */
const struct rls_mapping *rls_mappings_at(const struct rls_mappings *mappings, uint64_t address);

/* Whether it maps a file (and not a device, a pseudo-file or nothing). A file in memory is one if its
 * name has ".so" in it. */
bool rls_mapping_is_file(const struct rls_mapping *mapping);

/* Changes whenever something executable is mapped or unmapped. */
uint64_t rls_mappings_fingerprint(const struct rls_mappings *mappings);

/* A path that opens the mapped file from here, and its identity: stat()'s, and on overlay file systems one that is
 * the same in all mounts (*device is then no device's number). The target's own
 * path through /proc/PID/root, else (replaced, deleted) /proc/PID/map_files, which needs
 * privilege, else (copied up) the file of the layer below. *path is the caller's. 0; -ESTALE where that cannot be
 * reached; -errno. */
int rls_mapping_locate(pid_t pid, const struct rls_mapping *mapping, char **path, dev_t *device,
		       ino_t *inode);

#endif
