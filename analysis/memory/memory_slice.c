#include "analysis/memory/memory_slice.h"

static void take_away(uint64_t *sum, uint64_t before)
{
	*sum -= *sum < before ? *sum : before;
}

static void at_most(uint64_t *sum, uint64_t most)
{
	if (*sum > most)
		*sum = most;
}

/* The peak may have been before. */
static void slice_line(const struct rls_memory_sums *before, struct rls_event *event)
{
	take_away(&event->memory_line.allocs, before->allocs);
	take_away(&event->memory_line.alloc_bytes, before->alloc_bytes);
	take_away(&event->memory_line.frees, before->frees);
	take_away(&event->memory_line.freed_bytes, before->freed_bytes);
	take_away(&event->memory_line.temporary_bytes, before->temporary_bytes);
	at_most(&event->memory_line.frees, event->memory_line.allocs);
	at_most(&event->memory_line.freed_bytes, event->memory_line.alloc_bytes);
	at_most(&event->memory_line.temporary_bytes, event->memory_line.freed_bytes);
	event->memory_line.peak_bytes = 0;
}

static bool slice_copies(const struct rls_copies *before, struct rls_event *event)
{
	const struct rls_copy_place *place =
		rls_copies_find(before, &event->copy_line.of, event->copy_line.kind);

	if (!place)
		return true;
	take_away(&event->copy_line.copies, place->copies);
	take_away(&event->copy_line.bytes, place->bytes);
	return event->copy_line.copies != 0;
}

/* Which blocks became how old in the slice is not known of a line that had some before. */
bool rls_memory_slice(const struct rls_memory_totals *before,
		      const struct rls_process_memory *memory, struct rls_event *event)
{
	const struct rls_memory_line *of = event->kind == RLS_EVENT_MEMORY_LINE
						   ? &event->memory_line.of
						   : &event->memory_ages.of;
	const struct rls_memory_place *place;

	if (event->kind == RLS_EVENT_COPY_LINE)
		return slice_copies(&memory->copies, event);
	place = rls_memory_totals_find(before, memory, of);
	if (!place)
		return true;
	if (event->kind == RLS_EVENT_MEMORY_AGES)
		return false;
	slice_line(&place->sums, event);
	return event->memory_line.allocs || event->memory_line.freed_bytes;
}
