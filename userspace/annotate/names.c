#include "userspace/annotate/names.h"

#include <stdatomic.h>
#include <string.h>

#define SLOTS (2 * RLS_NAMES_MAX) /* a power of two, at most half full: short probes */

/* 9 MB of zero pages; what is never used is never touched. */
static struct rls_name names[RLS_NAMES_MAX];
static _Atomic(uint32_t) names_taken;
static _Atomic(const struct rls_name *) slots[SLOTS];

static const struct rls_name other = {
	.length = 7, .flags = RLS_NAME_STANDS_FOR_OTHERS, .text = "(other)"};

/* FNV-1a: names are short, and a target that makes them collide slows itself alone. */
static uint32_t hash(const char *text, size_t length)
{
	uint32_t value = 2166136261u;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (unsigned char)text[i]) * 16777619u;
	return value ^ value >> 15;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Length to keep: never half a character, unless the text is not UTF-8 anyway. */
static size_t cut(const char *text, size_t length)
{
	const char *end = memchr(text, '\0', length < RLS_NAME_BYTES ? length : RLS_NAME_BYTES);
	size_t kept;

	if (end)
		return end - text;
	if (length < RLS_NAME_BYTES)
		return length;
	kept = RLS_NAME_BYTES - 1;
	while (kept > RLS_NAME_BYTES - 5 && is_continuation(text[kept]))
		kept--;
	return kept;
}

static const struct rls_name *names_accept(const char *text, size_t length)
{
	uint32_t index = atomic_load_explicit(&names_taken, memory_order_relaxed);

	do {
		if (index >= RLS_NAMES_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&names_taken, &index, index + 1, memory_order_relaxed, memory_order_relaxed));
	memcpy(names[index].text, text, length);
	/* Most are shorter than their room, which may reach into a page that was never touched: BPF could
	 * not read it. */
	*(volatile char *)&names[index].text[RLS_NAME_BYTES - 1] = '\0';
	names[index].length = length;
	return &names[index];
}

static bool equals(const struct rls_name *name, const char *text, size_t length)
{
	return name->length == length && !memcmp(name->text, text, length);
}

const struct rls_name *rls_name_intern(const char *text, size_t length)
{
	const struct rls_name *mine = NULL;
	uint32_t slot;

	length = cut(text, length);
	slot = hash(text, length) & (SLOTS - 1);
	for (;; slot = (slot + 1) & (SLOTS - 1)) {
		const struct rls_name *found =
			atomic_load_explicit(&slots[slot], memory_order_acquire);

		if (!found) {
			if (!mine)
				mine = names_accept(text, length);
			if (!mine)
				return &other;
			if (atomic_compare_exchange_strong_explicit(&slots[slot], &found, mine,
								    memory_order_acq_rel,
								    memory_order_acquire))
				return mine;
		}
		/* Losing the slot to the same name wastes one entry, once per race. */
		if (equals(found, text, length))
			return found;
	}
}

bool rls_name_is_ours(const void *pointer)
{
	uintptr_t address = (uintptr_t)pointer;

	if (pointer == &other)
		return true;
	return address >= (uintptr_t)names && address < (uintptr_t)(names + RLS_NAMES_MAX) &&
	       (address - (uintptr_t)names) % sizeof(names[0]) == 0;
}
