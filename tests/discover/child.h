/* A Python child that has done its setup and waits. */
#ifndef RLS_TEST_CHILD_H
#define RLS_TEST_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int to, from; /* its stdin and stdout */
};

/* Starts python on a program in the given folder; false when it cannot be started or does
 * not come to print "ready". The program's stdin and stdout are pipes. */
bool child_start(struct child *child, const char *python, const char *folder, const char *program);
/* Reads one line of its output (without the newline); false at its end. */
bool child_line(struct child *child, char *line, size_t size_bytes);
void child_say(struct child *child, const char *line);
void child_stop(struct child *child);

#endif
