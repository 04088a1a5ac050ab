#include "analysis/event/memory_source.h"

#include <errno.h>
#include <stdlib.h>

struct memory_source {
	struct rls_event_source source; /* first: the source is this */
	struct rls_event_store *store;
	struct rls_string_pool *owned_strings;
	size_t next;
};

static int next_event(struct rls_event_source *source, struct rls_event *out)
{
	struct memory_source *memory = (struct memory_source *)source;

	if (memory->next == rls_event_store_count(memory->store))
		return 0;
	rls_event_store_get(memory->store, memory->next++, out);
	return 1;
}

static double share_given(const struct rls_event_source *source)
{
	const struct memory_source *memory = (const struct memory_source *)source;
	size_t count = rls_event_store_count(memory->store);

	return count ? (double)memory->next / (double)count : 1;
}

static void free_source(struct rls_event_source *source)
{
	struct memory_source *memory = (struct memory_source *)source;

	rls_event_store_free(memory->store);
	rls_string_pool_free(memory->owned_strings);
	free(memory);
}

static int make_source(struct rls_event_store *store, const struct rls_string_pool *strings,
		       struct memory_source **out)
{
	int error = rls_event_store_sort(store, strings);
	struct memory_source *memory = error ? NULL : calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->source.next = next_event;
	memory->source.share = share_given;
	memory->source.free = free_source;
	memory->source.strings = strings;
	memory->store = store;
	*out = memory;
	return 0;
}

int rls_memory_source_new(const struct rls_event *events, size_t count,
			  const struct rls_string_pool *strings, struct rls_event_source **out)
{
	struct rls_event_store *store = rls_event_store_new();
	struct memory_source *memory;
	int error = store ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < count; i++)
		error = rls_event_store_add(store, &events[i]);
	if (!error)
		error = make_source(store, strings, &memory);
	if (error) {
		rls_event_store_free(store);
		return error;
	}
	*out = &memory->source;
	return 0;
}

int rls_memory_source_take(struct rls_event_store *store, struct rls_string_pool *strings,
			   bool damaged, struct rls_event_source **out)
{
	struct memory_source *memory;
	int error = make_source(store, strings, &memory);

	if (error)
		return error;
	memory->owned_strings = strings;
	memory->source.damaged = damaged;
	*out = &memory->source;
	return 0;
}
