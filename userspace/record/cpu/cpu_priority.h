/* Background: the recorder takes the CPU time that nobody else wants, as long as it keeps up.
 *
 *     loop     ▏▏▏▏▏▏▏▏▏▏▏▏        ▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏▏   beats
 *     runs     spare time ──── late! ahead of all ──────▶ spare time
 *     guard     ·   ·   ·   ·   ·
 *
 * A job whose threads hand work to each other stands still while one of them waits for the CPU that we are on, and
 * no correction knows of that: with two CPUs, one handing over and back took 50 us longer while another loop was
 * traced. Under SCHED_IDLE (sched(7)) whoever wakes up takes the CPU at once. But where all CPUs are
 * wanted we would not run at all, and records be lost; so a thread of ours looks whether the loop still comes
 * around, and puts it ahead of what all others ask for where it does not: for a while, and for longer each time.
 * Who is put off a CPU keeps the locks that it has, a target's among them, for as long as that takes: at most
 * some 40 ms, now and then, of a host that is wholly busy.
 *
 * Threads that the loop's makes are as it is then.
 */
#ifndef RLS_CPU_PRIORITY_H
#define RLS_CPU_PRIORITY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed: not begun. */
struct rls_background {
	pthread_t guard;
	int end_fd;             /* the guard ends when it can be read */
	int alarm_fd;           /* who has read it may not wait for a CPU; -1: there is none */
	bool begun, able;       /* able: there is a guard, and priorities can be raised again */
	pid_t thread;           /* whose loop it is */
	int nice;               /* its own, before */
	bool ahead;             /* of what all others ask for, as the loop has it */
	bool put_ahead;         /* by the guard, which the loop has not seen yet */
	uint64_t beat_ns;
	uint64_t ahead_until_ns, hold_ns;       /* the guard's */
};

/* The calling thread's loop begins. Where it may not run ahead of others, or there is one CPU, nothing changes but its nice.
 * When alarm_fd (-1: none) can be read the loop is ahead at once, for long enough to read it and do what it is for. */
void rls_background_begin(struct rls_background *background, int alarm_fd);
/* On the same thread: it has come around. */
void rls_background_beat(struct rls_background *background, uint64_t now_ns);
/* For what targets wait for: ahead of all until the next beat. No-op outside of begin and end. */
void rls_background_hurry(struct rls_background *background);
/* As it was before. */
void rls_background_end(struct rls_background *background);

#endif
