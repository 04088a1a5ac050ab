/* Rescan schedule: when the method tables of a process's modules are scanned again.
 *
 * A library's tables of Python methods may fill long after it was mapped (PyTorch's do, while it
 * is imported). So a process is scanned again after it mapped something new, at growing intervals.
 * A scan reads all of its memory, which costs a quarter of a second. Modules fill their tables
 * while they are imported, so a scan is skipped where nothing was imported since the last one. The
 * final scan is never skipped: it finds tables that are filled at their first use (PyTorch's part
 * for CUDA).
 */
#ifndef RLS_RESCAN_SCHEDULE_H
#define RLS_RESCAN_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rls_rescan_schedule {
	uint64_t since_ns; /* when something new was last mapped; 0: never */
	size_t done;
	bool importing; /* it was when the last rescan was due */
};

/* first: the process itself is new to us, as it is after exec. */
void rls_rescan_schedule_start(struct rls_rescan_schedule *schedule, pid_t pid, bool first,
			       uint64_t now_ns);

/* When the next is due; 0: none is. */
uint64_t rls_rescan_schedule_due_ns(const struct rls_rescan_schedule *schedule);

/* Takes the next rescan as done; imported: whether the process has imported since its memory was
 * last read. True: the caller has to rescan. */
bool rls_rescan_schedule_take(struct rls_rescan_schedule *schedule, bool imported);

#endif
