/* Launch: the command of `run`, from before its first instruction to its exit status.
 *
 * It is forked early and held before its exec until the recorder is ready. Signals sent to us
 * are meant for the command. Those sent to the whole process group, as by a terminal, have
 * reached it already; the others are passed on. A witness, a process of the same group that
 * counts every signal, distinguishes the two cases.
 */
#ifndef RLS_LAUNCH_H
#define RLS_LAUNCH_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define RLS_LAUNCH_SIGNALS (SIGTERM + 1) /* the highest of those that are passed on */

/* Shared with the witness. */
struct rls_launch_counts {
	atomic_uint sent[RLS_LAUNCH_SIGNALS];
};

struct rls_launch {
	pid_t pid;
	pid_t witness;          /* -1: none */
	struct rls_launch_counts *counts; /* NULL without a witness */
	unsigned int seen[RLS_LAUNCH_SIGNALS]; /* of the counts */
	int go_fd;              /* one byte lets it go; closed without, it exits */
	bool signalled;
	int status;             /* of waitpid, after rls_launch_reap */
};

/* 0 or -errno, said on stderr. */
int rls_launch_hold(char **command, struct rls_launch *out);
void rls_launch_let_go(struct rls_launch *launch);

/* Passes on SIGINT, SIGTERM or SIGHUP that only we have received. False for a second signal, which
 * is meant to end the recording too. */
bool rls_launch_signal(struct rls_launch *launch, int signal, bool from_terminal);

/* Waits for the command to end, passing on SIGINT, SIGTERM and SIGHUP (which must be blocked). 0 or
 * -errno, said on stderr: it is not known how the command ended. */
int rls_launch_reap(struct rls_launch *launch);

/* The command's own exit status, 128 + signal when it was killed. */
int rls_launch_status(const struct rls_launch *launch);

#endif
