#include "userspace/python/text_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

/* The heads of str objects, the same in 3.8 to 3.14: offsets behind PyObject, which ends in its type. */
enum {
	TEXT_LENGTH = 0,
	TEXT_STATE = 16,
	/* A str that is not ASCII has more fields ahead of its characters. */
	WIDE_TEXT_FIELDS_OLD = 24, /* utf8_length, utf8, wstr_length: before 3.12 */
	WIDE_TEXT_FIELDS = 16, /* utf8_length, utf8 */
};
#define REPLACEMENT 0xfffd
#define TEXT_LENGTH_MAX (1U << 24) /* what is longer is no name */

/* The bits of a str's state: interned 2, kind 3, compact 1, ascii 1. The first 3.14s gave
 * `interned` 16 bits. */
#define INTERNED_BITS 2
#define INTERNED_BITS_WIDE 16

struct text_state {
	unsigned int kind;
	bool compact, ascii;
};

static bool state_from(uint32_t bits, unsigned int interned_bits, struct text_state *out)
{
	bits >>= interned_bits;
	*out = (struct text_state){
		.kind = bits & 7, .compact = bits >> 3 & 1, .ascii = bits >> 4 & 1};
	return out->compact && (out->kind == 1 || out->kind == 2 || out->kind == 4);
}

/* Of objects in free-threaded builds: whose it is, locks and bits, how often its own thread and
 * how often others refer to it (in 64 bits, the lowest two of them flags). */
enum {
	LOCAL_REFERENCES = 12,
	SHARED_REFERENCES = 16,
};

static bool is_alive_unlocked(const struct rls_space *space, uint64_t object)
{
	uint32_t local;
	int64_t shared;

	return rls_space_read(space, object + LOCAL_REFERENCES, &local, sizeof(local)) &&
	       rls_space_read(space, object + SHARED_REFERENCES, &shared, sizeof(shared)) &&
	       (local || shared >> 2);
}

/* The first word of one is how often it is referred to, in 32 bits, with flags above 48 in 3.14; allocators
 * keep a pointer, or 0, where one was freed. */
bool rls_object_is_alive(const struct rls_space *space, const struct rls_frame_layout *layout,
			 uint64_t object)
{
	uint64_t references;

	if (layout->free_threaded)
		return is_alive_unlocked(space, object);
	return rls_space_read(space, object, &references, sizeof(references)) &&
	       (uint32_t)references && !(references >> 32 & 0xffff);
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || c < ' ' || (c >= 0x7f && c < 0xa0))
		c = REPLACEMENT;
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t character_at(const uint8_t *characters, size_t i, unsigned int kind)
{
	uint32_t c = 0;

	memcpy(&c, characters + i * kind, kind); /* little-endian */
	return c;
}

static char *to_utf8(const uint8_t *characters, size_t count, unsigned int kind, size_t limit_bytes)
{
	char *text = malloc(count * 4 + 1);
	size_t bytes = 0;

	for (size_t i = 0; text && i < count && bytes + 4 < limit_bytes; i++)
		bytes += put_utf8(text + bytes, character_at(characters, i, kind));
	if (text)
		text[bytes] = '\0';
	return text;
}

int rls_text_object_read(const struct rls_space *space, const struct rls_frame_layout *layout,
			 uint64_t object, size_t limit_bytes, char **out)
{
	_cleanup_free_ uint8_t *characters = NULL;
	uint64_t length, data;
	struct text_state state;
	uint32_t bits;

	if (!rls_space_read(space, object + layout->object_bytes + TEXT_LENGTH, &length,
			    sizeof(length)) ||
	    !rls_space_read(space, object + layout->object_bytes + TEXT_STATE, &bits, sizeof(bits)))
		return -EFAULT;
	if (!state_from(bits, INTERNED_BITS, &state) &&
	    !(layout->minor >= 14 && state_from(bits, INTERNED_BITS_WIDE, &state)))
		return -EINVAL;
	data = object + layout->ascii_text;
	if (!state.ascii)
		data += layout->minor < 12 ? WIDE_TEXT_FIELDS_OLD : WIDE_TEXT_FIELDS;
	if (length > TEXT_LENGTH_MAX)
		return -EINVAL;
	if (length > limit_bytes)
		length = limit_bytes;
	characters = malloc(length * state.kind + 1);
	if (!characters)
		return -ENOMEM;
	if (!rls_space_read(space, data, characters, length * state.kind) ||
	    !rls_object_is_alive(space, layout, object))
		return -EFAULT;
	*out = to_utf8(characters, length, state.kind, limit_bytes);
	return *out ? 0 : -ENOMEM;
}
