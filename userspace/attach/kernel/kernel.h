/* Kernel: the loaded BPF programs, their maps and the probes that are live.
 *
 *     open ─▶ track processes, attach sites ─▶ start ─▶ (poll) ─▶ stop ─▶ detach ─▶ close
 *
 * Probes are put on files (inodes), not on processes: children of a tracked process are
 * seen from their first instruction on. The first few instructions of the BPF program reject
 * the hits of other processes. Nothing is counted before rls_kernel_start, because entry and
 * return probes go live about 20 ms apart.
 *
 * All links die with their file descriptors, so a killed profiler leaves no probe.
 * One thread at a time. Functions return 0 or -errno and have said why on stderr.
 */
#ifndef RLS_KERNEL_H
#define RLS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/attach/hit_costs.h"
#include "userspace/attach/switching.h"

enum rls_attach_way {
	RLS_ATTACH_AUTO,
	RLS_ATTACH_MULTI, /* one uprobe_multi link per file: kernel >= 6.6 */
	RLS_ATTACH_PERF, /* one perf event per site: 5.15 and later, slow to detach */
};

/* Called with each record, in order per ring; size has been checked to hold a header. */
typedef int (*rls_record_handler)(const struct rls_wire_header *record, size_t size, void *context);

struct rls_kernel_options {
	enum rls_attach_way way;
	size_t transitions_bytes; /* ring sizes: powers of two, multiples of the page size */
	size_t control_bytes;
	size_t gpu_bytes;
	bool windows; /* sites will be put on and off while recording */
	bool totals_mode; /* sums instead of records of transitions and edges */
	bool memory; /* blocks of memory are counted (kernel_memory.h) */
	bool memory_if_possible; /* or not, where the kernel refuses the programs or has no room for the maps */
	unsigned int
		layer_depth; /* calls of layers are recorded, nested so deep (kernel_layers.h); 0: not */
	bool each_off_cpu; /* each period has an RLS_WIRE_OFF_CPU, of threads that have hit something */
	size_t stacks_bytes; /* rls_kernel_attach_stacks will be, with a ring of this size; 0: not */
};

struct rls_kernel;

int rls_kernel_open(const struct rls_kernel_options *options, struct rls_kernel **out);
/* Detaches what is attached, unloads, frees. NULL is fine. */
void rls_kernel_close(struct rls_kernel *kernel);

enum rls_attach_way rls_kernel_way(const struct rls_kernel *kernel);

/* Adds a process, or changes its settings. -ESRCH when it is gone is not noticed here. */
int rls_kernel_track(struct rls_kernel *kernel, pid_t pid, const struct rls_wire_process *settings);
int rls_kernel_untrack(struct rls_kernel *kernel, pid_t pid);
bool rls_kernel_is_tracked(const struct rls_kernel *kernel, pid_t pid);
/* All that are tracked, by the kernel side's own doing too; *pids is the caller's to free. */
int rls_kernel_tracked(const struct rls_kernel *kernel, pid_t **pids, size_t *count);
int rls_kernel_set_ranges(struct rls_kernel *kernel, pid_t pid,
			  const struct rls_wire_ranges *known);

void rls_kernel_set_costs(struct rls_kernel *kernel, const struct rls_hit_costs *costs);

void rls_kernel_set_switching(struct rls_kernel *kernel,
			      const struct rls_kernel_switching *switching);

int rls_kernel_start(struct rls_kernel *kernel, uint64_t *start_ns);
/* Of processes that are tracked since recording began: follows the threads that they have, waiting or not.
 * 0 or -errno. */
int rls_kernel_meet(struct rls_kernel *kernel, uint64_t time_ns);
/* Counts nothing until the next start; threads keep what they have. */
void rls_kernel_pause(struct rls_kernel *kernel);
/* Stops counting; then asks every living thread for what it still holds (RLS_WIRE_FINAL
 * records). The probes stay until rls_kernel_detach. */
int rls_kernel_stop(struct rls_kernel *kernel, uint64_t *stop_ns);
void rls_kernel_detach(struct rls_kernel *kernel);
/* Detaches the probes attached since the mark was taken, and every site that may go on and
 * off: for what is done before any target is looked at. */
size_t rls_kernel_mark(const struct rls_kernel *kernel);
void rls_kernel_detach_since(struct rls_kernel *kernel, size_t mark);

#endif
