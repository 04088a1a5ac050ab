#include "analysis/base/string_pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/text_hash.h"
#include "analysis/base/utf8.h"

#define BLOCK_BYTES (64 * 1024)
#define FIRST_SLOTS 64 /* a power of two */

/* Text lives in blocks that never move, so that rls_string_pool_get's pointers stay good. */
struct block {
	struct block *next;
	size_t used, bytes;
	char text[];
};

struct string {
	const char *text;
	uint32_t length;
	uint32_t hash;
};

struct rls_string_pool {
	struct block *blocks;
	struct string *strings; /* by id */
	uint32_t count, room;
	rls_string_id *slots; /* open addressing; 0 marks a free slot: "" is never looked up here */
	uint32_t slot_count;
	struct rls_text_seed seed;
};

struct rls_string_pool *rls_string_pool_new(void)
{
	struct rls_string_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->seed = rls_text_seed_draw(pool);
	pool->slots = calloc(FIRST_SLOTS, sizeof(*pool->slots));
	pool->strings = calloc(FIRST_SLOTS, sizeof(*pool->strings));
	if (!pool->slots || !pool->strings) {
		rls_string_pool_free(pool);
		return NULL;
	}
	pool->slot_count = pool->room = FIRST_SLOTS;
	pool->strings[0].text = "";
	pool->count = 1;
	return pool;
}

void rls_string_pool_free(struct rls_string_pool *pool)
{
	if (!pool)
		return;
	for (struct block *block = pool->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(pool->strings);
	free(pool->slots);
	free(pool);
}

/* Writes the valid, bounded form of text into clean; its length. */
static size_t sanitize(const char *text, size_t length, char clean[RLS_STRING_BYTES_MAX])
{
	size_t used = 0;

	for (size_t at = 0; at < length;) {
		struct rls_utf8_piece piece = rls_utf8_piece(text + at, length - at);

		if (used + piece.bytes > RLS_STRING_BYTES_MAX)
			break;
		memcpy(clean + used, piece.text, piece.bytes);
		used += piece.bytes;
		at += piece.taken;
	}
	return used;
}

/* The slot of the text, or the free one where it belongs. */
static uint32_t find_slot(const struct rls_string_pool *pool, const char *text, size_t length,
			  uint32_t hash)
{
	uint32_t mask = pool->slot_count - 1;

	for (uint32_t slot = hash & mask;; slot = (slot + 1) & mask) {
		const struct string *string = &pool->strings[pool->slots[slot]];

		if (!pool->slots[slot] || (string->hash == hash && string->length == length &&
					   !memcmp(string->text, text, length)))
			return slot;
	}
}

static int string_pool_grow(struct rls_string_pool *pool)
{
	if (pool->count == pool->room) {
		struct string *strings =
			reallocarray(pool->strings, (size_t)pool->room * 2, sizeof(*strings));
		if (!strings)
			return -ENOMEM;
		pool->strings = strings;
		pool->room *= 2;
	}
	if (pool->count < pool->slot_count / 2)
		return 0;

	uint32_t slot_count = pool->slot_count * 2, mask = slot_count - 1;
	rls_string_id *slots = slot_count ? calloc(slot_count, sizeof(*slots)) : NULL;

	if (!slots)
		return -ENOMEM;
	for (rls_string_id id = 1; id < pool->count; id++) {
		uint32_t slot = pool->strings[id].hash & mask;

		while (slots[slot])
			slot = (slot + 1) & mask;
		slots[slot] = id;
	}
	free(pool->slots);
	pool->slots = slots;
	pool->slot_count = slot_count;
	return 0;
}

static char *keep_text(struct rls_string_pool *pool, const char *text, size_t length)
{
	struct block *block = pool->blocks;

	if (!block || block->bytes - block->used < length + 1) {
		block = malloc(sizeof(*block) + BLOCK_BYTES);
		if (!block)
			return NULL;
		*block = (struct block){.next = pool->blocks, .bytes = BLOCK_BYTES};
		pool->blocks = block;
	}

	char *kept = block->text + block->used;

	memcpy(kept, text, length);
	kept[length] = '\0';
	block->used += length + 1;
	return kept;
}

int rls_string_pool_add(struct rls_string_pool *pool, const char *text, size_t length,
			rls_string_id *out)
{
	char clean[RLS_STRING_BYTES_MAX];
	size_t bytes = sanitize(text, length, clean);
	uint32_t hash = (uint32_t)rls_text_hash(pool->seed, clean, bytes);

	if (!bytes) {
		*out = 0;
		return 0;
	}

	uint32_t slot = find_slot(pool, clean, bytes, hash);

	if (!pool->slots[slot]) {
		if (string_pool_grow(pool))
			return -ENOMEM;

		char *kept = keep_text(pool, clean, bytes);

		if (!kept)
			return -ENOMEM;
		slot = find_slot(pool, clean, bytes, hash); /* growing moved it */
		pool->strings[pool->count] =
			(struct string){.text = kept, .length = bytes, .hash = hash};
		pool->slots[slot] = pool->count++;
	}
	*out = pool->slots[slot];
	return 0;
}

rls_string_id rls_string_pool_find(const struct rls_string_pool *pool, const char *text,
				   size_t length)
{
	uint32_t hash = (uint32_t)rls_text_hash(pool->seed, text, length);

	return pool->slots[find_slot(pool, text, length, hash)];
}

const char *rls_string_pool_get(const struct rls_string_pool *pool, rls_string_id id)
{
	return id < pool->count ? pool->strings[id].text : "";
}

uint32_t rls_string_pool_count(const struct rls_string_pool *pool)
{
	return pool->count;
}
