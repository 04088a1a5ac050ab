/* Sampling: ticks, category samples and stacks. */
#ifndef RLS_KERNEL_SAMPLING_H
#define RLS_KERNEL_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel.h"

/* How often a second the scheduler ticks on a CPU; 0: not known. */
unsigned int rls_scheduler_hz(void);

/* Samplers share their ticks, which come as often as the fastest wants: the scheduler's own, taken at
 * random, if those are often enough, for they cost next to nothing; else one timer a CPU has. This
 * one sends an RLS_WIRE_CATEGORY_SAMPLE record for each traced thread found running, at least hz times a
 * second, from start on, and of waits too: for windows (rls_kernel_has_windows). */
void rls_kernel_attach_category_samples(struct rls_kernel *kernel, unsigned int hz);

/* So many of them a second from now on, or as many as the scheduler ticks; not fewer than anything
 * else that samples takes, and just as many where that has a timer. */
void rls_kernel_pace_category_samples(struct rls_kernel *kernel, unsigned int hz);

/* Whether there are more of them, by a timer of their own, while a window is open: for as long as that is
 * not for long, as each costs the thread what its interrupt does. Not where there is a timer already. */
void rls_kernel_sample_closely(struct rls_kernel *kernel, bool closely);

/* Samples with Python stacks (bpf/wire/stack.h) of tracked threads, and of each wait, or so many a second of a thread's
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

/* A wait that began before its recording did: what comes before the frames of an RLS_WIRE_STACK
 * record. Its header's time is when it counts from. */
struct rls_open_wait {
	_Alignas(8) char head[RLS_STACK_HEAD_BYTES];
};
/* Those that start and meet have found since the last call, in no order; *out is the caller's to
 * free, aligned as malloc does. Returns how many. Where stacks are not sampled: none. */
size_t rls_kernel_take_waiting(struct rls_kernel *kernel, struct rls_open_wait **out);
/* Threads whose lives in the trace begin without a hit: an RLS_WIRE_THREAD record each, unless it was sent before. Where
 * stacks are sampled. 0 or -errno. */
int rls_kernel_announce(struct rls_kernel *kernel, const uint32_t *tids, size_t count);

/* Who executes this file runs such an interpreter from then on (code_type 0: where that will be is not
 * known). What does not fit in is left out. */
void rls_kernel_set_image(struct rls_kernel *kernel, dev_t device, ino_t inode,
			  const struct rls_wire_interpreter *interpreter);

/* Ticks, if anyone wants them and there are none yet: of a timer where the scheduler's are too few, or
 * are not what they should be, which takes 40 ms to see. Start does it else. */
int rls_kernel_start_ticks(struct rls_kernel *kernel);

#endif
