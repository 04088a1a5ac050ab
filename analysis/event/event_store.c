#include "analysis/event/event_store.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/event/event_fields.h"
#include "analysis/event/event_order.h"

#define PAYLOAD offsetof(struct rls_event, process)
#define INLINE_BYTES 16 /* enough for category, hits, off_cpu, phase, launch */

struct packed {
	uint64_t time_ns;
	uint32_t pid;
	uint32_t tid;
	uint16_t kind;
	uint16_t bytes; /* of payload */
	uint32_t reserved;
	union {
		unsigned char here[INLINE_BYTES];
		size_t offset; /* into the overflow buffer, when bytes > INLINE_BYTES */
	};
};
_Static_assert(sizeof(struct packed) == 40, "an event costs what the header says");

struct rls_event_store {
	struct packed *events;
	size_t count, room;
	unsigned char *overflow;
	size_t overflow_used, overflow_room;
	bool unsorted; /* an event was added that may belong before the one before it */
};

struct rls_event_store *rls_event_store_new(void)
{
	return calloc(1, sizeof(struct rls_event_store));
}

void rls_event_store_free(struct rls_event_store *store)
{
	if (!store)
		return;
	free(store->events);
	free(store->overflow);
	free(store);
}

static int reserve(struct rls_event_store *store, size_t bytes)
{
	if (rls_grow(&store->events, &store->room, store->count))
		return -ENOMEM;
	if (bytes > INLINE_BYTES && store->overflow_room - store->overflow_used < bytes) {
		size_t room = store->overflow_room * 2 + sizeof(struct rls_event);
		unsigned char *overflow = realloc(store->overflow, room);

		if (!overflow)
			return -ENOMEM;
		store->overflow = overflow;
		store->overflow_room = room;
	}
	return 0;
}

static const unsigned char *payload_of(const struct rls_event_store *store,
				       const struct packed *packed)
{
	return packed->bytes > INLINE_BYTES ? store->overflow + packed->offset : packed->here;
}

static void unpack_header(const struct packed *packed, struct rls_event *out)
{
	out->kind = packed->kind;
	out->pid = packed->pid;
	out->tid = packed->tid;
	out->time_ns = packed->time_ns;
}

static void event_store_unpack(const struct rls_event_store *store, const struct packed *packed,
			       struct rls_event *out)
{
	unpack_header(packed, out);
	memcpy((char *)out + PAYLOAD, payload_of(store, packed), packed->bytes);
}

/* What rls_event_compare cannot tell apart is for the sort to decide. */
static bool in_order(const struct packed *before, const struct rls_event *event)
{
	struct rls_event earlier;

	if (before->time_ns != event->time_ns)
		return before->time_ns < event->time_ns;
	unpack_header(before, &earlier);
	return rls_event_compare(&earlier, event) < 0;
}

int rls_event_store_add(struct rls_event_store *store, const struct rls_event *event)
{
	if (rls_event_check(event))
		return -EINVAL;

	const unsigned char *payload = (const unsigned char *)event + PAYLOAD;
	size_t bytes = rls_event_payload_bytes(event);

	if (reserve(store, bytes))
		return -ENOMEM;

	struct packed *packed = &store->events[store->count];

	packed->time_ns = event->time_ns;
	packed->pid = event->pid;
	packed->tid = event->tid;
	packed->kind = event->kind;
	packed->bytes = bytes;
	if (bytes > INLINE_BYTES) {
		packed->offset = store->overflow_used;
		memcpy(store->overflow + store->overflow_used, payload, bytes);
		store->overflow_used += bytes;
	} else {
		memcpy(packed->here, payload, bytes);
	}
	if (store->count && !in_order(&packed[-1], event))
		store->unsorted = true;
	store->count++;
	return 0;
}

size_t rls_event_store_count(const struct rls_event_store *store)
{
	return store->count;
}

size_t rls_event_store_bytes(const struct rls_event_store *store)
{
	return store->count * sizeof(*store->events) + store->overflow_used;
}

void rls_event_store_get(const struct rls_event_store *store, size_t index, struct rls_event *out)
{
	event_store_unpack(store, &store->events[index], out);
}

static int order_packed(const struct rls_event_store *store, const struct packed *a,
			const struct packed *b, const struct rls_string_pool *strings)
{
	struct rls_event left, right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	/* Payloads are looked at only where all else ties: it is rare, and they are large. */
	unpack_header(a, &left);
	unpack_header(b, &right);

	int order = rls_event_compare(&left, &right);

	if (order)
		return order;
	event_store_unpack(store, a, &left);
	event_store_unpack(store, b, &right);
	return rls_event_order(&left, &right, strings);
}

struct sort_context {
	const struct rls_event_store *store;
	const struct rls_string_pool *strings;
};

static int compare_packed(const void *a, const void *b, void *data)
{
	const struct sort_context *context = data;

	return order_packed(context->store, a, b, context->strings);
}

/* Moves the events that are earlier than one before them to late, closing up the others,
 * which are then in order. Returns how many were late. */
static size_t split_late(struct rls_event_store *store, const struct rls_string_pool *strings,
			 struct packed *late)
{
	size_t kept = 0, moved = 0;

	for (size_t i = 0; i < store->count; i++) {
		struct packed *event = &store->events[i];

		if (kept && order_packed(store, &store->events[kept - 1], event, strings) > 0)
			late[moved++] = *event;
		else
			store->events[kept++] = *event;
	}
	return moved;
}

/* Merges the sorted late events into the sorted others, from the back, in place. */
static void merge_late(struct rls_event_store *store, const struct rls_string_pool *strings,
		       const struct packed *late, size_t moved)
{
	size_t kept = store->count - moved;

	for (size_t to = store->count; moved; to--) {
		if (kept &&
		    order_packed(store, &store->events[kept - 1], &late[moved - 1], strings) > 0)
			store->events[to - 1] = store->events[--kept];
		else
			store->events[to - 1] = late[--moved];
	}
}

int rls_event_store_sort(struct rls_event_store *store, const struct rls_string_pool *strings)
{
	if (!store->unsorted)
		return 0;

	_cleanup_free_ struct packed *late = reallocarray(NULL, store->count, sizeof(*late));
	struct sort_context context = {.store = store, .strings = strings};

	if (!late)
		return -ENOMEM;

	size_t moved = split_late(store, strings, late);

	qsort_r(late, moved, sizeof(*late), compare_packed, &context);
	merge_late(store, strings, late, moved);
	store->unsorted = false;
	return 0;
}

void rls_event_store_clear(struct rls_event_store *store)
{
	store->count = 0;
	store->overflow_used = 0;
	store->unsorted = false;
}
