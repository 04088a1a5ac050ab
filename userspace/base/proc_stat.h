/* The words of /proc/PID/stat and /proc/PID/task/TID/stat. */
#ifndef RLS_PROC_STAT_H
#define RLS_PROC_STAT_H

#include <string.h>

/* In the text of a process's or thread's "stat": where the word of this number begins, as
 * proc_pid_stat(5) counts them, from 3 on (the second is a name, which may hold anything).
 * NULL: there is none. */
static inline const char *rls_stat_word(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int word = 2; at && word < number; word++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : NULL;
}

#endif
