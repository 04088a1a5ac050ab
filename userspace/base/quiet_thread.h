/* Threads of ours with all signals blocked: the main thread alone reads signals. */
#ifndef RLS_QUIET_THREAD_H
#define RLS_QUIET_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create: 0 or an error number. */
static inline int rls_quiet_thread_create(pthread_t *thread, const pthread_attr_t *attributes,
					  void *(*work)(void *context), void *context)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread, attributes, work, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

#endif
