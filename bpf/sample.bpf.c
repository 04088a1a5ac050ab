/* A sampler beside the probes, for the recorders' --verify: what a thread executes, and
 * what its state says it does. At each tick; only tracked processes are told of. User
 * space knows the mappings and the probed addresses, so it judges (record/verify.h).
 */
#include "bpf/emit.bpf.h"
#include "bpf/pids.bpf.h"
#include "bpf/tick.bpf.h"

static __always_inline void send_sample(struct interrupted at)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = process_number(task);
	struct rls_wire_sample *record;
	struct thread_state *thread;

	if (!recording_since_ns || !bpf_map_lookup_elem(&tracked, &pid))
		return;
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	record = control_reserve(struct rls_wire_sample, RLS_WIRE_SAMPLE, pid,
				 task_number(task), bpf_ktime_get_ns());
	if (!record)
		return;
	record->ip = at.ip;
	__builtin_memset(record->reserved, 0, sizeof(record->reserved));
	record->category = thread ? thread->category : 0;
	record->header.flags = (at.user ? 0 : RLS_SAMPLE_KERNEL) | (thread ? RLS_SAMPLE_TRACED : 0);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	send_sample(interrupted_by_timer(ctx));
	HAND_ON(ctx, RLS_TICK_LOOK);
	HAND_ON(ctx, RLS_TICK_STACK);
	return 0;
}

SEC(SCHEDULER_TICK)
int on_scheduler_sample(void *ctx)
{
	send_sample(interrupted_by_scheduler(ctx));
	HAND_ON_OF_SCHEDULER(ctx, RLS_TICK_LOOK);
	HAND_ON_OF_SCHEDULER(ctx, RLS_TICK_STACK);
	return 0;
}
