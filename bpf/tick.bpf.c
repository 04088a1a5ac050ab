#include "bpf/pids.bpf.h"
#include "bpf/tick.bpf.h"

struct ticks_map ticks SEC(".maps");
struct ticks_map scheduler_ticks SEC(".maps");
struct tick_map last_tick SEC(".maps");
struct tick_phases_map tick_phases SEC(".maps");

/* Of the scheduler's ticks so many in 2^32 are taken, each for so much time at least. */
volatile __u32 tick_share;
volatile __u64 tick_stands_ns;
volatile __u64 tick_period_ns;
volatile __u64 phase_due_ns;
/* Of the timer: what is longer than this between two ticks was not all spent running. */
volatile __u64 tick_apart_ns;
/* While tick_share is 0: do these tick as we think? Those of this thread, in kernel and user mode. */
volatile __u32 tick_trier;
volatile __u64 ticks_tried[2];

/* What the scheduler's timer calls: it was renamed in 6.9. */
extern const void tick_nohz_handler __ksym __weak;
extern const void tick_sched_timer __ksym __weak;

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
	HAND_ON(ctx, RLS_TICK_LOOK);
	HAND_ON(ctx, RLS_TICK_STACK);
	return 0;
}

/* A tick that comes late, as where the machine's own host had others to run, is also one for each
 * that was passed over meanwhile. (After idling the next is due in time.) */
static __always_inline __u64 ticks_in_one(struct hrtimer *timer, __u64 now_ns)
{
	__u64 due_ns = now_ns, period_ns = tick_period_ns;

	if (bpf_core_field_exists(timer->node.expires))
		due_ns = BPF_CORE_READ(timer, node.expires);
	return 1 + (period_ns && now_ns > due_ns ? (now_ns - due_ns) / period_ns : 0);
}

SEC(SCHEDULER_TICK)
int BPF_PROG(on_scheduler_tick, struct hrtimer *timer)
{
	__u64 function = 0, now_ns;
	struct tick *tick;
	__u32 key = 0;

	if (bpf_core_field_exists(timer->function))
		function = (__u64)BPF_CORE_READ(timer, function);
	if (!function || (function != (__u64)&tick_nohz_handler && function != (__u64)&tick_sched_timer))
		return 0;
	if (!tick_share) {
		if (task_number(bpf_get_current_task_btf()) == tick_trier)
			ticks_tried[on_own_stack(ctx)]++;
		return 0;
	}
	if (!recording_since_ns || bpf_get_prandom_u32() >= tick_share)
		return 0;
	tick = bpf_map_lookup_elem(&last_tick, &key);
	if (!tick)
		return 0;
	now_ns = bpf_ktime_get_ns();
	tick->ns = tick_stands_ns * ticks_in_one(timer, now_ns);
	tick->at_ns = now_ns;
	HAND_ON_OF_SCHEDULER(ctx, RLS_TICK_LOOK);
	HAND_ON_OF_SCHEDULER(ctx, RLS_TICK_STACK);
	return 0;
}
