/* Where the time of totals goes: the cells of (process, operation, phase, category). Private to
 * totals.bpf.c. */
#ifndef RLS_TOTALS_TIME_BPF_H
#define RLS_TOTALS_TIME_BPF_H

#include "bpf/shared/control.bpf.h"

/* A word: since when, whether off the CPU, and the category. */
#define WORD(since_ns, state) ((since_ns) << 5 | (state))
#define SINCE_OF(word) ((word) >> 5)
#define STATE_OF(word) ((__u32)(word)&31)
#define CATEGORY_OF(word) ((__u32)(word)&15)
#define OFF_CPU 16

static const struct rls_wire_cell empty_cell = {};

/* What a word covered that was taken. */
struct stretch {
	__u64 word;
	__u64 until_ns;
	__u32 kept_ns;
};

/* ---- cells ---- */

static __always_inline struct rls_wire_scope *find_scope(__u32 pid)
{
	return bpf_map_lookup_elem(&scopes, &pid);
}

/* Names can be paired in more ways than there are cells: a process gets its share of them. */
static __always_inline bool may_have_cell(__u32 pid)
{
	struct rls_wire_scope *scope = find_scope(pid);

	if (!scope)
		return true;
	return scope->cells < RLS_TOTALS_CELLS_MAX &&
	       __sync_fetch_and_add(&scope->cells, 1) < RLS_TOTALS_CELLS_MAX;
}

SUBPROGRAM struct rls_wire_cell *cell_of(const struct rls_wire_cell_key *key)
{
	struct rls_wire_cell *cell = bpf_map_lookup_elem(&cells, key);
	struct rls_wire_cell_key own;

	if (cell)
		return cell;
	own = *key;
	if (!may_have_cell(own.pid))
		own.phase = RLS_TOTALS_OTHER;
	bpf_map_update_elem(&cells, &own, &empty_cell, BPF_NOEXIST);
	cell = bpf_map_lookup_elem(&cells, &own);
	if (!cell)
		count_drop(RLS_DROP_CELLS);
	return cell;
}

static __always_inline void add_time(const struct rls_wire_cell_key *key, __u64 ns,
				     __u64 off_cpu_ns)
{
	struct rls_wire_cell *cell = ns ? cell_of(key) : NULL;

	if (!cell)
		return;
	__sync_fetch_and_add(&cell->ns, ns);
	if (off_cpu_ns)
		__sync_fetch_and_add(&cell->off_cpu_ns, off_cpu_ns);
}

/* Off the CPU a thread stays in what it was in, whether windows close or not. */
static __always_inline bool is_known(__u64 word)
{
	return word & OFF_CPU && CATEGORY_OF(word) != RLS_TOTALS_CLOSED;
}

/* Of the running thread's ns, kept_ns at most were spent without a CPU. What is left of them. */
static __always_inline __u64 add_running(const struct rls_wire_cell_key *key, __u64 word, __u64 ns,
					 __u64 kept_ns)
{
	__u64 kept = kept_ns < ns ? kept_ns : ns;

	add_time(key, ns, word & OFF_CPU ? ns : kept);
	return kept_ns - kept;
}

/* The time of a word up to until_ns; what of it is after a window has closed is in no category.
 * key's is that of its end afterwards. Returns what of kept_ns does not fit into that time.
 * Global, so that the verifier walks it once. */
__attribute__((noinline)) __u32 add_stretch(struct rls_wire_cell_key *key, __u64 word,
					    __u64 until_ns, __u64 kept_ns)
{
	__u64 since_ns = SINCE_OF(word), edge_ns = window_edge_ns;
	struct rls_wire_cell_key own;

	if (!key)
		return 0;
	own = *key; /* kernels before 6.2 take no key of a map but from the stack */
	own.category = CATEGORY_OF(word);
	if (word && window_edges & 1 && own.category != RLS_TOTALS_CLOSED && !is_known(word) &&
	    until_ns > edge_ns) {
		if (since_ns < edge_ns) {
			kept_ns = add_running(&own, word, edge_ns - since_ns, kept_ns);
			since_ns = edge_ns;
		}
		own.category = RLS_TOTALS_CLOSED;
	}
	if (word)
		kept_ns = add_running(&own, word, until_ns - since_ns, kept_ns);
	key->category = own.category;
	return (__u32)kept_ns;
}

/* The same of a thread whose process may have gone over into another phase meanwhile. Of several
 * changes only the last is known. */
static __always_inline void add_phases(struct rls_wire_cell_key *key, struct rls_wire_scope *scope,
				       struct rls_wire_thread_totals *totals,
				       const struct stretch *stretch)
{
	__u64 edge_ns = scope->phase_ns, word = stretch->word;
	__u32 phase = scope->phase, kept_ns = stretch->kept_ns;

	key->phase = totals->phase;
	if (phase != totals->phase && stretch->until_ns >= edge_ns) {
		totals->phase = phase;
		if (SINCE_OF(word) < edge_ns) {
			kept_ns = add_stretch(key, word, edge_ns, kept_ns);
			word = word ? WORD(edge_ns, STATE_OF(word)) : 0;
		}
		key->phase = phase;
	}
	kept_ns = add_stretch(key, word, stretch->until_ns, kept_ns);
	if (kept_ns)
		__sync_fetch_and_add(&totals->kept_ns, kept_ns);
}

#endif
