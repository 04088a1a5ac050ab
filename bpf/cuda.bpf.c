/* The CUPTI bridge's site: a batch of GPU records, copied as it is.
 *
 * The probe's semaphore is what arms the bridge, so it is put on one process at a time. What
 * is in a batch is the target's word and is checked in user space (record/gpu/batch_validate.h);
 * here only its size counts, because of which the ring is reserved in one of a few sizes: a
 * probe may be preempted, so there is no scratch memory per CPU to build a record in.
 */
#include "bpf/shared/clock.bpf.h"
#include "bpf/shared/control.bpf.h"
#include "bpf/shared/pids.bpf.h"
#include "bpf/totals.bpf.h"

#include "cupti_bridge/batch.h" /* after vmlinux.h, whose types it uses then */

/* False: no room, or memory that cannot be read. `room` is a constant. */
static __always_inline bool send_batch(__u32 pid, __u32 tid, __u64 address, __u32 bytes,
				       const __u32 room)
{
	struct rls_wire_gpu_batch *record;

	record = bpf_ringbuf_reserve(&gpu, sizeof(*record) + room, 0);
	if (!record)
		return false;
	asm volatile("" : "+r"(bytes)); /* the bound below is to be in the verifier's sight */
	if (bytes > room || bpf_probe_read_user(record + 1, bytes, (void *)address)) {
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
		return false;
	}
	fill_header(&record->header, sizeof(*record) + room, RLS_WIRE_GPU_BATCH, pid, tid,
		    bpf_ktime_get_ns());
	record->bytes = bytes;
	record->reserved = 0;
	record->clock_ahead_ns = clock_ahead_ns(bpf_get_current_task_btf());
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline int handle_batch(struct pt_regs *ctx)
{
	__u64 address = READ_REGISTER(PT_REGS_PARM1(ctx));
	__u32 bytes = READ_REGISTER(PT_REGS_PARM2(ctx));
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = process_number(task), tid;
	bool sent;

	__sync_fetch_and_add(&batch_hits, 1);
	if (!bpf_map_lookup_elem(&tracked, &pid))
		return 0;
	if (totals_mode)
		totals_bridge(pid);
	tid = task_number(task);
	if (bytes < sizeof(struct rls_cupti_batch) || bytes > RLS_CUPTI_BATCH_BYTES_MAX)
		sent = false;
	else if (bytes <= 512)
		sent = send_batch(pid, tid, address, bytes, 512);
	else if (bytes <= 2048)
		sent = send_batch(pid, tid, address, bytes, 2048);
	else if (bytes <= 4096)
		sent = send_batch(pid, tid, address, bytes, 4096);
	else if (bytes <= 9216) /* 128 records and a few names */
		sent = send_batch(pid, tid, address, bytes, 9216);
	else
		sent = send_batch(pid, tid, address, bytes, RLS_CUPTI_BATCH_BYTES_MAX);
	if (!sent)
		count_drop(RLS_DROP_GPU);
	return 0;
}

/* Twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_batch_multi(struct pt_regs *ctx)
{
	return handle_batch(ctx);
}

SEC("uprobe")
int on_batch(struct pt_regs *ctx)
{
	return handle_batch(ctx);
}
