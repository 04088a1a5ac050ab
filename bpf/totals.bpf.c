#include "bpf/totals.bpf.h"

#include "bpf/shared/control.bpf.h"
#include "bpf/shared/tick.bpf.h"
#include "bpf/totals_time.bpf.h"

/* Instead of the category that a thread goes over into: it stays, and so does where the thread
 * is; the thread leaves its CPU; it comes back to one. */
#define SAME 32
#define LEAVES 33
#define RETURNS 34
#define KEPT_NS_MAX 500000000ULL /* of one off-CPU period, lest kept_ns overflows */
#define PLACE(i) ((i) & (RLS_TOTALS_THREADS_MAX - 1))
#define TRIES 8 /* more than can write a word at the same moment */

static const struct rls_wire_scope empty_scope = {};

/* ---- words ---- */

/* A global function: its branches, tried so many times, would be too much for the verifier. */
__attribute__((noinline)) int next_state(__u64 word, __u32 next)
{
	__u32 category = next < OFF_CPU ? next : CATEGORY_OF(word);
	__u32 off_cpu = next == LEAVES ? OFF_CPU : next == SAME ? (__u32)word & OFF_CPU : 0;

	if (window_edges & 1 && !(next == SAME && is_known(word)))
		category = RLS_TOTALS_CLOSED;
	return category | off_cpu;
}

/* Takes the time up to at_ns out of a thread's totals; they go on in `next`. False: it could not be. */
static __always_inline bool totals_accept(struct rls_wire_thread_totals *totals, __u64 at_ns,
					  __u32 next, struct stretch *out)
{
	for (int i = 0; i < TRIES; i++) {
		__u64 old = *(volatile __u64 *)&totals->word;
		__u64 until_ns = at_ns > SINCE_OF(old) ? at_ns : SINCE_OF(old);
		__u64 new = WORD(until_ns, (__u64)(__u32)next_state(old, next));

		if (__sync_val_compare_and_swap(&totals->word, old, new) != old)
			continue;
		out->word = old;
		out->until_ns = until_ns;
		out->kept_ns = totals->kept_ns ? __sync_lock_test_and_set(&totals->kept_ns, 0) : 0;
		return true;
	}
	count_drop(RLS_DROP_CELLS);
	return false;
}

static __always_inline struct rls_wire_thread_totals *totals_of(struct thread_state *thread,
								struct rls_wire_scope *scope)
{
	__u32 place = thread->place;

	return place ? &scope->totals[PLACE(place - 1)] : &thread->totals;
}

static __always_inline __u32 operation_of(const struct rls_wire_thread_totals *totals,
					  const struct rls_wire_scope *scope)
{
	return totals->operation == RLS_TOTALS_INHERITS ? scope->operation : totals->operation;
}

static __always_inline void totals_add_until(struct rls_wire_scope *scope,
					     struct rls_wire_thread_totals *totals, __u32 pid,
					     __u64 at_ns)
{
	struct rls_wire_cell_key key = {.pid = pid, .operation = operation_of(totals, scope)};
	struct stretch stretch;

	if (totals->word && totals_accept(totals, at_ns, SAME, &stretch))
		add_phases(&key, scope, totals, &stretch);
}

/* Where the thread's time is added; NULL: nowhere. */
static __always_inline struct rls_wire_scope *totals_scope(const struct thread_state *thread)
{
	return totals_mode && thread ? find_scope(thread->pid) : NULL;
}

/* Cuts the time of the process's threads that inherit. */
__attribute__((noinline)) int totals_add_heirs(__u32 pid, __u64 at_ns)
{
	struct rls_wire_scope *scope;

	if (!totals_mode)
		return 0;
	scope = find_scope(pid);
	if (!scope)
		return 0;
	for (__u32 i = 0; i < RLS_TOTALS_THREADS_MAX; i++) {
		struct rls_wire_thread_totals *totals = &scope->totals[PLACE(i)];

		if (i >= scope->places)
			break;
		if (totals->tid && totals->operation == RLS_TOTALS_INHERITS)
			totals_add_until(scope, totals, pid, at_ns);
	}
	return 0;
}

/* ---- hits ---- */

static __always_inline void add_hits(struct thread_state *thread,
				     const struct rls_wire_cell_key *key)
{
	struct rls_wire_cell *cell;

	if (!thread->hit_totals.hits && !thread->hit_totals.cost_ns)
		return;
	cell = cell_of(key);
	if (!cell)
		return;
	__sync_fetch_and_add(&cell->hits, thread->hit_totals.hits);
	__sync_fetch_and_add(&cell->cost_ns, thread->hit_totals.cost_ns);
	__sync_fetch_and_add(&burden[RLS_BURDEN_OF(thread->tid)], thread->hit_totals.cost_ns);
	thread->hit_totals.hits = 0;
	thread->hit_totals.cost_ns = 0;
}

/* The running thread's time and hits up to at_ns; false: there is nothing to add them to. *key
 * is where the last of it went. */
static __always_inline bool totals_finish(struct thread_state *thread, struct rls_wire_scope *scope,
					  __u64 at_ns, __u32 next, struct rls_wire_cell_key *key)
{
	struct rls_wire_thread_totals *totals = totals_of(thread, scope);
	struct stretch stretch;

	if (!totals_accept(totals, at_ns, next, &stretch))
		return false;
	*key = (struct rls_wire_cell_key){.pid = thread->pid,
					  .operation = operation_of(totals, scope)};
	add_phases(key, scope, totals, &stretch);
	add_hits(thread, key);
	return true;
}

/* ---- the ways in ---- */

static __always_inline struct rls_wire_scope *scope_of(__u32 pid)
{
	struct rls_wire_scope *scope = find_scope(pid);

	if (scope)
		return scope;
	bpf_map_update_elem(&scopes, &pid, &empty_scope, BPF_NOEXIST);
	scope = find_scope(pid);
	if (!scope)
		count_drop(RLS_DROP_THREADS);
	return scope;
}

static __always_inline void raise_places(struct rls_wire_scope *scope, __u32 places)
{
	for (int i = 0; i < TRIES; i++) {
		__u32 before = *(volatile __u32 *)&scope->places;

		if (before >= places ||
		    __sync_val_compare_and_swap(&scope->places, before, places) == before)
			break;
	}
}

/* A free place among those of the process's threads. */
SUBPROGRAM __u32 find_place(struct rls_wire_scope *scope, __u32 tid)
{
	for (__u32 i = 0; i < RLS_TOTALS_THREADS_MAX; i++) {
		__u32 *owner = &scope->totals[PLACE(i)].tid;

		if (*owner || __sync_val_compare_and_swap(owner, 0, tid))
			continue;
		raise_places(scope, i + 1);
		return i + 1;
	}
	return 0;
}

__attribute__((noinline)) int totals_may_name(__u32 pid)
{
	struct rls_wire_scope *scope;

	if (!totals_mode)
		return 1;
	scope = find_scope(pid);
	return scope ? __sync_fetch_and_add(&scope->names, 1) < RLS_TOTALS_NAMES_MAX : 0;
}

__attribute__((noinline)) int totals_begin(struct thread_state *thread, __u64 since_ns,
					   __u32 category)
{
	struct rls_wire_scope *scope;
	struct rls_wire_thread_totals *totals;

	if (!totals_mode || !thread || __sync_val_compare_and_swap(&thread->begun, 0, 1))
		return 0;
	scope = scope_of(thread->pid);
	if (!scope)
		return 0;
	if (since_ns < scope->since_ns)
		since_ns = scope->since_ns;
	thread->place = find_place(scope, thread->tid);
	totals = totals_of(thread, scope);
	totals->tid = thread->tid;
	totals->operation = RLS_TOTALS_INHERITS;
	totals->phase = scope->phase;
	totals->kept_ns = 0;
	*(volatile __u64 *)&totals->word =
		WORD(since_ns, window_edges & 1 ? RLS_TOTALS_CLOSED : category & 15);
	return 0;
}

/* What sites are good for shows in the calls that begin at them (record/budget/site_value.h). */
static __always_inline void count_call(struct thread_state *thread, __u64 now_ns, __u32 site)
{
	struct rls_wire_calls *calls;
	__u32 entered;

	if (thread->entered_ns && thread->entered_window == window_edges) {
		entered = thread->entered_site;
		calls = bpf_map_lookup_elem(&site_calls, &entered);
		if (calls && now_ns > thread->entered_ns) {
			calls->calls++;
			calls->time_ns += now_ns - thread->entered_ns;
		}
	}
	thread->entered_ns = thread->depth > thread->entered_depth ? now_ns : 0;
	thread->entered_depth = thread->depth;
	thread->entered_site = site;
	thread->entered_window = window_edges;
}

__attribute__((noinline)) int totals_transition(struct thread_state *thread, __u64 now_ns,
						__u32 category, __u32 site)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope;
	struct rls_wire_cell *cell;

	if (!totals_mode || !thread)
		return 0;
	if (!(window_edges & 1))
		count_call(thread, now_ns, site);
	scope = find_scope(thread->pid);
	if (!scope || !totals_finish(thread, scope, now_ns, category & 15, &key))
		return 0;
	thread->hit_totals.cost_ns += event_cost_ns; /* it is yet to come: the next stretch's */
	/* Between windows some sites still tell, but not all. */
	if (!key.category || !category || key.category == category ||
	    key.category >= RLS_TOTALS_CATEGORIES)
		return 0;
	cell = cell_of(&key);
	if (cell)
		__sync_fetch_and_add(&cell->to[category & (RLS_TOTALS_CATEGORIES - 1)], 1);
	return 0;
}

/* tid 0: the process's phase. */
static __always_inline void totals_report(const struct rls_wire_scope *scope, __u32 pid, __u32 tid,
					  __u64 at_ns, __u32 name)
{
	struct rls_wire_name_change *record =
		control_reserve(struct rls_wire_name_change, RLS_WIRE_NAME_CHANGE, pid, tid, at_ns);

	if (!record)
		return;
	record->name = name;
	record->source = tid && tid == scope->source;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

__attribute__((noinline)) int totals_bridge(__u32 pid)
{
	struct rls_wire_scope *scope = totals_mode ? find_scope(pid) : NULL;

	if (!scope || scope->bridged)
		return 0;
	scope->bridged = 1;
	totals_report(scope, pid, 0, 0, scope->phase);
	for (__u32 i = 0; i < RLS_TOTALS_THREADS_MAX; i++) {
		struct rls_wire_thread_totals *totals = &scope->totals[PLACE(i)];

		if (i >= scope->places)
			break;
		if (totals->tid && totals->operation != RLS_TOTALS_INHERITS)
			totals_report(scope, pid, totals->tid, 0, totals->operation);
	}
	return 0;
}

__attribute__((noinline)) int totals_operation(struct thread_state *thread, __u64 at_ns,
					       __u32 operation)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);

	if (!scope)
		return 0;
	totals_finish(thread, scope, at_ns, SAME, &key);
	totals_of(thread, scope)->operation = operation;
	/* As record/events/operation_inherit.h has it: the main thread, else the first that has operations. */
	if (!scope->source || thread->tid == thread->pid)
		scope->source = thread->tid;
	if (scope->source == thread->tid) {
		totals_add_heirs(thread->pid, at_ns);
		scope->operation = operation;
	}
	if (scope->bridged)
		totals_report(scope, thread->pid, thread->tid, at_ns, operation);
	return 0;
}

__attribute__((noinline)) int totals_phase(struct thread_state *thread, __u64 at_ns, __u32 phase)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);

	if (!scope || scope->phase == phase)
		return 0;
	totals_finish(thread, scope, at_ns, SAME, &key);
	scope->phase_ns = at_ns;
	*(volatile __u32 *)&scope->phase = phase;
	if (scope->bridged)
		totals_report(scope, thread->pid, 0, at_ns, phase);
	return 0;
}

__attribute__((noinline)) int totals_hits(struct thread_state *thread, __u64 now_ns)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);

	if (scope)
		totals_finish(thread, scope, now_ns, SAME, &key);
	return 0;
}

__attribute__((noinline)) int totals_flush(struct thread_state *thread, __u64 now_ns)
{
	struct rls_wire_scope *scope = totals_scope(thread);

	if (scope)
		totals_add_until(scope, totals_of(thread, scope), thread->pid, now_ns);
	return 0;
}

__attribute__((noinline)) int totals_leave(struct thread_state *thread, __u64 now_ns)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);

	if (scope && totals_of(thread, scope)->word)
		totals_finish(thread, scope, now_ns, LEAVES, &key);
	return 0;
}

__attribute__((noinline)) int totals_waits(struct thread_state *thread)
{
	struct rls_wire_scope *scope = totals_scope(thread);
	struct rls_wire_thread_totals *totals;
	__u64 word;

	if (!scope)
		return 0;
	totals = totals_of(thread, scope);
	word = totals->word;
	if (word)
		__sync_val_compare_and_swap(&totals->word, word, word | OFF_CPU);
	return 0;
}

__attribute__((noinline)) int totals_return(struct thread_state *thread, __u64 now_ns,
					    __u64 away_ns)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);
	struct rls_wire_thread_totals *totals;

	if (!scope)
		return 0;
	totals = totals_of(thread, scope);
	if (totals->word & OFF_CPU) {
		note_phase(now_ns);
		totals_finish(thread, scope, now_ns, RETURNS, &key);
	} else if (totals->word) {
		__sync_fetch_and_add(&totals->kept_ns,
				     away_ns < KEPT_NS_MAX ? away_ns : KEPT_NS_MAX);
	}
	return 0;
}

__attribute__((noinline)) int totals_fork(struct thread_state *parent, struct thread_state *child,
					  __u64 now_ns)
{
	struct rls_wire_scope *scope, *childs;
	struct rls_wire_thread_totals *totals;
	__u32 operation, phase, child_pid;

	if (!totals_mode || !parent || !child)
		return 0;
	child_pid = child->pid;
	scope = find_scope(parent->pid);
	if (!scope)
		return 0;
	totals = totals_of(parent, scope);
	operation = totals->operation;
	phase = scope->phase;
	bpf_map_delete_elem(&scopes, &child_pid); /* the number may have been used before */
	totals_begin(child, now_ns, child->category);
	childs = find_scope(child->pid);
	if (!childs)
		return 0;
	childs->phase = phase;
	totals_of(child, childs)->phase = phase;
	if (operation == RLS_TOTALS_INHERITS)
		return 0;
	childs->operation = operation;
	childs->source = child->tid;
	totals_of(child, childs)->operation = operation;
	return 0;
}

__attribute__((noinline)) int totals_exec(struct thread_state *thread, __u64 now_ns)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);
	struct rls_wire_thread_totals *totals;

	if (!scope)
		return 0;
	totals_finish(thread, scope, now_ns, 0, &key);
	totals = totals_of(thread, scope);
	totals->tid = thread->pid;
	totals->operation = RLS_TOTALS_INHERITS;
	totals->phase = 0;
	scope->operation = 0;
	scope->phase = 0;
	scope->names = 0;
	scope->source = 0;
	scope->bridged = 0;
	return 0;
}

__attribute__((noinline)) int totals_close(struct thread_state *thread, __u64 now_ns)
{
	struct rls_wire_cell_key key;
	struct rls_wire_scope *scope = totals_scope(thread);
	struct rls_wire_thread_totals *totals;

	if (!scope)
		return 0;
	totals_finish(thread, scope, now_ns, 0, &key);
	if (scope->source == thread->tid) {
		/* With it its operations end, for those too that have inherited them. */
		totals_add_heirs(thread->pid, now_ns);
		if (scope->bridged && scope->operation)
			totals_report(scope, thread->pid, thread->tid, now_ns, 0);
		scope->operation = 0;
		scope->source = 0;
	}
	totals = totals_of(thread, scope);
	*(volatile __u64 *)&totals->word = 0;
	totals->tid = 0;
	thread->place = 0;
	return 0;
}

__attribute__((noinline)) int totals_sample(struct thread_state *thread,
					    struct rls_wire_category_sample *sample)
{
	struct rls_wire_scope *scope = totals_scope(thread);
	struct rls_wire_thread_totals *totals;

	if (!scope || !sample)
		return 0;
	totals = totals_of(thread, scope);
	sample->operation = operation_of(totals, scope);
	sample->phase = scope->phase;
	sample->category = window_edges & 1 ? RLS_TOTALS_CLOSED : CATEGORY_OF(totals->word);
	return 0;
}
