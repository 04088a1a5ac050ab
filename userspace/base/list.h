/* A growing array, typed by its items. Zeroed is empty; the holder frees items. */
#ifndef RLS_LIST_H
#define RLS_LIST_H

#include <errno.h>
#include <stdlib.h>

#define RLS_LIST(type)                  \
	struct {                        \
		type *items;            \
		size_t count, capacity; \
	}

static inline int rls_list_grow(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
	size_t larger = *capacity ? *capacity * 2 : 16;
	void *moved;

	if (count < *capacity)
		return 0;
	moved = reallocarray(*items, larger, item_bytes);
	if (!moved)
		return -ENOMEM;
	*items = moved;
	*capacity = larger;
	return 0;
}

/* 0 or -ENOMEM; the item is evaluated after the growth. */
#define rls_list_push(list, ...)                                                                 \
	({                                                                                       \
		int error_ = rls_list_grow((void **)&(list)->items, &(list)->capacity,           \
					   (list)->count, sizeof(*(list)->items));               \
		if (!error_)                                                                     \
			(list)->items[(list)->count++] = (__VA_ARGS__);                          \
		error_;                                                                          \
	})

#endif
