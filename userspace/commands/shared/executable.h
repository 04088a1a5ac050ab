/* Executable: whether a command can be executed, before anything is prepared for it. */
#ifndef RLS_EXECUTABLE_H
#define RLS_EXECUTABLE_H

#include <limits.h>

/* Whether execvp() would find and execute the command, as far as files say: it is there (for a name
 * without a slash on PATH), a plain file, executable by us, and so is the interpreter that a script
 * names. 0, or -errno, reported on stderr. What only the kernel knows is left to execvp(). */
int rls_executable_check(const char *command);

/* The file that executing the command maps: where it is, or the interpreter of a script. 0 or -errno; says nothing. */
int rls_executable_image(const char *command, char path[static PATH_MAX]);

/* The exit status of a shell for a command that cannot be executed. error: an errno. */
int rls_executable_status(int error);

#endif
