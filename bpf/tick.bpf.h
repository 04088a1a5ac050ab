/* Ticks: one timer a CPU for all that samples.
 *
 *     timer ─▶ on_tick ─▶ on_sample ─▶ on_look ─▶ on_timer
 *
 * Each hands the tick on to the next that is wanted, by a tail call: those that are not are
 * empty slots, and what one sees all see at the same instant.
 */
#ifndef RLS_TICK_BPF_H
#define RLS_TICK_BPF_H

#include "bpf/maps.bpf.h"

struct ticks_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, RLS_TICK_MAX);
	__type(key, __u32);
	__type(value, __u32);
};

/* How long a CPU's last tick was after the one before. */
struct tick {
	__u64 at_ns;
	__u64 ns;
};

struct tick_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tick);
};

extern struct ticks_map ticks SEC(".maps");
extern struct tick_map last_tick SEC(".maps");

/* Does not come back where there is such a program. */
#define HAND_ON(ctx, slot) bpf_tail_call(ctx, &ticks, slot)

#endif
