/* Files that people write: configuration, certificates, accounts. */
#ifndef RLS_SMALL_FILE_H
#define RLS_SMALL_FILE_H

#define RLS_SMALL_FILE_BYTES_MAX (1024 * 1024)

/* The whole text of a regular file, NUL-terminated, the caller's. 0, or -errno, said on
 * stderr: unreadable, larger than that, no file, a NUL in it. */
int rls_small_file_read(const char *path, char **out);

#endif
