#include "counted_memory.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_reallocarray(void *block, size_t count, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_reallocarray(void *block, size_t count, size_t bytes);
void __wrap_free(void *block);

static long blocks;

long counted_memory_blocks(void)
{
	return blocks;
}

static void *took(void *block)
{
	blocks += block != NULL;
	return block;
}

void *__wrap_malloc(size_t bytes)
{
	return took(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return took(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *block, size_t bytes)
{
	void *grown = __real_realloc(block, bytes);

	return block ? grown : took(grown);
}

void *__wrap_reallocarray(void *block, size_t count, size_t bytes)
{
	void *grown = __real_reallocarray(block, count, bytes);

	return block ? grown : took(grown);
}

void __wrap_free(void *block)
{
	blocks -= block != NULL;
	__real_free(block);
}
