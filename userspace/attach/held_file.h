/* Held file: kept open so that probes can be put on it again later, when its path may be gone with a process.
 * Private to attach/.
 */
#ifndef RLS_HELD_FILE_H
#define RLS_HELD_FILE_H

struct rls_held_file {
	int fd; /* -1: none */
	char path[32]; /* /proc/self/fd/N: as good as the file's own while it is held */
};

/* 0 or -errno. The caller closes it. */
int rls_held_file_open(struct rls_held_file *file, const char *path);

void rls_held_file_close(struct rls_held_file *file);

#endif
