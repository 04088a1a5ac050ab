/* Files as a process sees them: opened by its own paths, below its own root. */
#ifndef RLS_TARGET_FILE_H
#define RLS_TARGET_FILE_H

#include <sys/types.h>

/* Opens a file for reading by its absolute path in the process's file system; pid 0: in ours.
 * Links lead nowhere outside of that. The descriptor, or -errno. */
int rls_target_file_open(pid_t pid, const char *path);

#endif
