/* Written files: which of the files that are probed somebody writes to.
 *
 * A breakpoint has its place in a file, by which the kernel puts it into each process that maps it. Where a library
 * is written anew in place (cp; not by package managers and linkers, which make a new file), the place is in the
 * midst of another instruction of the next process, which goes wrong without a word. So probes go as soon as
 * writing begins, before which no one can map what is written. inotify(7).
 */
#ifndef RLS_MODIFIED_FILES_H
#define RLS_MODIFIED_FILES_H

#include <stddef.h>

/* A descriptor to poll, -1: they cannot be watched here. The caller closes it. */
int rls_modified_files_open(void);

/* From now on: the file's number among the watched ones; -1: it is not watched. */
int rls_modified_files_watch(int fd, const char *path);
void rls_modified_files_unwatch(int fd, int number);

/* The numbers of files that have been written to since, some of them twice; how many. Does not wait. */
size_t rls_modified_files_read(int fd, int *numbers, size_t room);

#endif
