/* Growing arrays: room for one more element, doubling. RLS_LIST is such an array with its own
 * count, typed by its items: zeroed is empty, and the holder frees items. */
#ifndef RLS_GROW_H
#define RLS_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RLS_GROW_MIN 8

/* Makes *items, of *capacity elements, hold more than count. 0, or -ENOMEM. */
static inline int rls_grow_bytes(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
	size_t wanted = *capacity ? 2 * *capacity : RLS_GROW_MIN;
	void *grown;

	if (count < *capacity)
		return 0;
	grown = reallocarray(*items, wanted, item_bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*capacity = wanted;
	return 0;
}

/* Makes them have an element of this number; what is new is zeroed. */
static inline int rls_grow_to_bytes(void **items, size_t *capacity, size_t number,
				    size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity : RLS_GROW_MIN;
	char *grown;

	if (number < *capacity)
		return 0;
	if (number > SIZE_MAX / 4)
		return -ENOMEM;
	while (wanted <= number)
		wanted *= 2;
	grown = reallocarray(*items, wanted, item_bytes);
	if (!grown)
		return -ENOMEM;
	memset(grown + *capacity * item_bytes, 0, (wanted - *capacity) * item_bytes);
	*items = grown;
	*capacity = wanted;
	return 0;
}

/* rls_grow(&list->items, &list->capacity, list->count) */
#define rls_grow(items, capacity, count)                                                           \
	({                                                                                         \
		void *grown_ = *(items);                                                           \
		int grow_err_ = rls_grow_bytes(&grown_, capacity, count, sizeof(**(items)));       \
		*(items) = grown_;                                                                 \
		grow_err_;                                                                         \
	})

/* rls_grow_to(&table->items, &table->capacity, number) */
#define rls_grow_to(items, capacity, number)                                                       \
	({                                                                                         \
		void *grown_ = *(items);                                                           \
		int grow_err_ = rls_grow_to_bytes(&grown_, capacity, number, sizeof(**(items)));   \
		*(items) = grown_;                                                                 \
		grow_err_;                                                                         \
	})

#define RLS_LIST(type)                                                                             \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}

/* 0 or -ENOMEM; the item is evaluated after the growth. */
#define rls_list_push(list, ...)                                                                   \
	({                                                                                         \
		int push_err_ = rls_grow(&(list)->items, &(list)->capacity, (list)->count);        \
		if (!push_err_)                                                                    \
			(list)->items[(list)->count++] = (__VA_ARGS__);                            \
		push_err_;                                                                         \
	})

#endif
