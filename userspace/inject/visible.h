/* Visible: a file of ours, with a path by which a process can open it in its own file system. */
#ifndef RLS_VISIBLE_H
#define RLS_VISIBLE_H

#include <limits.h>
#include <sys/types.h>

struct rls_visible {
	char path[PATH_MAX]; /* for the process */
	int place_fd; /* where a copy's folder is; -1: there is no copy */
	char folder[64]; /* its name there, which the process may give to another meanwhile */
	int folder_fd; /* itself */
};

/* The file itself where the process sees it and everybody may read it; else a copy in a folder
 * of its own, where programs may be mapped from. 0; -ENOENT, -EROFS: nowhere to put one; -errno. */
int rls_visible_make(pid_t pid, const char *file, struct rls_visible *out);

/* Removes the copy; whoever has mapped it keeps it. */
void rls_visible_remove(struct rls_visible *visible);

#endif
