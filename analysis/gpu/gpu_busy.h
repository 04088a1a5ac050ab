/* GPU busy time: the length of a union of intervals that arrive sorted by start.
 *
 * G(t), the busy time before instant t, is known at t once every interval that starts before t has
 * arrived: a later one cannot change it. So a thread span [a, b) overlaps the GPU for exactly G(b)
 * - G(a). That costs O(1), however many kernels ran and whatever the number of threads, and no
 * span is sliced at GPU edges.
 */
#ifndef RLS_GPU_BUSY_H
#define RLS_GPU_BUSY_H

#include <stdint.h>

/* Zeroed: nothing yet. */
struct rls_gpu_busy {
	uint64_t closed_ns; /* length of the runs before the last */
	uint64_t run_start_ns; /* the last run of touching intervals */
	uint64_t run_end_ns;
};

/* start_ns must not be before that of an earlier call; end_ns >= start_ns. */
static inline void rls_gpu_busy_add(struct rls_gpu_busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns > busy->run_end_ns) {
		busy->closed_ns += busy->run_end_ns - busy->run_start_ns;
		busy->run_start_ns = start_ns;
		busy->run_end_ns = end_ns;
	} else if (end_ns > busy->run_end_ns) {
		busy->run_end_ns = end_ns;
	}
}

/* G(at_ns); at_ns must not be before the start of the last interval added. */
static inline uint64_t rls_gpu_busy_until(const struct rls_gpu_busy *busy, uint64_t at_ns)
{
	uint64_t end_ns = at_ns < busy->run_end_ns ? at_ns : busy->run_end_ns;

	return busy->closed_ns + (end_ns - busy->run_start_ns);
}

static inline uint64_t rls_gpu_busy_total(const struct rls_gpu_busy *busy)
{
	return busy->closed_ns + (busy->run_end_ns - busy->run_start_ns);
}

/* Windows of 1/6 s, counted from the start of the process's life, in which any kernel ran:
 * the period of nvidia-smi's utilisation on the finer of its two settings, and the sampling
 * that RL-Scope's finding F.11 holds against true busy time. Window k is
 * [k / 6 s, (k + 1) / 6 s), exactly, though that is no whole number of nanoseconds. */
struct rls_smi_windows {
	uint64_t busy; /* windows below next in which something ran */
	uint64_t next; /* first window not yet judged busy */
};

/* Nanoseconds since the life's start, sorted by start; end_ns >= start_ns. An empty interval
 * runs in no window. */
void rls_smi_windows_add(struct rls_smi_windows *windows, uint64_t start_ns, uint64_t end_ns);

/* For a life of this length, which every interval added must have begun in. 0 for none. */
double rls_smi_windows_percent(const struct rls_smi_windows *windows, uint64_t life_ns);

#endif
