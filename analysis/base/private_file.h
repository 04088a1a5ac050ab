/* Files that only the user who asked for them may read.
 */
#ifndef RLS_PRIVATE_FILE_H
#define RLS_PRIVATE_FILE_H

#include <stdbool.h>

/* Creates path anew for reading and writing, mode 0600, close-on-exec. A regular file that
 * was there is replaced, never written into: somebody else may have it open, or own it.
 * Under sudo the file is given to the user who called sudo. Symbolic links are not
 * followed as the last component, nor in a directory that everybody may write to.
 *
 * It is locked (flock) until it is closed, and one that another holds so is left alone.
 *
 * 0 and *fd, or -errno: -ELOOP for such a link, -EEXIST when path is there and no regular file,
 * -EBUSY when somebody is still writing it. */
int rls_private_file_create(const char *path, int *fd);

/* Somebody is writing this file, who created it so. */
bool rls_private_file_is_busy(const char *path);

#endif
