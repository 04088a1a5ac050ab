/* Launch: the command of `run`, from before its first instruction to its exit status.
 *
 * It is forked early and held before its exec until the recorder is ready. Signals sent to us
 * are meant for the command. Those sent to the whole process group, as by a terminal, have
 * reached it already; the others are passed on. A witness, a process of the same group that
 * counts every signal, distinguishes the two cases.
 */
#ifndef RLS_CHILD_COMMAND_H
#define RLS_CHILD_COMMAND_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define RLS_LAUNCH_SIGNALS (SIGTERM + 1) /* the highest of those that are passed on */

/* Shared with the witness. */
struct rls_child_command_counts {
	atomic_uint sent[RLS_LAUNCH_SIGNALS];
};

struct rls_child_command {
	pid_t pid;
	pid_t witness; /* -1: none */
	struct rls_child_command_counts *counts; /* NULL without a witness */
	unsigned int seen[RLS_LAUNCH_SIGNALS]; /* of the counts */
	int go_fd; /* one byte lets it go; closed without, it exits */
	/* After rls_child_command_reap: the errno where it could not be executed, which is
	 * reported on stderr; 0: it was. */
	int exec_error;
	bool signalled;
	int status; /* of waitpid, after rls_child_command_reap */
};

/* 0 or -errno, said on stderr. */
int rls_child_command_hold(char **command, struct rls_child_command *out);
void rls_child_command_let_go(struct rls_child_command *launch);

/* Passes on SIGINT, SIGTERM or SIGHUP that only we have received. False for a second signal, which
 * is meant to end the recording too. */
bool rls_child_command_signal(struct rls_child_command *launch, int signal, bool from_terminal);

/* Waits for the command to end, passing on SIGINT, SIGTERM and SIGHUP (which must be blocked). 0 or
 * -errno, said on stderr: it is not known how the command ended. */
int rls_child_command_reap(struct rls_child_command *launch);

/* The command's own exit status, 128 + signal when it was killed. */
int rls_child_command_status(const struct rls_child_command *launch);

#endif
