#include "userspace/discover/scan.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/base/search.h"
#include "userspace/python/cpython_layout.h"

/* One function pointer may be in a hundred thousand objects; a few of them say enough. */
#define CALLABLES_PER_FUNCTION 16
#define CALLABLES_AT_FIRST 16384
/* Forty times what PyTorch has; a target with more of anything is hostile or broken. */
#define MAX_FOUND (1UL << 20)

#define MAX_BASIC_SIZE (1UL << 20)
#define MAX_ITEM_SIZE (1UL << 16)
#define TYPE_FLAGS_STATE (TYPE_FLAG_READY | TYPE_FLAG_READYING)

struct block {
	uint64_t address;
	const uint8_t *bytes;
	size_t length;
};

static uint64_t scan_load(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

void rls_scan_init(struct rls_scan *scan, const struct rls_scan_target *targets,
		   size_t target_count)
{
	*scan = (struct rls_scan){
		.targets = targets,
		.target_count = target_count,
		.callable_limit = CALLABLES_AT_FIRST,
	};
	for (size_t i = 0; i < target_count; i++) {
		uint64_t first = targets[i].begin >> RLS_SCAN_GRANULE_SHIFT;
		uint64_t last = (targets[i].end - 1) >> RLS_SCAN_GRANULE_SHIFT;

		for (uint64_t granule = first;
		     granule <= last && granule - first < RLS_SCAN_GRANULES; granule++)
			scan->near_targets[granule % RLS_SCAN_GRANULES / 64] |= 1ULL
										<< granule % 64;
	}
}

/* Most pointers in the span of all targets are to something between them. */
static bool is_near_target(const struct rls_scan *scan, uint64_t address)
{
	uint64_t granule = address >> RLS_SCAN_GRANULE_SHIFT;

	return scan->near_targets[granule % RLS_SCAN_GRANULES / 64] >> granule % 64 & 1;
}

void rls_scan_release(struct rls_scan *scan)
{
	free(scan->methods.items);
	free(scan->types.items);
	free(scan->callables.items);
	free(scan->module_defs.items);
	*scan = (struct rls_scan){0};
}

static const struct rls_scan_target *target_of(const struct rls_scan *scan, uint64_t address)
{
	size_t low = rls_first_not(scan->target_count, i, scan->targets[i].end <= address);

	if (low == scan->target_count || scan->targets[low].begin > address)
		return NULL;
	return &scan->targets[low];
}

const struct rls_scan_target *rls_scan_target_of_code(const struct rls_scan *scan, uint64_t address)
{
	const struct rls_scan_target *target = target_of(scan, address);

	if (!target || address < target->code_begin || address >= target->code_end)
		return NULL;
	return target;
}

static bool is_mapped(const struct rls_scan *scan, uint64_t address)
{
	return scan->mappings ? rls_mappings_at(scan->mappings, address) != NULL
			      : target_of(scan, address) != NULL;
}

static bool is_code(const struct rls_scan *scan, uint64_t address)
{
	const struct rls_mapping *mapping;

	if (!scan->mappings)
		return rls_scan_target_of_code(scan, address) != NULL;
	mapping = rls_mappings_at(scan->mappings, address);
	return mapping && mapping->executable;
}

bool rls_scan_method_flags_valid(uint32_t flags)
{
	uint32_t binding = flags & (METHOD_CLASS | METHOD_STATIC);

	if (binding == (METHOD_CLASS | METHOD_STATIC))
		return false;
	switch (flags & ~(uint32_t)(METHOD_CLASS | METHOD_STATIC | METHOD_COEXIST)) {
	case METHOD_VARARGS:
	case METHOD_VARARGS | METHOD_KEYWORDS:
	case METHOD_FASTCALL:
	case METHOD_FASTCALL | METHOD_KEYWORDS:
	case METHOD_FASTCALL | METHOD_KEYWORDS | METHOD_DEFINING_CLASS:
	case METHOD_NOARGS:
	case METHOD_O:
		return true;
	default:
		return false;
	}
}

#define NOTE(list, ...)                                                                            \
	({                                                                                         \
		if ((list)->count < MAX_FOUND && rls_list_push(list, __VA_ARGS__))                 \
			scan->error = -ENOMEM;                                                     \
	})

/* The word at `at` points to a target's code: is it the function of a PyMethodDef? */
static bool note_method(struct rls_scan *scan, const struct block *block, size_t at)
{
	const size_t start = at - METHOD_FUNCTION;
	uint64_t name, doc;
	uint32_t flags;

	if (at < METHOD_FUNCTION || start + METHOD_BYTES > block->length)
		return false;
	memcpy(&flags, block->bytes + start + METHOD_FLAGS, sizeof(flags));
	if (!rls_scan_method_flags_valid(flags))
		return false;
	name = scan_load(block->bytes + start + METHOD_NAME);
	doc = scan_load(block->bytes + start + METHOD_DOC);
	if (!is_mapped(scan, name) || is_code(scan, name) || (doc && !is_mapped(scan, doc)))
		return false;
	NOTE(&scan->methods, (struct rls_scan_method){.address = block->address + start,
						      .function = scan_load(block->bytes + at),
						      .name = name});
	return true;
}

static int by_function(const void *a, const void *b)
{
	const struct rls_scan_callable *left = a, *right = b;

	if (left->function != right->function)
		return left->function < right->function ? -1 : 1;
	return (left->address > right->address) - (left->address < right->address);
}

static void thin_callables(struct rls_scan *scan)
{
	struct rls_scan_callable *items = scan->callables.items;
	size_t kept = 0, run = 0;

	qsort(items, scan->callables.count, sizeof(*items), by_function);
	for (size_t i = 0; i < scan->callables.count; i++) {
		if (kept && items[i].function == items[kept - 1].function) {
			if (items[i].address == items[kept - 1].address ||
			    ++run >= CALLABLES_PER_FUNCTION)
				continue;
		} else {
			run = 0;
		}
		items[kept++] = items[i];
	}
	scan->callables.count = kept;
	scan->callable_limit = kept * 2 > CALLABLES_AT_FIRST ? kept * 2 : CALLABLES_AT_FIRST;
}

static void note_callable(struct rls_scan *scan, const struct block *block, size_t at)
{
	struct rls_scan_callable callable = {.address = block->address + at,
					     .function = scan_load(block->bytes + at)};

	if (!scan->mappings || at < sizeof(callable.before) || target_of(scan, callable.address))
		return;
	memcpy(callable.before, block->bytes + at - sizeof(callable.before),
	       sizeof(callable.before));
	if (scan->callables.count >= scan->callable_limit)
		thin_callables(scan);
	NOTE(&scan->callables, callable);
}

/* Fields of a PyTypeObject that hold a function, and those that hold a pointer to data. */
static const uint16_t function_fields[] = {
	TYPE_DEALLOC,   TYPE_REPR,      TYPE_HASH,     TYPE_CALL,        TYPE_STR,  TYPE_GETATTRO,
	TYPE_SETATTRO,  TYPE_TRAVERSE,  TYPE_CLEAR,    TYPE_RICHCOMPARE, TYPE_ITER, TYPE_ITERNEXT,
	TYPE_DESCR_GET, TYPE_DESCR_SET, TYPE_INIT,     TYPE_ALLOC,       TYPE_NEW,  TYPE_FREE,
	TYPE_IS_GC,     TYPE_DEL,       TYPE_FINALIZE, TYPE_VECTORCALL,
};
static const uint16_t data_fields[] = {
	TYPE_NAME,      TYPE_AS_ASYNC, TYPE_AS_NUMBER, TYPE_AS_SEQUENCE, TYPE_AS_MAPPING,
	TYPE_AS_BUFFER, TYPE_DOC,      TYPE_METHODS,   TYPE_MEMBERS,     TYPE_GETSET,
};
/* Set by PyType_Ready, so null in a file and not null in a readied type. */
static const uint16_t ready_fields[] = {TYPE_BASES, TYPE_MRO};

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static bool fields_are_null_or(const struct rls_scan *scan, const uint8_t *type,
			       const uint16_t *fields, size_t count,
			       bool (*test)(const struct rls_scan *, uint64_t))
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word = scan_load(type + fields[i]);

		if (word && !test(scan, word))
			return false;
	}
	return true;
}

static bool sizes_are_plausible(const uint8_t *type)
{
	uint64_t basic_size = scan_load(type + TYPE_BASIC_SIZE);

	return basic_size >= 16 && basic_size <= MAX_BASIC_SIZE &&
	       scan_load(type + TYPE_ITEM_SIZE) <= MAX_ITEM_SIZE &&
	       scan_load(type + TYPE_VECTORCALL_OFFSET) < basic_size;
}

static bool is_ready_type(const struct rls_scan *scan, const uint8_t *type)
{
	if (!sizes_are_plausible(type) || !is_mapped(scan, scan_load(type + OBJECT_TYPE)) ||
	    !is_mapped(scan, scan_load(type + TYPE_NAME)))
		return false;
	for (size_t i = 0; i < COUNT_OF(ready_fields); i++)
		if (!is_mapped(scan, scan_load(type + ready_fields[i])))
			return false;
	/* Inherited from object when the type has none of its own. */
	if (!scan_load(type + TYPE_DEALLOC) || !scan_load(type + TYPE_GETATTRO) ||
	    !scan_load(type + TYPE_FREE))
		return false;
	return fields_are_null_or(scan, type, function_fields, COUNT_OF(function_fields),
				  is_code) &&
	       fields_are_null_or(scan, type, data_fields, COUNT_OF(data_fields), is_mapped);
}

/* A static type as the compiler wrote it: nothing that PyType_Ready fills in. */
static bool is_static_type(const struct rls_scan *scan, const uint8_t *type)
{
	static const uint16_t null_fields[] = {TYPE_DICT,       TYPE_BASES,    TYPE_MRO, TYPE_CACHE,
					       TYPE_SUBCLASSES, TYPE_WEAKLIST, TYPE_DEL};

	if (!sizes_are_plausible(type) || !is_mapped(scan, scan_load(type + TYPE_NAME)) ||
	    scan_load(type + TYPE_FLAGS) >> 32 || scan_load(type + TYPE_FLAGS) & TYPE_FLAG_HEAP)
		return false;
	for (size_t i = 0; i < COUNT_OF(null_fields); i++)
		if (scan_load(type + null_fields[i]))
			return false;
	return fields_are_null_or(scan, type, function_fields, COUNT_OF(function_fields),
				  is_code) &&
	       fields_are_null_or(scan, type, data_fields, COUNT_OF(data_fields), is_mapped);
}

/* Whether anything in the type, or in the tables behind a heap type, is a target's; the name
 * counts: a type may have nothing else of its library's but methods in a heap table. */
static bool is_related(const struct rls_scan *scan, const uint8_t *type, size_t length)
{
	size_t end = scan_load(type + TYPE_FLAGS) & TYPE_FLAG_HEAP ? HEAP_TYPE_BYTES : TYPE_BYTES;

	if (end > length)
		end = length & ~(size_t)7;
	for (size_t at = TYPE_NAME; at < end; at += 8) {
		uint64_t word = scan_load(type + at);

		if (word && target_of(scan, word))
			return true;
	}
	return false;
}

static void note_type(struct rls_scan *scan, const struct block *block, size_t start)
{
	const uint8_t *bytes = block->bytes + start;
	struct rls_scan_type type = {.address = block->address + start};

	if (scan_load(bytes + TYPE_FLAGS) & TYPE_FLAG_VECTORCALL)
		type.vectorcall_offset = scan_load(bytes + TYPE_VECTORCALL_OFFSET);
	type.related = is_related(scan, bytes, block->length - start);
	if (!type.related && !type.vectorcall_offset)
		return;
	NOTE(&scan->types, type);
}

/* The word at `at` could be the tp_flags of a readied type. */
static void consider_flags(struct rls_scan *scan, const struct block *block, size_t at)
{
	if (at < TYPE_FLAGS || at - TYPE_FLAGS + TYPE_BYTES > block->length)
		return;
	if (is_ready_type(scan, block->bytes + at - TYPE_FLAGS))
		note_type(scan, block, at - TYPE_FLAGS);
}

/* The word at `at` could be the tp_basicsize of a type in a file. */
static void consider_basic_size(struct rls_scan *scan, const struct block *block, size_t at)
{
	if (at < TYPE_BASIC_SIZE || at - TYPE_BASIC_SIZE + TYPE_BYTES > block->length)
		return;
	if (is_static_type(scan, block->bytes + at - TYPE_BASIC_SIZE))
		note_type(scan, block, at - TYPE_BASIC_SIZE);
}

/* Words that are not pointers: flags in memory, sizes in a file. */
static void consider_small_word(struct rls_scan *scan, const struct block *block, size_t at,
				uint64_t word)
{
	if (!scan->objects)
		return;
	if (scan->mappings && (word & TYPE_FLAGS_STATE) == TYPE_FLAG_READY)
		consider_flags(scan, block, at);
	else if (!scan->mappings && word >= 16 && word <= MAX_BASIC_SIZE)
		consider_basic_size(scan, block, at);
}

static void consider(struct rls_scan *scan, const struct block *block, size_t at, uint64_t word)
{
	if (word == scan->module_def_type) {
		if (at >= OBJECT_TYPE)
			NOTE(&scan->module_defs, block->address + at - OBJECT_TYPE);
	} else if (is_near_target(scan, word) && rls_scan_target_of_code(scan, word)) {
		if (!note_method(scan, block, at))
			note_callable(scan, block, at);
	} else if (word >> 32 == 0) {
		consider_small_word(scan, block, at, word);
	}
}

void rls_scan_block(struct rls_scan *scan, uint64_t address, const uint8_t *bytes, size_t length)
{
	const struct block block = {.address = address, .bytes = bytes, .length = length};
	const uint64_t module_def_type = scan->module_def_type;
	/* In a file any small word may be a size. */
	const uint64_t mask = scan->mappings ? TYPE_FLAGS_STATE : 0;
	const uint64_t flags = mask & TYPE_FLAG_READY;
	uint64_t lowest, span;

	if (!scan->target_count)
		return;
	lowest = scan->targets[0].begin;
	span = scan->targets[scan->target_count - 1].end - lowest;
	scan->scanned_bytes += length;
	/* Hundreds of megabytes go through here, nearly all of no interest. */
	for (size_t at = -address & 7; at + 8 <= length; at += 8) {
		uint64_t word = scan_load(bytes + at);
		if (word - lowest >= span && (word >> 32 || !word || (word & mask) != flags) &&
		    word != module_def_type)
			continue;
		consider(scan, &block, at, word);
	}
}

static int method_by_address(const void *a, const void *b)
{
	const struct rls_scan_method *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static int type_by_address(const void *a, const void *b)
{
	const struct rls_scan_type *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static int word_by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static size_t make_unique(void *items, size_t count, size_t item_bytes,
			  int (*compare)(const void *, const void *))
{
	char *bytes = items;
	size_t kept = 0;

	if (!count)
		return 0;
	qsort(items, count, item_bytes, compare);
	for (size_t i = 1; i < count; i++)
		if (compare(bytes + i * item_bytes, bytes + kept * item_bytes) && ++kept != i)
			memcpy(bytes + kept * item_bytes, bytes + i * item_bytes, item_bytes);
	return kept + 1;
}

int rls_scan_finish(struct rls_scan *scan)
{
	scan->methods.count = make_unique(scan->methods.items, scan->methods.count,
					  sizeof(*scan->methods.items), method_by_address);
	scan->types.count = make_unique(scan->types.items, scan->types.count,
					sizeof(*scan->types.items), type_by_address);
	scan->module_defs.count = make_unique(scan->module_defs.items, scan->module_defs.count,
					      sizeof(*scan->module_defs.items), word_by_value);
	if (scan->callables.count)
		thin_callables(scan);
	return scan->error;
}
