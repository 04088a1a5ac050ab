/* CPU priority: the profiler takes the CPU time that nobody else wants, as long as it keeps up.
 *
 *     prepare    spare, polite or usual, as each piece of work asks ── patience ends ──▶ usual
 *     record     spare ── a target waits, or the loop is late ──▶ ahead of all ──▶ spare
 *     watch       ·   ·   ·   ·   ·   ·
 *
 * A job whose threads hand work to each other stands still while one of them waits for the CPU that we are on, and
 * no correction knows of that. With two CPUs, one handover and back took 50 us longer while another loop was
 * traced. Under SCHED_IDLE (sched(7)) a thread that wakes up takes the CPU at once. But where all CPUs are
 * wanted we would not run at all, and records would be lost. So a watch thread raises us where preparing takes
 * too long, or where the recorder's loop does not come around: for a while, and for longer each time.
 * A thread that is put off its CPU keeps its locks, a target's among them, for as long as that takes: at most
 * some 40 ms, now and then, of a host that is wholly busy.
 *
 * Of one thread at a time, the one that prepares or records. Threads that it makes meanwhile have the priority it has
 * then. Where priorities cannot be raised again nothing is lowered.
 */
#ifndef RLS_CPU_PRIORITY_H
#define RLS_CPU_PRIORITY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum rls_priority {
	RLS_PRIORITY_USUAL, /* what targets wait for, like probes being put on; while recording: ahead of all */
	RLS_PRIORITY_POLITE, /* behind others, but never for long: reading a target's memory takes
				 * a lock that it may want */
	RLS_PRIORITY_SPARE, /* only when a CPU has nothing else to do: work in our own memory */
};

/* Zeroed: not begun. For tests; all else is by the functions. */
extern struct rls_cpu_priority {
	pthread_t watch;
	int end_fd; /* the watch ends when it can be read */
	int alarm_fd; /* its reader may not wait for a CPU; -1: there is none */
	bool begun, able; /* able: there is a watch, and priorities can be raised again */
	bool records; /* else it prepares */
	pid_t thread;
	int nice; /* its own, before */
	enum rls_priority now; /* as the thread has it */
	bool raised; /* by the watch, which the thread has not seen yet */
	uint64_t beat_ns; /* when the loop came around last */
	uint64_t until_ns; /* the watch's: when patience ends; or so long the loop is ahead */
	uint64_t hold_ns; /* the watch's: how long it stays ahead once it was late */
} rls_cpu_priority;

/* The calling thread prepares a recording, and is usual after so long, whatever is set. */
void rls_priority_prepare(uint64_t patience_ns);
/* While it prepares. Returns what was set before. No-op at other times, and on other threads. */
enum rls_priority rls_priority_set(enum rls_priority priority);

/* The calling thread's recording loop begins. With one CPU nothing changes but its nice.
 * When alarm_fd (-1: none) can be read the loop is ahead at once, for long enough to read it and do what it is for. */
void rls_priority_record(int alarm_fd);
/* The loop has come around. */
void rls_priority_beat(uint64_t now_ns);
/* For what targets wait for: ahead of all until the next beat. No-op while it does not record. */
void rls_priority_hurry(void);

/* Preparing or recording is over: as it was before. */
void rls_priority_end(void);

/* The calling thread alone, for a moment: ahead of what all others ask for, as far as that is allowed. Returns what
 * rls_priority_lower takes. */
int rls_priority_raise(void);
void rls_priority_lower(int nice);
/* The calling thread alone, for good: it is not to hold locks while it only has what others leave over. */
void rls_priority_leave_spare(void);
/* The other thread of ours gets the calling thread's. */
void rls_priority_copy_to(pid_t thread);

/* For the rest of the block: _priority_ = rls_priority_set(RLS_PRIORITY_SPARE). */
static inline void rls_cleanup_priority(enum rls_priority *before)
{
	rls_priority_set(*before);
}
#define _priority_ __attribute__((cleanup(rls_cleanup_priority), unused)) enum rls_priority before

#endif
