/* Configuration files: lines of a word and its value, '#' begins a comment.
 *
 *     # roles and the monitor's settings are written so
 *     listen 127.0.0.1:9435
 */
#ifndef RLS_CONFIG_LINES_H
#define RLS_CONFIG_LINES_H

#include <stdbool.h>
#include <stdio.h>

struct rls_config_line {
	const char *path; /* for messages: "PATH, line NUMBER: ..." */
	unsigned int number; /* from 1 */
	const char *word;
	const char *value; /* the rest, without blanks at its ends; "" where there is none */
};

/* A value that is no more than one word. */
bool rls_config_is_word(const char *value);

/* Calls take for each line that has a word, until it returns other than 0, which is returned then.
 * 0, or -errno, said on stderr: it cannot be read, or a line has a NUL. */
int rls_config_lines_read(FILE *file, const char *path,
			  int (*take)(void *context, const struct rls_config_line *line),
			  void *context);

#endif
