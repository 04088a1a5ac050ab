#include "bpf/emit.bpf.h"

__attribute__((noinline)) int emit_category(struct thread_state *thread, __u8 category, __u32 site)
{
	if (thread)
		emit_category_here(thread, category, site);
	return 0;
}
