/* Memory estimate: how much a line has allocated in all, of which only windows were counted. Times are CPU time of its
 * process. Pure.
 *
 *     until          window                    window      end
 *       ├──────────────▓▓▓▓▓▓▓────────────────────▓▓▓▓▓▓▓─────┤
 *         as the window         as both, half each     as the last
 *
 * The error is of the differences between neighbouring windows, so slow changes of a program add little to it, and what
 * is rare adds as much as it is itself.
 * Probes make a loop that does nothing but allocate slower, and windows meet less of it: that is corrected.
 */
#ifndef RLS_MEMORY_ESTIMATE_H
#define RLS_MEMORY_ESTIMATE_H

#include <stdint.h>

/* Of one line, or (nothing allocated) of a source, from which those of lines that appear later are copied. */
struct rls_memory_estimate {
	uint64_t until_ns; /* of which time it is */
	double allocs, bytes; /* in it */
	double allocs_per_ns,
		bytes_per_ns; /* in the latest window; before that, as far as is known otherwise */
	double first_change2, changes2; /* squares of differences of bytes_per_ns */
	double lengths2; /* squares of the times from window to window */
	double correction_error; /* of bytes, by what is not known for sure of what probes have taken */
	uint32_t windows;
};

struct rls_memory_window {
	uint64_t open_ns, close_ns;
	double slowed_ns; /* of it, what its own probes have taken from the process */
};

/* In the window blocks of so many bytes were allocated. It opens no earlier than until_ns, which becomes its end. */
void rls_memory_estimate_window(struct rls_memory_estimate *estimate,
				const struct rls_memory_window *window, uint64_t allocs,
				uint64_t bytes);
/* The time since the last window, up to the end, is taken to be as that. */
void rls_memory_estimate_end(struct rls_memory_estimate *estimate, uint64_t end_ns);
/* One standard deviation of bytes. */
double rls_memory_estimate_error(const struct rls_memory_estimate *estimate);

#endif
