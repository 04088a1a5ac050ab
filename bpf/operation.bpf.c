/* Operations: the annotation library's flush site, and ranges of other people's APIs. */
#include "bpf/operation.bpf.h"

/* Hit every RLS_EDGE_FLUSH edges and at a thread's end, only while someone listens. */
SEC("uprobe")
int on_flush(struct pt_regs *ctx)
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
