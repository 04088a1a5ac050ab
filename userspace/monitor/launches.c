#include "userspace/monitor/launches.h"
#include "analysis/base/search.h"
#include "bpf/wire/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"

static void history_free(struct rls_launches_history *history)
{
	free(history->changes);
	free(history);
}

void rls_launches_clear(struct rls_launches *launches)
{
	for (size_t i = 0; i < launches->threads.capacity; i++) {
		struct rls_launches_history *history = launches->threads.entries[i].value;

		if (history)
			history_free(history);
	}
	rls_index_map_free(&launches->threads);
	free(launches->source.changes);
	free(launches->phase.changes);
	free(launches->slots);
	*launches = (struct rls_launches){0};
}

/* ---- what was since when ---- */

static void drop_first(struct rls_launches_history *history, size_t count)
{
	history->count -= count;
	memmove(history->changes, history->changes + count,
		history->count * sizeof(*history->changes));
}

/* Times are the target's word: none is before the last. */
static int launches_change(struct rls_launches_history *history, uint64_t since_ns, uint32_t name)
{
	if (history->count == RLS_LAUNCHES_CHANGES)
		drop_first(history, RLS_LAUNCHES_CHANGES / 2);
	if (rls_grow(&history->changes, &history->room, history->count))
		return -ENOMEM;
	if (history->count && since_ns < history->changes[history->count - 1].since_ns)
		since_ns = history->changes[history->count - 1].since_ns;
	history->changes[history->count++] = (struct rls_launches_change){since_ns, name};
	return 0;
}

/* How many changes there were up to then. */
static size_t changes_until(const struct rls_launches_history *history, uint64_t time_ns)
{
	return rls_first_not(history->count, i, history->changes[i].since_ns <= time_ns);
}

static uint32_t name_at(const struct rls_launches_history *history, uint64_t time_ns,
			uint32_t otherwise)
{
	size_t count = changes_until(history, time_ns);

	return count ? history->changes[count - 1].name : otherwise;
}

static void forget_changes(struct rls_launches_history *history, uint64_t before_ns)
{
	size_t count = changes_until(history, before_ns);

	if (count > 1) /* the last of them holds on */
		drop_first(history, count - 1);
}

/* ---- what comes in ---- */

static int find_history(struct rls_launches *launches, uint32_t tid,
			struct rls_launches_history **out)
{
	struct rls_launches_history *history = rls_index_map_get(&launches->threads, tid, 0);

	if (!history && launches->threads.count < RLS_LAUNCHES_THREADS) {
		history = calloc(1, sizeof(*history));
		if (!history || rls_index_map_put(&launches->threads, tid, 0, history)) {
			free(history);
			return -ENOMEM;
		}
	}
	*out = history;
	return 0;
}

int rls_launches_change(struct rls_launches *launches, const struct rls_wire_name_change *change)
{
	const struct rls_wire_header *header = &change->header;
	struct rls_launches_history *own;
	int r;

	if (!header->tid)
		return launches_change(&launches->phase, header->time_ns, change->name);
	r = find_history(launches, header->tid, &own);
	if (!r && own)
		r = launches_change(own, header->time_ns, change->name);
	/* A source that ends leaves the others in what they were. */
	if (!r && change->source && change->name != RLS_TOTALS_INHERITS)
		r = launches_change(&launches->source, header->time_ns, change->name);
	return r;
}

int rls_launches_add(struct rls_launches *launches, const struct rls_event *event)
{
	uint64_t correlation = event->launch.correlation;

	if (!launches->slots)
		launches->slots = calloc(RLS_LAUNCHES_KEPT, sizeof(*launches->slots));
	if (!launches->slots)
		return -ENOMEM;
	launches->slots[correlation % RLS_LAUNCHES_KEPT] =
		(struct rls_launches_slot){correlation, event->time_ns, event->tid};
	return 0;
}

/* ---- what is asked for ---- */

void rls_launches_find(const struct rls_launches *launches, uint64_t correlation,
		       uint32_t *operation, uint32_t *phase)
{
	const struct rls_launches_slot *slot =
		launches->slots ? &launches->slots[correlation % RLS_LAUNCHES_KEPT] : NULL;
	const struct rls_launches_history *own;

	*operation = *phase = 0;
	if (!correlation || !slot || slot->correlation != correlation)
		return;
	own = rls_index_map_get(&launches->threads, slot->tid, 0);
	*operation = own ? name_at(own, slot->time_ns, RLS_TOTALS_INHERITS) : RLS_TOTALS_INHERITS;
	if (*operation == RLS_TOTALS_INHERITS)
		*operation = name_at(&launches->source, slot->time_ns, 0);
	*phase = name_at(&launches->phase, slot->time_ns, 0);
}

void rls_launches_forget(struct rls_launches *launches, uint64_t before_ns)
{
	uint64_t over[64];
	size_t count = 0;

	forget_changes(&launches->source, before_ns);
	forget_changes(&launches->phase, before_ns);
	for (size_t i = 0; i < launches->threads.capacity; i++) {
		struct rls_launches_history *own = launches->threads.entries[i].value;

		if (!own)
			continue;
		forget_changes(own, before_ns);
		if (own->count == 1 && own->changes[0].name == RLS_TOTALS_INHERITS &&
		    own->changes[0].since_ns <= before_ns && count < sizeof(over) / sizeof(over[0]))
			over[count++] = launches->threads.entries[i].a;
	}
	while (count--) { /* the others another time */
		history_free(rls_index_map_get(&launches->threads, over[count], 0));
		rls_index_map_remove(&launches->threads, over[count], 0);
	}
}
