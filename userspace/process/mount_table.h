/* Mount table: one line of /proc/PID/mountinfo, such as
 * "66 63 0:40 / /mnt rw,relatime - overlay overlay rw,lowerdir=..." Pure. */
#ifndef RLS_MOUNT_TABLE_H
#define RLS_MOUNT_TABLE_H

#include <stdbool.h>

/* All of it borrowed from the line. */
struct rls_mount {
	const char *root; /* of the mount, within the file system */
	const char *point;
	const char *type;
	const char *options; /* the file system's, escaped */
};

/* Cuts the line, which may end in a newline. False: it is none of such a table. */
bool rls_mount_parse(char *line, struct rls_mount *out);

/* Undoes what the kernel escapes: \040 and the like. */
void rls_mount_unescape(char *text);

#endif
