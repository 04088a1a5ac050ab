/* The kernel side from inside: what the files that make it up share.
 *
 *     kernel_life.c      loading, processes, probes, start and stop
 *     kernel_windows.c   sites that go on and off
 *     kernel_rings.c     what comes back
 *     kernel_sampling.c     what samples
 *     kernel_totals.c     what is summed up there instead
 *     kernel_ranges.c    other people's ranges
 *     kernel_memory.c    what allocators report
 *     kernel_layers.c    calls of a model's layers
 */
#ifndef RLS_KERNEL_STATE_H
#define RLS_KERNEL_STATE_H

#include "bpf/wire/memory.h"
#include "rlscope.skel.h"
#include "userspace/attach/arms.h"
#include "userspace/attach/groups.h"
#include "userspace/attach/held_file.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/transitions.h"
#include "userspace/attach/links.h"
#include "userspace/attach/sampler.h"
#include "userspace/base/clock.h"
#include "userspace/plan/memory_sites.h"

/* Sites of other people's ranges that may go off and on again. */
struct rls_range_probes {
	struct rls_range_probe {
		struct rls_held_file file;
		uint64_t offset;
		uint64_t cookie;
	} * items;
	size_t count, room;
	struct rls_links links;
	bool windowed, off;
};

/* Sites of allocators' reports. */
struct rls_memory_probes {
	bool wanted;
	struct rls_wire_memory_line *lines; /* the map of that name */
	enum rls_memory_probing probing[RLS_MEMORY_SOURCES];
	struct rls_memory_file {
		uint32_t number; /* the caller's */
		bool gone;
		struct rls_held_file held;
	} * files;
	size_t file_count, file_room;
	struct rls_memory_probe {
		size_t file; /* among these */
		uint64_t offset, cookie;
		struct rls_links links;
	} * items;
	size_t count, room;
	struct rls_memory_own_probe {
		uint32_t number; /* of the file */
		pid_t pid; /* the process that alone has it */
		enum rls_memory_report report;
		struct rls_links links;
	} * own;
	size_t own_count, own_room;
	struct rls_links ended; /* of processes that are over: nothing hits them any more */
};

/* Sites at which objects are called. */
struct rls_layer_probes {
	bool wanted;
	struct rls_layer_file {
		uint32_t file; /* the caller's number */
		struct rls_links links, returns;
	} * files;
	size_t count, room;
};

struct rls_kernel {
	struct rlscope *skeleton;
	struct rls_links links;
	struct rls_range_probes ranges;
	struct rls_memory_probes memory;
	struct rls_layer_probes layers;
	struct rls_arms arms;
	enum { ARM_WAY_UNTRIED, ARM_WAY_MULTI, ARM_WAY_PERF } arm_way;
	struct rls_groups groups; /* sites that may go on and off; else they are in links */
	struct rls_sampler sampler; /* the one timer of all that samples */
	struct rls_sampler
		close_samples; /* ticks in windows, where the scheduler's ticks are taken */
	uint32_t
		tick_cost_ns; /* a tick's, of whatever ticks, also of those read after it has gone */
	unsigned int others_hz; /* what samples stacks; 0: nothing */
	struct bpf_link *scheduler_ticks; /* which are taken instead; NULL: they are not */
	uint64_t phases_seen_ns; /* when it was last seen whether threads keep step with them */
	struct ring_buffer *rings;
	struct rls_transitions transitions;
	struct rls_hit_costs costs;
	enum rls_attach_way way;
	struct rls_kernel_switching switching;
	bool windows;
	bool totals_mode;
	bool blind_flush; /* totals_mode: without reading what threads have yet to read */
	char *waiting; /* what first_states has written and nobody has taken yet: whole records */
	size_t waiting_bytes;
	rls_record_handler handler;
	void *handler_context;
	struct ring *reading; /* the ring that is being read, up to here: */
	unsigned long end_position;
};

void rls_kernel_begin_switching(const struct rls_kernel *kernel);
void rls_kernel_end_switching(const struct rls_kernel *kernel);

/* Before loading: the samplers' programs that will be attached. */
void rls_kernel_choose_samplers(struct rls_kernel *kernel,
				const struct rls_kernel_options *options);
void rls_kernel_leave_scheduler_ticks(struct rls_kernel *kernel);

/* Of a map of each CPU's sums by site or other small key, `words` numbers each: those of all CPUs.
 * 0 or -errno. */
int rls_kernel_sum_sites(const struct bpf_map *map, size_t words, uint64_t *sums, size_t count);

/* One site's probe, in every process; ref_counter: the file offset of a USDT-style counter that the kernel
 * raises, 0 for none. 0 or -errno. */
int rls_kernel_attach_one(struct rls_kernel *kernel, struct rls_links *links,
			  const struct bpf_program *multi_program,
			  const struct bpf_program *perf_program, const char *path,
			  unsigned long offset, unsigned long ref_counter, __u64 cookie);

/* To be detached with all others. */
void rls_kernel_leave_ranges(struct rls_kernel *kernel);
void rls_kernel_leave_memory(struct rls_kernel *kernel);
void rls_kernel_leave_layers(struct rls_kernel *kernel);
/* Whether a uprobe_multi link may be put on one process: it sees its other threads. */
bool rls_kernel_arms_by_multi(struct rls_kernel *kernel);

/* Before loading, once it is known how probes are attached; and after it. 0 or -errno. */
int rls_kernel_size_memory(struct rls_kernel *kernel, bool memory);
int rls_kernel_map_memory(struct rls_kernel *kernel);
void rls_kernel_unmap_memory(struct rls_kernel *kernel);
int rls_kernel_size_layers(struct rls_kernel *kernel, unsigned int depth_max);
void rls_kernel_clear_layers(struct rls_kernel *kernel);

/* With the edges of a window: what goes off where ranges go with it is the caller's to detach. Nothing where
 * they do not. 0 or -errno. */
int rls_kernel_open_ranges(struct rls_kernel *kernel);
void rls_kernel_close_ranges(struct rls_kernel *kernel, struct rls_links *gone);

/* Runs an iterator over all tasks. 0 or -errno. */
int rls_kernel_iterate(struct bpf_program *program);
/* The same of one that writes: what it writes is added to *text, which the caller frees. */
int rls_kernel_read_iterator(struct bpf_program *program, char **text, size_t *bytes);

/* The process is watched from now on, if it is not already: where its threads' totals go. */
int rls_kernel_open_scope(struct rls_kernel *kernel, uint32_t pid);

#endif
