/* Modified files: detects that somebody writes to a probed file.
 *
 * A breakpoint belongs to an offset in a file, and the kernel writes it into each process that
 * maps the file. If a library is rewritten in place (by cp; not by package managers and linkers,
 * which make a new file), the offset may be inside another instruction of the next process, which
 * then fails without a message. So the probes are removed as soon as writing begins. No process
 * can map the written bytes before that. See inotify(7).
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
