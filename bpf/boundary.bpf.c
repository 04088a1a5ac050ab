/* Boundary probes: entries into libraries with a role, calls back into Python, exits.
 *
 * One program per hit; all that it needs to know of its site is in the probe's cookie.
 */
#include "bpf/operation.bpf.h"
#include "bpf/shared/cookie.bpf.h"
#include "bpf/state.bpf.h"

/* As enum rls_site_kind of userspace/machine_code/site.h; attach/cookie.c asserts it. */
enum { ENTER, ENTER_CALL, LEAVE_RET, LEAVE_AFTER };

static __always_inline void count_site(__u32 site)
{
	__u64 *hits;

	if (!windows || hits_uncounted)
		return;
	hits = bpf_map_lookup_elem(&site_hits, &site);
	if (hits)
		++*hits;
}

/* A hit costs time on both sides of the instant at which it is counted: the way into the
 * kernel belongs to what the thread was in, the way out (a single step above all) to what
 * it is in then. Returns what is yet to come. */
static __always_inline __u32 count_hit(struct thread_state *thread, __u64 cookie, __u32 before_ns)
{
	__u32 cost_ns = RLS_COOKIE_COST_NS(cookie);

	if (before_ns > cost_ns)
		before_ns = cost_ns;
	count_site(RLS_COOKIE_SITE(cookie));
	thread->hit_totals.hits++;
	thread->hit_totals.cost_ns += before_ns;
	return cost_ns - before_ns;
}

/* With no frame left, an entry also tells what the thread was in until now. */
static __always_inline void classify_before_entry(struct thread_state *thread, __u64 cookie,
						  __u64 ip, __u64 sp)
{
	__u32 site = RLS_COOKIE_SITE(cookie);

	if (thread->depth)
		return;
	if (RLS_COOKIE_FROM_PYTHON(cookie)) {
		/* Only the interpreter calls it. */
		set_base_category(thread, PYTHON, site);
	} else if (RLS_COOKIE_CATEGORY(cookie) == PYTHON) {
		/* A call out of the library at ip. */
		classify_base(thread, ip, site);
	} else {
		classify_base(thread, word_at(sp), site);
	}
}

static __always_inline int handle_site(struct pt_regs *ctx, bool multi)
{
	__u64 sp = READ_REGISTER(PT_REGS_SP(ctx));
	__u64 ip = READ_REGISTER(PT_REGS_IP(ctx));
	struct task_struct *task = NULL;
	struct thread_state *thread = current_thread_and_task(&task);
	__u64 cookie, limit;
	__u32 site, rest_ns;
	__u8 kind;

	if (!thread)
		return 0;
	cookie = cookie_of(ctx, task, multi);
	site = RLS_COOKIE_SITE(cookie);
	rest_ns = count_hit(thread, cookie, cost_before_ns[0]);
	if (is_out_of_window(cookie)) {
		thread->hit_totals.cost_ns += rest_ns;
		return 0;
	}
	forget_stale_frames(thread);
	sync_operations(thread);

	kind = RLS_COOKIE_KIND(cookie);
	if (kind == ENTER_CALL)
		sp -= 8;
	else if (kind == LEAVE_RET)
		sp += RLS_COOKIE_SLOT_BYTES(cookie);
	else if (kind == ENTER)
		sp += RLS_COOKIE_WITHIN(cookie) * 8;
	/* A frame with this very return slot is over too, unless it goes on in a tail jump. */
	limit = sp;
	if (kind == LEAVE_AFTER || (kind == ENTER && is_tail_jump(thread, sp, cookie)))
		limit = sp - 1;
	leave_frames(thread, limit, site);

	if (kind == LEAVE_RET) {
		classify_base(thread, word_at(sp), site);
	} else if (kind == LEAVE_AFTER) {
		set_base_category(thread, RLS_COOKIE_CATEGORY(cookie), site);
	} else {
		classify_before_entry(thread, cookie, ip, sp);
		enter_frame(thread, task, sp, RLS_COOKIE_CATEGORY(cookie), RLS_COOKIE_EXIT(cookie),
			    site);
	}
	thread->hit_totals.cost_ns += rest_ns;
	return 0;
}

/* The function returned: sp is 8 above the slot that held its return address. */
static __always_inline int handle_return(struct pt_regs *ctx, bool multi)
{
	__u64 sp = READ_REGISTER(PT_REGS_SP(ctx));
	__u64 ip = READ_REGISTER(PT_REGS_IP(ctx));
	struct task_struct *task = NULL;
	struct thread_state *thread = current_thread_and_task(&task);
	__u64 cookie;
	__u32 site, rest_ns;

	if (!thread)
		return 0;
	cookie = cookie_of(ctx, task, multi);
	site = RLS_COOKIE_SITE(cookie);
	rest_ns = count_hit(thread, cookie, cost_before_ns[1]);
	if (is_out_of_window(cookie)) {
		thread->hit_totals.cost_ns += rest_ns;
		return 0;
	}
	forget_stale_frames(thread);
	sync_operations(thread);
	leave_frames(thread, sp - 8, site);
	if (RLS_COOKIE_FROM_PYTHON(cookie))
		set_base_category(thread, PYTHON, site);
	else
		classify_base(thread, ip, site);
	thread->hit_totals.cost_ns += rest_ns;
	return 0;
}

/* Each program twice: for uprobe_multi links (kernel >= 6.6) and for perf events. */
SEC("uprobe.multi")
int on_site_multi(struct pt_regs *ctx)
{
	return handle_site(ctx, true);
}

SEC("uretprobe.multi")
int on_return_multi(struct pt_regs *ctx)
{
	return handle_return(ctx, true);
}

SEC("uprobe")
int on_site(struct pt_regs *ctx)
{
	return handle_site(ctx, false);
}

SEC("uretprobe")
int on_return(struct pt_regs *ctx)
{
	return handle_return(ctx, false);
}
