/* Correction: subtracts costs and waiting from the spans of a thread in which they arose.
 *
 * Probe hits and off-CPU time are reported afterwards, as a sum since the thread's last report.
 * The spans since then are kept here. A report at instant t is distributed among them, the latest
 * first, because what was reported at t most likely happened just before:
 *
 *     category          operation        operation     category + hits
 *        |----- span 1 -----|---- span 2 ---|-- span 3 --|
 *      mark                                            t: cost goes to 3, then 2, then 1
 *
 * A sample may have shown where some of the off-CPU time ended; that much goes to the spans before
 * it.
 *
 * Hits cost CPU time only. They are subtracted from a span's cpu part, never from cpu+gpu (their
 * part of it is kept separately) and never below zero. Off-CPU time goes to both parts of a span,
 * in proportion. What finds no room is dropped; dropped hits are reported, in cpu+gpu time or
 * outside of any.
 */
#ifndef RLS_OVERHEAD_CORRECTION_H
#define RLS_OVERHEAD_CORRECTION_H

#include <stddef.h>
#include <stdint.h>

enum rls_part {
	RLS_PART_CPU = 0,
	RLS_PART_CPU_GPU = 1,
	RLS_PART_MAX = 2,
};

/* The figures of one (thread, phase, operation, category): one row per part. */
struct rls_cell {
	uint64_t wall_ns[RLS_PART_MAX];
	uint64_t off_cpu_ns[RLS_PART_MAX];
	uint64_t subtracted_ns; /* from the cpu part */
	uint64_t
		induced_wait_ns; /* of waiting in the cpu part, what other threads' hits made it longer (induced_wait.h) */
	uint64_t under_gpu_ns; /* what hits cost in the cpu+gpu part, of which all is left there */
	uint64_t sampled_ns
		[RLS_PART_MAX]; /* of the wall time, what is known by samples (untraced_time.h) */
	double sampled_error_ns[RLS_PART_MAX];
	uint64_t roleless_ran_ns; /* of native: running time traced as python (roleless_code.h) */
	uint64_t divided_ns[RLS_PART_MAX]; /* of it, what is this operation's by samples */
	double divided_error_ns[RLS_PART_MAX]; /* (sampled_operations.h) */
};

/* What of induced_wait_ns is taken: it lies in waiting in the cpu part, and no time is taken twice. */
uint64_t rls_cell_induced_wait_ns(const struct rls_cell *cell);

/* into += cell, all figures. */
void rls_cell_add(struct rls_cell *into, const struct rls_cell *cell);

/* Keeps at most this many spans; beyond, the older half is merged by cell. */
#define RLS_SPANS_MAX 1024

struct rls_span {
	struct rls_cell *cell; /* where its time was added; borrowed */
	struct rls_cell *also; /* and where else; NULL: nowhere */
	struct rls_cell *layer; /* the same, by layer; NULL: nowhere */
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t unsubtracted_ns; /* what may still be taken from the cpu part */
	uint64_t
		untaken_gpu_ns; /* of the cpu+gpu part, what no hit's cost has been found to lie in */
	uint64_t running_ns[RLS_PART_MAX]; /* what is not yet known to be off-CPU */
};

/* The instants of the latest two reports of a kind, so that a report at the very instant of
 * another event (an edge and its hits) still finds the spans that end there. */
struct rls_mark {
	uint64_t latest_ns;
	uint64_t before_ns; /* the latest one before latest_ns */
};

/* A wait that is yet to be reported. */
struct rls_noted_wait {
	uint64_t until_ns;
	uint64_t ns; /* 0: none. Some of it may have been reported before */
};

struct rls_span_window {
	struct rls_span *
		spans; /* sorted by time; each lies on one side of every mark and of the wait's end */
	size_t count;
	size_t capacity;
	struct rls_mark hits;
	struct rls_mark off_cpu;
	struct rls_noted_wait waited; /* the longest since the last report */
};

void rls_span_window_free(struct rls_span_window *window);

/* Forgets everything: a thread's life begins at start_ns. */
void rls_span_window_reset(struct rls_span_window *window, uint64_t start_ns);

/* Notes a report at at_ns; call it before dealing that report out. Instants never go back. */
static inline void rls_mark_set(struct rls_mark *mark, uint64_t at_ns)
{
	if (at_ns > mark->latest_ns) {
		mark->before_ns = mark->latest_ns;
		mark->latest_ns = at_ns;
	}
}

/* Where a span's time has been added; NULL: not there, but for cell. */
struct rls_span_cells {
	struct rls_cell *cell, *also, *layer;
};

/* Adds the span [start_ns, end_ns), cpu_gpu_ns of it with the GPU busy, already added;
 * start_ns >= the end of the last. 0, or -ENOMEM. */
int rls_span_window_push(struct rls_span_window *window, struct rls_span_cells cells,
			 uint64_t start_ns, uint64_t end_ns, uint64_t cpu_gpu_ns);

/* What of a cost was taken from nowhere. */
struct rls_unsubtracted {
	uint64_t under_gpu_ns; /* it lies in cpu+gpu time, from which nothing is taken */
	uint64_t unplaced_ns; /* there was no time at all that it could be */
};

/* The thread has waited until now, no longer than so: the next report will tell of it, and maybe of more. The span
 * that ends now has been pushed. */
void rls_span_window_note_wait(struct rls_span_window *window, uint64_t until_ns, uint64_t ns);

/* Deals out a report at the instant its mark was set to last. */
struct rls_unsubtracted rls_span_window_subtract(struct rls_span_window *window, uint64_t cost_ns);
/* The same; returns what found no room. */
uint64_t rls_span_window_take_off_cpu(struct rls_span_window *window, uint64_t off_ns);
/* The waiting just dealt out took so much longer for other threads' hits: to be called right after that. */
void rls_span_window_note_others(struct rls_span_window *window, uint64_t cost_ns);

/* Both parts of a cell. */
static inline uint64_t rls_cell_ns(const struct rls_cell *cell)
{
	return cell->wall_ns[RLS_PART_CPU] + cell->wall_ns[RLS_PART_CPU_GPU];
}

/* Calls are made while running: how long a thread waits or is kept waiting says nothing of them. */
static inline uint64_t rls_cell_ran_ns(const struct rls_cell *cell)
{
	return rls_cell_ns(cell) - cell->off_cpu_ns[RLS_PART_CPU] -
	       cell->off_cpu_ns[RLS_PART_CPU_GPU];
}

#endif
