/* The cookie of the probe that was hit.
 *
 * The BPF helper for it takes 13 ns on CPUs where the kernel protects each return (AMD): a tenth
 * of what our programs take there. It only follows two pointers, which BTF lets a program follow
 * directly:
 *
 *     task ─▶ bpf_ctx, the first member of struct bpf_uprobe_multi_run_ctx ─▶ uprobe ─▶ cookie
 *
 * The loader checks whether the running kernel has this layout. Where it has another, the helper
 * is called.
 */
#ifndef RLS_COOKIE_BPF_H
#define RLS_COOKIE_BPF_H

#include "bpf/shared/maps.bpf.h"

/* As far as we look, of the running kernel's own: that which vmlinux.h was made of may be another one. */
struct bpf_uprobe___followed {
	__u64 cookie;
} __attribute__((preserve_access_index));

struct bpf_uprobe_multi_run_ctx___followed {
	struct bpf_uprobe___followed *uprobe;
} __attribute__((preserve_access_index));

/* Since 6.13, and before. */
struct bpf_session_run_ctx___followed {
	struct bpf_run_ctx run_ctx;
} __attribute__((preserve_access_index));

struct bpf_uprobe_multi_run_ctx___session {
	struct bpf_session_run_ctx___followed session_ctx;
} __attribute__((preserve_access_index));

struct bpf_uprobe_multi_run_ctx___plain {
	struct bpf_run_ctx run_ctx;
} __attribute__((preserve_access_index));

extern void *bpf_rdonly_cast(const void *object, __u32 type_id) __ksym __weak;

static __always_inline bool begins_with_run_ctx(void)
{
	if (bpf_core_field_exists(struct bpf_uprobe_multi_run_ctx___session, session_ctx.run_ctx))
		return !bpf_core_field_offset(struct bpf_uprobe_multi_run_ctx___session,
					      session_ctx.run_ctx);
	return bpf_core_field_exists(struct bpf_uprobe_multi_run_ctx___plain, run_ctx) &&
	       !bpf_core_field_offset(struct bpf_uprobe_multi_run_ctx___plain, run_ctx);
}

static __always_inline bool can_be_followed(void)
{
	return begins_with_run_ctx() &&
	       bpf_core_field_exists(struct bpf_uprobe_multi_run_ctx___followed, uprobe) &&
	       bpf_core_field_exists(struct bpf_uprobe___followed, cookie) && bpf_rdonly_cast;
}

/* task: the one that runs; multi: the program is a uprobe_multi link's. */
static __always_inline __u64 cookie_of(struct pt_regs *ctx, const struct task_struct *task,
				       bool multi)
{
	const struct bpf_uprobe_multi_run_ctx___followed *run_ctx;

	if (!multi || !can_be_followed())
		return bpf_get_attach_cookie(ctx);
	run_ctx = bpf_rdonly_cast(
		task->bpf_ctx, bpf_core_type_id_kernel(struct bpf_uprobe_multi_run_ctx___followed));
	return run_ctx->uprobe->cookie;
}

#endif
