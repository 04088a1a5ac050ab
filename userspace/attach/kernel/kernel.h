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

#include "bpf/stack_wire.h"
#include "bpf/wire.h"
#include "userspace/annotate/foreign_ranges.h"
#include "userspace/binary/site.h"

enum rls_attach_way {
	RLS_ATTACH_AUTO,
	RLS_ATTACH_MULTI,       /* one uprobe_multi link per file: kernel >= 6.6 */
	RLS_ATTACH_PERF,        /* one perf event per site: 5.15 and later, slow to detach */
};

struct rls_kernel_options {
	enum rls_attach_way way;
	size_t transitions_bytes;   /* ring sizes: powers of two, multiples of the page size */
	size_t control_bytes;
	size_t gpu_bytes;
	bool windows;               /* sites will be put on and off while recording */
	bool booking;               /* sums instead of records of transitions and edges */
	bool absences;              /* each is reported, by RLS_WIRE_ABSENCE, for threads that have hit something */
	size_t stacks_bytes;        /* rls_kernel_attach_stacks will be, with a ring of this size; 0: not */
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
int rls_kernel_set_ranges(struct rls_kernel *kernel, pid_t pid, const struct rls_wire_ranges *known);

/* What one hit costs, in ns: silent, by [class of the site][0 entry, 1 return probe]; and
 * what emitting an event adds. */
struct rls_hit_costs {
	uint32_t ns[RLS_SITE_CLASS_MAX][2];
	uint32_t event_ns;
	uint32_t edge_ns;           /* each operation edge that a hit reads, up to RLS_EDGES_COLD */
	uint32_t later_edge_ns;     /* and each after those */
	uint32_t before_ns[2];      /* how much of a hit's cost is over when its time is taken */
};
void rls_kernel_set_costs(struct rls_kernel *kernel, const struct rls_hit_costs *costs);

/* Called around each time that many probes are put on or taken off, the last one excepted, on the thread that does
 * it: from where it is done matters to the target (cpu/cpu_affinity.h). Not at all until it is set. */
struct rls_kernel_switching {
	void (*begin)(void *context);   /* again every so often while it goes on */
	void (*end)(void *context);
	void *context;
};
void rls_kernel_set_switching(struct rls_kernel *kernel, const struct rls_kernel_switching *switching);

/* So many sites, of however many files, are about to be attached: what that needs is made beforehand. */
void rls_kernel_expect_sites(const struct rls_kernel *kernel, size_t count);

/* Puts probes on every site of one file. path must open from here (/proc/PID/root/...).
 * Site i gets id first_id + i. *attached is how many are live; a site that the kernel
 * refuses is left out with a warning, it is no failure. */
int rls_kernel_attach_sites(struct rls_kernel *kernel, const char *path,
			    const struct rls_site *sites, size_t count, uint32_t first_id,
			    size_t *attached);

/* Takes off all probes of the sites that were attached with this first_id, for good. 0 or -ENOMEM. */
int rls_kernel_detach_sites(struct rls_kernel *kernel, uint32_t first_id);

/* Takes off the return probes of the sites that were attached with this first_id; what has been
 * entered under them still returns as it should. 0 or -ENOMEM. */
int rls_kernel_detach_returns(struct rls_kernel *kernel, uint32_t first_id);

/* When a site is probed, from the next rls_kernel_regroup on. Only where options.windows was set
 * and probes can be taken off together (rls_kernel_has_windows). */
enum rls_duty {
	RLS_DUTY_ALWAYS,        /* as every site begins */
	RLS_DUTY_WINDOWS,
	RLS_DUTY_NEVER,
};
bool rls_kernel_has_windows(const struct rls_kernel *kernel);
int rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty);
/* Begins a closed window: the sites of each duty are sorted out anew. From *edge_ns on nothing
 * of windowed sites counts, and what threads were in is not known. */
int rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns);
/* From *edge_ns on every windowed site counts; and none does. */
int rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns);
void rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns);

/* What a hit of the site costs about; 0 when it is not known. */
uint32_t rls_kernel_site_cost_ns(const struct rls_kernel *kernel, uint32_t site);

/* Hits of each site so far, returns included: ids 0..count - 1, RLS_SITES_COUNTED at most. */
int rls_kernel_site_hits(const struct rls_kernel *kernel, uint64_t *hits, size_t count);
/* They are not asked for any more: each hit is as cheap as where they never are. */
void rls_kernel_stop_counting(struct rls_kernel *kernel);

/* The annotation library's flush site; listeners_offset: file offset of the counter that
 * the kernel raises while the probe is live. */
int rls_kernel_attach_flush(struct rls_kernel *kernel, const char *path, uint64_t site_offset,
			    uint64_t listeners_offset);

/* Sites of other people's ranges in one file (annotate/foreign_ranges.h). */
int rls_kernel_attach_ranges(struct rls_kernel *kernel, const char *path,
			     const struct rls_range_site *sites, size_t count);
/* How many have begun: of PyTorch's own making, and others. */
void rls_kernel_ranges_begun(const struct rls_kernel *kernel, uint64_t *own, uint64_t *others);
/* Whether those of the API that PyTorch itself uses (record_function) are probed in windows alone, from the next one
 * that opens on; no longer: at once. Meanwhile ranges that begin are counted and nothing else. Nothing where it is so
 * already. 0 or -errno: then it is as before. */
int rls_kernel_window_ranges(struct rls_kernel *kernel, bool windowed);

/* Arms the CUPTI bridge in one process: a probe on its site rlscope_cupti:batch, which raises
 * its semaphore there. Offsets in the file; the process must be tracked for its batches to be
 * taken, which they are whether recording has been started or not. */
int rls_kernel_arm(struct rls_kernel *kernel, pid_t pid, const char *path, uint64_t site_offset,
		   uint64_t semaphore_offset);
/* Gives up a process that is gone or has become another program. */
void rls_kernel_disarm(struct rls_kernel *kernel, pid_t pid);

/* How often a second the scheduler ticks on a CPU; 0: not known. */
unsigned int rls_scheduler_hz(void);

/* Samplers share their ticks, which come as often as the fastest wants: the scheduler's own, taken at
 * random, if those are often enough, for they cost next to nothing; else one timer a CPU has. This
 * one sends an RLS_WIRE_LOOK record for each traced thread found running, at least hz times a
 * second, from start on, and of waits too: for windows (rls_kernel_has_windows). */
void rls_kernel_attach_looks(struct rls_kernel *kernel, unsigned int hz);

/* So many of them a second from now on, or as many as the scheduler ticks; not fewer than anything
 * else that samples takes, and just as many where that has a timer. */
void rls_kernel_pace_looks(struct rls_kernel *kernel, unsigned int hz);

/* Whether there are more of them, by a timer of their own, while a window is open: for as long as that is
 * not for long, as each costs the thread what its interrupt does. Not where there is a timer already. */
void rls_kernel_look_closely(struct rls_kernel *kernel, bool closely);

/* Samples with Python stacks (bpf/stack_wire.h) of tracked threads, and of each wait, or so many a second of a thread's
 * that has more, at random: RLS_WIRE_STACK and RLS_WIRE_WAITED records. */
void rls_kernel_attach_stacks(struct rls_kernel *kernel, unsigned int hz, unsigned int waits_hz);

/* Called often: has a timer tick from now on if threads are seen to keep step with the scheduler's
 * ticks. */
int rls_kernel_watch_ticks(struct rls_kernel *kernel, uint64_t time_ns);
/* What a tick costs the thread that it interrupts, from start on. */
uint32_t rls_kernel_tick_cost_ns(const struct rls_kernel *kernel);
/* Called often, it draws a timer's ticks anew so that nothing keeps step with them: then a tick no longer
 * stands for the same time as any other. */
void rls_kernel_draw_ticks(struct rls_kernel *kernel, uint64_t time_ns);
/* How to walk the process's stacks; NULL: it runs no Python (any more). */
int rls_kernel_set_interpreter(struct rls_kernel *kernel, pid_t pid,
			       const struct rls_wire_interpreter *interpreter);

/* Ticks, if anyone wants them and there are none yet: of a timer where the scheduler's are too few, or
 * are not what they should be, which takes 40 ms to see. Start does it else. */
int rls_kernel_start_ticks(struct rls_kernel *kernel);

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

/* Called with each record, in order per ring; size has been checked to hold a header. */
typedef int (*rls_record_handler)(const struct rls_wire_header *record, size_t size, void *context);
int rls_kernel_set_handler(struct rls_kernel *kernel, rls_record_handler handler, void *context);

/* A descriptor that becomes readable when a record asks for attention. */
int rls_kernel_poll_fd(const struct rls_kernel *kernel);
/* Hands everything that is in the rings by now to the handler, transitions after the control records that were
 * sent before them: 0 or -errno (the handler's own negative result included). */
int rls_kernel_consume(struct rls_kernel *kernel);
/* The same but for samples with stacks, which may take a while to be named. */
int rls_kernel_consume_all_but_stacks(struct rls_kernel *kernel);
/* The same of the transitions ring alone, the one that fills in no time: for long work in
 * between, inside a control record's handler too, in its own order. */
int rls_kernel_consume_transitions(struct rls_kernel *kernel);
/* The same of the control ring alone: before a record of another ring whose thread may have been
 * born since; not inside a control record's handler. */
int rls_kernel_consume_control(struct rls_kernel *kernel);
/* Only samples with stacks, where they are taken: before what names them goes. */
int rls_kernel_consume_stacks(struct rls_kernel *kernel);

/* How large the transitions ring should be on this machine: for each CPU what one thread
 * fills in a quarter of a second at the highest rate there is, a 64th of the memory at most. */
size_t rls_kernel_ring_bytes(void);

void rls_kernel_drops(const struct rls_kernel *kernel, uint64_t out[RLS_DROP_MAX]);
/* What was dropped so far was nobody's: for calibration, whose own records are not kept. */
void rls_kernel_forget_drops(struct rls_kernel *kernel);

/* ---- only where options.booking was set: what the kernel side has summed up ---- */

/* Books the time of every thread up to now, of those that wait as well. */
int rls_kernel_flush_books(struct rls_kernel *kernel);
/* Every cell, once; others may be added meanwhile. Until visit returns other than 0, which is
 * returned; -errno. */
int rls_kernel_read_cells(struct rls_kernel *kernel,
			  int (*visit)(void *context, const struct rls_wire_cell_key *key,
				       const struct rls_wire_cell *cell),
			  void *context);
/* Of a process that has ended: nothing is added any more. */
int rls_kernel_drop_cell(struct rls_kernel *kernel, const struct rls_wire_cell_key *key);
/* The same of what its threads were in; those that end side by side may book for a moment yet. */
void rls_kernel_drop_scope(struct rls_kernel *kernel, pid_t pid);
/* What hits have cost so far, by RLS_BURDEN_OF their thread: RLS_BURDENS sums that go on changing. */
const volatile uint64_t *rls_kernel_burden(const struct rls_kernel *kernel);
/* Calls of each site so far: ids 0..count - 1, RLS_SITES_COUNTED at most. */
int rls_kernel_site_calls(const struct rls_kernel *kernel, struct rls_wire_calls *calls,
			  size_t count);

#endif
