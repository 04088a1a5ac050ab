#include "bpf/state.bpf.h"

/* Verified by itself, as the loop is long: not once for each way that leads to it. */
__attribute__((noinline)) int leave_further_frames(struct thread_state *thread, __u64 limit,
						   __u32 site)
{
	__u8 below;

	if (!thread)
		return 0;
	for (int i = 1; i < RLS_FRAMES_MAX && leave_frame(thread, limit, &below); i++) {
		if (below != thread->category)
			emit_category(thread, below, site);
	}
	return 0;
}
