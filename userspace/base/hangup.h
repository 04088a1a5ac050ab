/* Hangup: whether the end of the terminal is to end us. */
#ifndef RLS_HANGUP_H
#define RLS_HANGUP_H

#include <signal.h>
#include <stdbool.h>

/* So nohup(1) starts whom it starts: they go on when the terminal is closed. */
static inline bool rls_hangup_is_ignored(void)
{
	struct sigaction before;

	return !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN;
}

#endif
