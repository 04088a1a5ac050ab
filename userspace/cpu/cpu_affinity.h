/* CPU affinity: the recorder keeps off the CPUs that the threads it records run on, as long as there are
 * others. A scheduler leaves a thread that wakes up where it slept: on the target's CPU every tick of the recorder
 * would be time that the target waits, which no correction knows of.
 *
 *     records ─▶ the latest threads ─▶ their CPUs, by /proc ─▶ our affinity
 */
#ifndef RLS_CPU_AFFINITY_H
#define RLS_CPU_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RLS_AFFINITY_THREADS 8

struct rls_affinity {
	cpu_set_t allowed; /* to us, at first */
	bool able; /* false: there is one CPU, or we cannot tell */
	bool moved;
	uint64_t due_ns;
	struct rls_affinity_thread {
		uint32_t pid, tid;
	} threads[RLS_AFFINITY_THREADS]; /* that were recorded since; tid 0: none */
	unsigned int next;
	struct rls_affinity_thread latest; /* of all; tid 0: none */
	cpu_set_t left; /* where we were before a visit */
	int left_nice;
	int visited; /* the CPU */
	bool visiting;
};

void rls_affinity_open(struct rls_affinity *affinity);
/* We go wherever we like again. */
void rls_affinity_close(struct rls_affinity *affinity);

/* A record of that thread has come. */
static inline void rls_affinity_saw(struct rls_affinity *affinity, uint32_t pid, uint32_t tid)
{
	const struct rls_affinity_thread *last =
		&affinity->threads[(affinity->next + RLS_AFFINITY_THREADS - 1) %
				   RLS_AFFINITY_THREADS];

	if (last->tid == tid)
		return;
	affinity->threads[affinity->next] = (struct rls_affinity_thread){pid, tid};
	affinity->next = (affinity->next + 1) % RLS_AFFINITY_THREADS;
	affinity->latest = (struct rls_affinity_thread){pid, tid};
}

/* Moves when it is time to. */
void rls_affinity_tick(struct rls_affinity *affinity, uint64_t now_ns);

/* Until records tell, this is the thread to visit: the process's that has run most, of those that run now
 * if any does. */
void rls_affinity_expect(struct rls_affinity *affinity, pid_t pid);

/* For a moment of switching probes, onto the CPU of the thread that was recorded last, ahead of it, and
 * back. What is written into a process's code from another CPU has to interrupt it there, page by page,
 * and the process goes on meanwhile amid probes half put on or taken off. The calling thread alone. No-ops
 * where it cannot be, and where that thread is a real-time one. A visit amid a visit goes after it: a scheduler
 * moves who waits to a CPU that has nothing to do, such as the one that we have left. */
void rls_affinity_visit(struct rls_affinity *affinity);
void rls_affinity_leave(struct rls_affinity *affinity);

/* Pure: what is left of the allowed CPUs without the taken ones, or all that are allowed when
 * nothing is. */
cpu_set_t rls_affinity_choose(const cpu_set_t *allowed, const cpu_set_t *taken);

#endif
