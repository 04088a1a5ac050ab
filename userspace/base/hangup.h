/* Hangup: whether SIGHUP ends a recording. */
#ifndef RLS_HANGUP_H
#define RLS_HANGUP_H

#include <signal.h>
#include <stdbool.h>

/* nohup(1) starts its command with SIGHUP ignored: the command then survives the end of the terminal. */
static inline bool rls_hangup_is_ignored(void)
{
	struct sigaction before;

	return !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN;
}

#endif
