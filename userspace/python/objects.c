#include "userspace/python/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/python/cpython_layout.h"
#include "userspace/python/text_object.h"

#define ENTRIES_AT_ONCE 64

/* Bits of tp_flags. */
#define FLAG_INLINE_VALUES (1UL << 2) /* 3.13 and later */
#define FLAG_MANAGED_DICT (1UL << 4) /* 3.11 and later */
#define FLAG_TUPLE (1UL << 26)
#define FLAG_TEXT (1UL << 28)
#define FLAG_DICT (1UL << 29)
#define FLAG_TYPE (1UL << 31)

enum {
	DICT_KEYS = 32, /* PyDictObject */
	DICT_VALUES = 40,
	DICT_BYTES = 48,

	OLD_KEYS_SIZE = 8, /* PyDictKeysObject before 3.11 */
	OLD_KEYS_ENTRIES = 32,
	OLD_KEYS_INDICES = 40,
	KEYS_INDEX_BYTES = 9, /* since: a power of two */
	KEYS_KIND = 10,
	KEYS_ENTRIES = 24,
	KEYS_INDICES = 32,
	KEYS_HEAD_BYTES = 40,
	KEYS_GENERAL = 0, /* kinds */
	KEYS_KIND_MAX = 2,
	HASHED_ENTRY_BYTES = 24, /* hash, key, value */
	TEXT_ENTRY_BYTES = 16, /* key, value */

	/* Before an object: where its attributes are. */
	MANAGED_DICT = 24,
	MANAGED_VALUES = 32, /* 3.11 */
	VALUES_HEAD_BYTES = 8, /* of PyDictValues since 3.13: capacity, size, embedded, valid */
	VALUES_VALID = 3,

	TUPLE_COUNT = 16,
	TUPLE_ITEMS = 24,
	TUPLE_ITEMS_14 = 32,
	MODULE_DICT = 16, /* PyModuleObject.md_dict */
};

/* Offsets that differ from version to version. */
static const struct heap_type_layout {
	uint16_t minor;
	uint16_t name, cached_keys; /* PyHeapTypeObject */
} heap_types[] = {
	{8, 848, 872},  {9, 840, 864},  {10, 848, 872}, {11, 848, 872},
	{12, 856, 880}, {13, 856, 880}, {14, 856, 880},
};

static const struct heap_type_layout *heap_type_of(const struct rls_frame_layout *layout)
{
	for (size_t i = 0; i < sizeof(heap_types) / sizeof(heap_types[0]); i++)
		if (heap_types[i].minor == layout->minor && !layout->free_threaded)
			return &heap_types[i];
	return NULL;
}

bool rls_objects_known(const struct rls_frame_layout *layout)
{
	return layout && heap_type_of(layout);
}

static bool read_word(const struct rls_object_reader *reader, uint64_t address, uint64_t *out)
{
	return rls_space_read(reader->space, address, out, sizeof(*out));
}

/* Of an object. */
static bool read_type(const struct rls_object_reader *reader, uint64_t object, uint64_t *type,
		      uint64_t *flags)
{
	return object && read_word(reader, object + OBJECT_TYPE, type) && *type &&
	       read_word(reader, *type + TYPE_FLAGS, flags);
}

/* ---- dictionaries ---- */

static bool open_old_keys(const uint8_t *head, uint64_t keys, struct rls_dict *out)
{
	uint64_t size, count, index_bytes;

	memcpy(&size, head + OLD_KEYS_SIZE, sizeof(size));
	memcpy(&count, head + OLD_KEYS_ENTRIES, sizeof(count));
	if (!size || size > 2 * RLS_DICT_ENTRIES_MAX || count > size)
		return false;
	index_bytes = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
	*out = (struct rls_dict){
		.entries = keys + OLD_KEYS_INDICES + size * index_bytes,
		.count = (uint32_t)count,
		.entry_bytes = HASHED_ENTRY_BYTES,
		.key_at = 8,
		.value_at = 16,
	};
	return true;
}

static bool open_new_keys(const uint8_t *head, uint64_t keys, struct rls_dict *out)
{
	bool general = head[KEYS_KIND] == KEYS_GENERAL;
	uint64_t count;

	memcpy(&count, head + KEYS_ENTRIES, sizeof(count));
	if (head[KEYS_INDEX_BYTES] > 24 || head[KEYS_KIND] > KEYS_KIND_MAX)
		return false;
	*out = (struct rls_dict){
		.entries = keys + KEYS_INDICES + (1ULL << head[KEYS_INDEX_BYTES]),
		.count = (uint32_t)count,
		.entry_bytes = general ? HASHED_ENTRY_BYTES : TEXT_ENTRY_BYTES,
		.key_at = general ? 8 : 0,
		.value_at = general ? 16 : 8,
	};
	return count <= RLS_DICT_ENTRIES_MAX;
}

static bool open_keys(const struct rls_object_reader *reader, uint64_t keys, struct rls_dict *out)
{
	uint8_t head[KEYS_HEAD_BYTES];

	if (!keys || !rls_space_read(reader->space, keys, head, sizeof(head)))
		return false;
	return reader->layout->minor < 11 ? open_old_keys(head, keys, out)
					  : open_new_keys(head, keys, out);
}

static uint64_t values_of(const struct rls_object_reader *reader, uint64_t values)
{
	return reader->layout->minor >= 13 ? values + VALUES_HEAD_BYTES : values;
}

bool rls_dict_open(const struct rls_object_reader *reader, uint64_t object, struct rls_dict *out)
{
	uint64_t words[DICT_BYTES / sizeof(uint64_t)], type, flags;
	struct rls_dict dict;

	if (!read_type(reader, object, &type, &flags) || !(flags & FLAG_DICT) ||
	    !rls_space_read(reader->space, object, words, sizeof(words)) ||
	    !open_keys(reader, words[DICT_KEYS / 8], &dict))
		return false;
	if (words[DICT_VALUES / 8])
		dict.values = values_of(reader, words[DICT_VALUES / 8]);
	*out = dict;
	return true;
}

bool rls_dict_entry(const struct rls_object_reader *reader, const struct rls_dict *dict,
		    uint32_t at, uint64_t *key, uint64_t *value)
{
	uint64_t entry = dict->entries + (uint64_t)at * dict->entry_bytes;

	return at < dict->count && read_word(reader, entry + dict->key_at, key) && *key &&
	       read_word(reader, dict->values ? dict->values + 8ULL * at : entry + dict->value_at,
			 value) &&
	       *value;
}

/* Whether the key at an address is that name; most have another length. */
static bool is_named(const struct rls_object_reader *reader, uint64_t key, const char *name)
{
	size_t bytes = strlen(name);
	char text[RLS_OBJECT_NAME_BYTES];
	uint64_t type, flags, length;

	if (!read_word(reader, key + reader->layout->object_bytes, &length) || length != bytes ||
	    bytes >= sizeof(text))
		return false;
	if (!rls_space_read(reader->space, key + reader->layout->ascii_text, text, bytes) ||
	    memcmp(text, name, bytes) != 0)
		return false;
	return read_type(reader, key, &type, &flags) && flags & FLAG_TEXT;
}

static uint64_t word_in(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

uint64_t rls_dict_find(const struct rls_object_reader *reader, const struct rls_dict *dict,
		       const char *name)
{
	uint8_t bytes[ENTRIES_AT_ONCE * HASHED_ENTRY_BYTES];

	for (uint32_t first = 0; first < dict->count; first += ENTRIES_AT_ONCE) {
		uint32_t count = dict->count - first;
		uint64_t key, value;

		if (count > ENTRIES_AT_ONCE)
			count = ENTRIES_AT_ONCE;
		if (!rls_space_read(reader->space,
				    dict->entries + (uint64_t)first * dict->entry_bytes, bytes,
				    (size_t)count * dict->entry_bytes))
			return 0;
		for (uint32_t i = 0; i < count; i++) {
			key = word_in(bytes + (size_t)i * dict->entry_bytes + dict->key_at);
			if (key && is_named(reader, key, name))
				return rls_dict_entry(reader, dict, first + i, &key, &value) ? value
											     : 0;
		}
	}
	return 0;
}

/* ---- attributes ---- */

/* Values beside the keys that the type keeps for all. */
static bool open_values(const struct rls_object_reader *reader, uint64_t type, uint64_t values,
			struct rls_dict *out)
{
	const struct heap_type_layout *heap = heap_type_of(reader->layout);
	struct rls_dict dict;
	uint64_t keys;

	if (!heap || !read_word(reader, type + heap->cached_keys, &keys) ||
	    !open_keys(reader, keys, &dict))
		return false;
	dict.values = values;
	*out = dict;
	return true;
}

/* Since 3.13: behind the object, as long as they are valid. */
static bool open_inline(const struct rls_object_reader *reader, uint64_t object, uint64_t type,
			struct rls_dict *out)
{
	uint8_t head[VALUES_HEAD_BYTES];
	uint64_t bytes;

	return read_word(reader, type + TYPE_BASIC_SIZE, &bytes) && bytes < 4096 &&
	       rls_space_read(reader->space, object + bytes, head, sizeof(head)) &&
	       head[VALUES_VALID] &&
	       open_values(reader, type, object + bytes + VALUES_HEAD_BYTES, out);
}

static bool open_managed(const struct rls_object_reader *reader, uint64_t object, uint64_t type,
			 uint64_t flags, struct rls_dict *out)
{
	unsigned int minor = reader->layout->minor;
	uint64_t values = 0, dict;

	if (minor == 11 && (!read_word(reader, object - MANAGED_VALUES, &values) || values))
		return values && open_values(reader, type, values, out);
	if (!read_word(reader, object - MANAGED_DICT, &dict))
		return false;
	if (minor == 12 && dict & 1)
		return open_values(reader, type, dict + 1, out);
	if (dict)
		return rls_dict_open(reader, dict, out);
	return minor >= 13 && flags & FLAG_INLINE_VALUES && open_inline(reader, object, type, out);
}

bool rls_object_attributes(const struct rls_object_reader *reader, uint64_t object,
			   struct rls_dict *out)
{
	uint64_t type, flags, offset, dict;

	if (!read_type(reader, object, &type, &flags) || !(flags & TYPE_FLAG_HEAP))
		return false;
	if (reader->layout->minor >= 11 && flags & FLAG_MANAGED_DICT)
		return open_managed(reader, object, type, flags, out);
	return read_word(reader, type + TYPE_DICT_OFFSET, &offset) && offset && offset < 4096 &&
	       read_word(reader, object + offset, &dict) && rls_dict_open(reader, dict, out);
}

/* ---- classes ---- */

/* Its own type is `type` or another class of classes. */
static bool is_heap_class(const struct rls_object_reader *reader, uint64_t type, uint64_t flags)
{
	uint64_t meta, meta_flags;

	return flags & TYPE_FLAG_HEAP && read_type(reader, type, &meta, &meta_flags) &&
	       meta_flags & FLAG_TYPE;
}

uint64_t rls_object_class(const struct rls_object_reader *reader, uint64_t object)
{
	uint64_t type, flags;

	return read_type(reader, object, &type, &flags) && is_heap_class(reader, type, flags) ? type
											      : 0;
}

int rls_class_name(const struct rls_object_reader *reader, uint64_t type, char **out)
{
	const struct heap_type_layout *heap = heap_type_of(reader->layout);
	uint64_t name, text_type, flags;

	if (!heap || !read_word(reader, type + heap->name, &name) ||
	    !read_type(reader, name, &text_type, &flags))
		return -EFAULT;
	if (!(flags & FLAG_TEXT))
		return -EINVAL;
	return rls_text_object_read(reader->space, reader->layout, name, RLS_OBJECT_NAME_BYTES,
				    out);
}

uint32_t rls_tuple_items_bytes(const struct rls_frame_layout *layout)
{
	return layout->minor >= 14 ? TUPLE_ITEMS_14 : TUPLE_ITEMS;
}

bool rls_class_has_base(const struct rls_object_reader *reader, uint64_t type, const char *name)
{
	uint64_t bases[RLS_BASES_MAX], mro, mro_type, flags, count;
	uint64_t items = rls_tuple_items_bytes(reader->layout);

	if (!read_word(reader, type + TYPE_MRO, &mro) ||
	    !read_type(reader, mro, &mro_type, &flags) || !(flags & FLAG_TUPLE) ||
	    !read_word(reader, mro + TUPLE_COUNT, &count))
		return false;
	if (count > RLS_BASES_MAX)
		count = RLS_BASES_MAX;
	if (!rls_space_read(reader->space, mro + items, bases, count * sizeof(bases[0])))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		char text[RLS_OBJECT_NAME_BYTES];
		uint64_t base_name;

		if (read_word(reader, bases[i] + TYPE_NAME, &base_name) &&
		    rls_space_read_name(reader->space, base_name, text, sizeof(text)) &&
		    !strcmp(text, name))
			return true;
	}
	return false;
}

uint64_t rls_class_call(const struct rls_object_reader *reader, uint64_t type)
{
	uint64_t call;

	return read_word(reader, type + TYPE_CALL, &call) ? call : 0;
}

/* ---- modules ---- */

bool rls_module_open(const struct rls_object_reader *reader, uint64_t runtime, const char *name,
		     struct rls_dict *out)
{
	const struct rls_frame_layout *layout = reader->layout;
	uint64_t interpreter, modules, module, dict;
	struct rls_dict all;

	if (!read_word(reader, runtime + layout->runtime_interpreters, &interpreter) ||
	    !interpreter ||
	    !read_word(reader, interpreter + layout->interpreter_modules, &modules) ||
	    !rls_dict_open(reader, modules, &all))
		return false;
	module = rls_dict_find(reader, &all, name);
	return module && read_word(reader, module + MODULE_DICT, &dict) &&
	       rls_dict_open(reader, dict, out);
}
