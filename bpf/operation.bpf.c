/* Operations: the annotation library's flush site. */
#include "bpf/operation.bpf.h"

/* A global function: verified by itself, and not with all that follows it. */
__attribute__((noinline)) int sync_before_switch(struct thread_state *thread)
{
	if (booking && thread)
		sync_operations(thread);
	return 0;
}

/* What no hit came after. Its record may be gone since the last one, so it is looked up anew. */
__attribute__((noinline)) int sync_before_exit(struct thread_state *thread)
{
	if (!thread || !thread->annotated || !recording_since_ns)
		return 0;
	find_record(thread);
	if (thread->record)
		sync_operations(thread);
	return 0;
}

/* Hit every RLS_EDGE_FLUSH edges and at a thread's end, only while someone listens. */
static __always_inline int handle_flush(struct pt_regs *ctx)
{
	__u64 record = READ_REGISTER(PT_REGS_PARM1(ctx));
	struct thread_state *thread = current_thread();

	if (!thread)
		return 0;
	/* At thread end the library has already hidden its record: the site's argument is it. */
	if (thread->annotated && !thread->record)
		thread->record = record;
	thread->pile.hits++;
	thread->pile.cost_ns += RLS_COOKIE_COST_NS(bpf_get_attach_cookie(ctx));
	sync_operations(thread);
	return 0;
}

/* Twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_flush_multi(struct pt_regs *ctx)
{
	return handle_flush(ctx);
}

SEC("uprobe")
int on_flush(struct pt_regs *ctx)
{
	return handle_flush(ctx);
}
