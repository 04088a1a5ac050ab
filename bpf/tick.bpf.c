#include "bpf/tick.bpf.h"

struct ticks_map ticks SEC(".maps");
struct tick_map last_tick SEC(".maps");

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 key = 0;
	struct tick *tick = bpf_map_lookup_elem(&last_tick, &key);

	if (!tick)
		return 0;
	tick->ns = now_ns - tick->at_ns;
	tick->at_ns = now_ns;
	if (!recording_since_ns)
		return 0;
	HAND_ON(ctx, RLS_TICK_SAMPLE);
	HAND_ON(ctx, RLS_TICK_LOOK);
	HAND_ON(ctx, RLS_TICK_STACK);
	return 0;
}
