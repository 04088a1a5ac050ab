/* Text file: the page as DIR/rlscope.prom for node_exporter's textfile collector. */
#ifndef RLS_TEXT_FILE_H
#define RLS_TEXT_FILE_H

#include <stddef.h>

#define RLS_TEXT_FILE_NAME "rlscope.prom"

/* Replaces the file at once, by renaming, mode 0644; a reader sees the old page or the new one.
 * What was left of another try is replaced too. Symbolic links in DIR are not followed.
 * 0 or -errno; nothing is said. */
int rls_text_file_write(const char *directory, const char *text, size_t bytes);

/* 0 when the file was removed or is not there, or -errno. */
int rls_text_file_remove(const char *directory);

#endif
