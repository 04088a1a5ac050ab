#include "bpf/range_totals.bpf.h"

#include "bpf/name.bpf.h"
#include "bpf/shared/control.bpf.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/annotate/library_ranges.h"

/* A place, with its mask in the verifier's sight (state.bpf.h, FRAME). */
#define RANGE(i)                                                                                   \
	({                                                                                         \
		__u32 index_ = (i);                                                                \
		asm volatile("" : "+r"(index_));                                                   \
		index_ &(RLS_RANGES_OPEN - 1);                                                     \
	})
#define NOWHERE RLS_RANGES_OPEN

/* ---- the stack ---- */

static __always_inline __u32 innermost(const struct open_ranges *ranges)
{
	for (__u32 i = 0; i < RLS_RANGES_OPEN; i++) {
		const struct open_range *range;

		if (i >= ranges->count)
			break;
		range = &ranges->range[RANGE(ranges->count - 1 - i)];
		if (range->name)
			return range->over >= ranges->depth ? range->name : ranges->annotation;
	}
	return ranges->annotation;
}

/* The innermost one with this token. */
static __always_inline __u32 range_totals_find(const struct open_ranges *ranges, __u64 token)
{
	for (__u32 i = 0; i < RLS_RANGES_OPEN; i++) {
		__u32 place;

		if (i >= ranges->count)
			break;
		place = RANGE(ranges->count - 1 - i);
		if (ranges->range[place].token == token)
			return place;
	}
	return NOWHERE;
}

static __always_inline void remove_at(struct open_ranges *ranges, __u32 place)
{
	for (__u32 i = 0; i < RLS_RANGES_OPEN - 1; i++) {
		if (i + 1 >= ranges->count)
			break;
		if (i >= place)
			ranges->range[RANGE(i)] = ranges->range[RANGE(i + 1)];
	}
	ranges->count--;
}

/* Whether what is to be seen may have changed. */
static __always_inline bool end_range(struct open_ranges *ranges, __u64 token)
{
	__u32 place, name;

	if (!token && ranges->unkept) {
		ranges->unkept--;
		return false;
	}
	place = range_totals_find(ranges, token);
	if (place == NOWHERE)
		return false;
	name = ranges->range[RANGE(place)].name;
	remove_at(ranges, place);
	return name != 0;
}

/* name 0: not to be seen, there for its end only. */
static __always_inline void begin_range(struct open_ranges *ranges, __u64 token, __u32 name)
{
	/* Without tokens ends take the innermost, so within one that found no room none is kept. */
	if (ranges->count >= RLS_RANGES_OPEN || (!token && ranges->unkept)) {
		ranges->unkept += !token;
		return;
	}
	ranges->range[RANGE(ranges->count)] =
		(struct open_range){.token = token, .name = name, .over = ranges->depth};
	ranges->count++;
}

/* ---- names ---- */

#define BEGINNING_BYTES 32
#define BEGINNING(text) text,

static const char library_own[][BEGINNING_BYTES] = {RLS_LIBRARY_RANGES(BEGINNING)};

static __always_inline bool begins_with(const char *text, const char *beginning)
{
	for (__u32 i = 0; i < BEGINNING_BYTES; i++) {
		if (!beginning[i])
			return true;
		if (text[i] != beginning[i])
			return false;
	}
	return true;
}

/* As rls_range_is_library_own. A global function: its many branches are walked once. */
__attribute__((noinline)) int is_library_own(struct thread_state *thread)
{
	for (__u32 i = 0; thread && i < sizeof(library_own) / sizeof(library_own[0]); i++) {
		if (begins_with(thread->ranges.text, library_own[i]))
			return 1;
	}
	return 0;
}

/* Texts are known by what they are, at an address that no name of a process can have. */
static __always_inline __u64 address_of_text(const char *text)
{
	__u64 hash = 0xcbf29ce484222325ULL;

	for (__u32 i = 0; i < RLS_WIRE_NAME_BYTES / sizeof(__u64); i++) {
		hash = (hash ^ ((const __u64 *)text)[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash | 1ULL << 63;
}

/* Never 0: that there is a range is known. */
__attribute__((noinline)) int name_range(struct thread_state *thread)
{
	struct rls_wire_name *record;
	struct name_key key;
	__u32 id;

	if (!thread)
		return RLS_TOTALS_UNREADABLE;
	if (!thread->ranges.text[0])
		return RLS_TOTALS_UNREADABLE;
	id = find_name(thread, address_of_text(thread->ranges.text), &key);
	if (id)
		return id;
	record = begin_name(thread, &key);
	if (!record)
		return RLS_TOTALS_UNREADABLE;
	record->length = thread->ranges.length;
	__builtin_memcpy(record->text, thread->ranges.text, RLS_WIRE_NAME_BYTES);
	return end_name(record, &key);
}

/* ---- the ways in ---- */

__attribute__((noinline)) int range_totals_annotation(struct thread_state *thread, __u64 at_ns,
						      __u32 name, const struct rls_edge *edge)
{
	struct open_ranges *ranges;
	__u32 depth, limit;

	if (!totals_mode || !thread || !edge)
		return 0;
	ranges = &thread->ranges;
	depth = edge->depth < RLS_STACK_MAX ? edge->depth : RLS_STACK_MAX;
	/* A stack that was sent as a whole has no known order: it lies above all ranges, as in
	 * record/events/translator.c. */
	limit = edge->kind == RLS_EDGE_POP ? depth : 0;
	if (edge->kind == RLS_EDGE_PUSH && depth)
		limit = depth - 1;
	for (__u32 i = 0; i < RLS_RANGES_OPEN; i++) {
		struct open_range *range = &ranges->range[RANGE(i)];

		if (i >= ranges->count)
			break;
		if (range->over > limit)
			range->over = limit;
	}
	ranges->annotation = name;
	ranges->depth = depth;
	return totals_operation(thread, at_ns, innermost(ranges));
}

__attribute__((noinline)) int range_totals_push(struct thread_state *thread, __u64 now_ns,
						__u64 token)
{
	bool changed = false;
	__u32 name = 0;

	if (!totals_mode || !thread)
		return 0;
	if (token) /* the same object again: its earlier range is over */
		changed = end_range(&thread->ranges, token);
	if (!is_library_own(thread))
		name = name_range(thread);
	if (name || !token)
		begin_range(&thread->ranges, token, name);
	if (name || changed)
		totals_operation(thread, now_ns, innermost(&thread->ranges));
	return 0;
}

__attribute__((noinline)) int range_totals_pop(struct thread_state *thread, __u64 now_ns,
					       __u64 token)
{
	if (totals_mode && thread && end_range(&thread->ranges, token))
		totals_operation(thread, now_ns, innermost(&thread->ranges));
	return 0;
}

__attribute__((noinline)) int range_totals_clear(struct thread_state *thread)
{
	if (!totals_mode || !thread)
		return 0;
	thread->ranges.count = 0;
	thread->ranges.unkept = 0;
	thread->ranges.annotation = 0;
	thread->ranges.depth = 0;
	return 0;
}

__attribute__((noinline)) int range_totals_fork(const struct thread_state *parent,
						struct thread_state *child)
{
	if (totals_mode && parent && child)
		__builtin_memcpy(&child->ranges, &parent->ranges, sizeof(child->ranges));
	return 0;
}
