#include "userspace/python/code_object.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "bpf/wire/stack.h"

/* PyBytesObject and the heads of str objects, the same in 3.8 to 3.14: offsets behind PyObject,
 * which ends in its type. */
enum {
	BYTES_SIZE = 0,
	BYTES_DATA = 16,
	TEXT_LENGTH = 0,
	TEXT_STATE = 16,
	CODE_BYTECODE = 32, /* PyCodeObject.co_code before 3.11 */
	/* A str that is not ASCII has more fields ahead of its characters. */
	WIDE_TEXT_FIELDS_OLD = 24, /* utf8_length, utf8, wstr_length: before 3.12 */
	WIDE_TEXT_FIELDS = 16, /* utf8_length, utf8 */
};
#define REPLACEMENT 0xfffd
#define UNLINED_CODE_BYTES_MAX (1U << 16)
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

/* Whether an object still exists. The first word of one is how often it is referred to, in 32
 * bits, with flags above 48 in 3.14; allocators keep a pointer, or 0, where one was freed. Asked
 * after the object was read, so that what was read was its own. */
static bool is_alive(const struct rls_space *space, const struct rls_frame_layout *layout,
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

/* The str object that the pointer at `where` refers to, cut where it gets too long. */
static int read_text(const struct rls_space *space, const struct rls_frame_layout *layout,
		     uint64_t where, size_t limit_bytes, char **out)
{
	_cleanup_free_ uint8_t *characters = NULL;
	uint64_t object, length, data;
	struct text_state state;
	uint32_t bits;

	if (!rls_space_read(space, where, &object, sizeof(object)) ||
	    !rls_space_read(space, object + layout->object_bytes + TEXT_LENGTH, &length,
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
	    !is_alive(space, layout, object))
		return -EFAULT;
	*out = to_utf8(characters, length, state.kind, limit_bytes);
	return *out ? 0 : -ENOMEM;
}

static int read_lines(const struct rls_space *space, const struct rls_frame_layout *layout,
		      uint64_t where, struct rls_code_object *code)
{
	uint64_t object, size;

	if (!rls_space_read(space, where, &object, sizeof(object)) ||
	    !rls_space_read(space, object + layout->object_bytes + BYTES_SIZE, &size, sizeof(size)))
		return -EFAULT;
	if (size > RLS_CODE_LINES_BYTES_MAX)
		return -EINVAL;
	code->lines = malloc(size + 1);
	if (!code->lines)
		return -ENOMEM;
	code->lines_bytes = size;
	if (size &&
	    !rls_space_read(space, object + layout->object_bytes + BYTES_DATA, code->lines, size))
		return -EFAULT;
	return is_alive(space, layout, object) ? 0 : -EFAULT;
}

/* How much code the line table covers; 0: all of it has a line, or it is too long to be looked into. */
static size_t code_bytes_to_read(struct rls_line_cursor lines)
{
	struct rls_line_range range = {0};
	bool lacks = false;

	while (rls_line_cursor_next(&lines, &range))
		lacks |= !range.line;
	return lacks && range.end <= UNLINED_CODE_BYTES_MAX ? range.end : 0;
}

/* Where the bytecode is. False: not known, or it cannot be read now. */
static bool find_bytecode(const struct rls_space *space, const struct rls_frame_layout *layout,
			  uint64_t address, uint64_t *out)
{
	uint64_t bytes;

	if (layout->code_start != RLS_FRAMES_NO_OFFSET) {
		*out = address + layout->code_start;
		return true;
	}
	if (!rls_space_read(space, address + layout->object_bytes + CODE_BYTECODE, &bytes,
			    sizeof(bytes)))
		return false;
	*out = bytes + layout->object_bytes + BYTES_DATA;
	return true;
}

/* Without the bytecode, those instructions have the line of what comes before them. */
static int read_unlined(const struct rls_space *space, const struct rls_frame_layout *layout,
			uint64_t address, struct rls_code_object *code)
{
	struct rls_line_cursor lines = rls_line_cursor_begin(code->encoding, code->lines,
							     code->lines_bytes, code->first_line);
	struct rls_bytecode bytecode = {.minor = layout->minor, .bytes = code_bytes_to_read(lines)};
	_cleanup_free_ uint8_t *copy = NULL;
	uint64_t at;

	if (bytecode.bytes) {
		copy = malloc(bytecode.bytes);
		if (!copy)
			return -ENOMEM;
		if (!find_bytecode(space, layout, address, &at) ||
		    !rls_space_read(space, at, copy, bytecode.bytes))
			bytecode.bytes = 0;
	}
	bytecode.code = copy;
	return rls_unlined_read(&bytecode, lines, &code->unlined);
}

/* File, names and line table lie one behind the other. */
static bool read_identity(const struct rls_space *space, const struct rls_frame_layout *layout,
			  uint64_t address, struct rls_code_object *code)
{
	uint64_t pointers[RLS_CODE_POINTERS] = {0};
	size_t bytes = layout->code_lines - layout->code_file + sizeof(pointers[0]);

	if (bytes > sizeof(pointers) ||
	    !rls_space_read(space, address + layout->code_file, pointers, bytes) ||
	    !rls_space_read(space, address + layout->code_first_line, &code->first_line,
			    sizeof(code->first_line)))
		return false;
	code->identity = rls_code_identity((uint32_t)code->first_line, pointers);
	return true;
}

static enum rls_line_encoding encoding_of(unsigned int minor)
{
	return minor < 10 ? RLS_LINES_PAIRS : minor == 10 ? RLS_LINES_RANGES : RLS_LINES_LOCATIONS;
}

int rls_code_object_read(const struct rls_space *space, const struct rls_frame_layout *layout,
			 uint64_t code_type, uint64_t address, struct rls_code_object *out)
{
	bool qualified = layout->code_qualified_name != RLS_FRAMES_NO_OFFSET;
	uint16_t name = qualified ? layout->code_qualified_name : layout->code_name;
	struct rls_code_object code = {.encoding = encoding_of(layout->minor)};
	uint64_t type;
	int r;

	if (!rls_space_read(space, address + layout->object_bytes - sizeof(type), &type,
			    sizeof(type)))
		return -EFAULT;
	if (code_type && type != code_type)
		return -EINVAL;
	r = read_text(space, layout, address + layout->code_file, RLS_CODE_FILE_BYTES, &code.file);
	if (!r)
		r = read_text(space, layout, address + name, RLS_CODE_NAME_BYTES, &code.function);
	if (!r)
		r = read_lines(space, layout, address + layout->code_lines, &code);
	/* At last, so that it is another's if another took the place meanwhile. */
	if (!r &&
	    (!read_identity(space, layout, address, &code) || !is_alive(space, layout, address)))
		r = -EFAULT;
	if (!r)
		r = read_unlined(space, layout, address, &code);
	if (r) {
		rls_code_object_release(&code);
		return r;
	}
	*out = code;
	return 0;
}

void rls_code_object_release(struct rls_code_object *code)
{
	free(code->file);
	free(code->function);
	free(code->lines);
	rls_unlined_release(&code->unlined);
	*code = (struct rls_code_object){0};
}

int32_t rls_code_object_line(const struct rls_code_object *code, int32_t at)
{
	int32_t line;

	if (at < 0)
		return code->first_line > 0 ? code->first_line : 0;
	line = rls_line_table_find(code->encoding, code->lines, code->lines_bytes, code->first_line,
				   (uint32_t)at);
	return line ? line : rls_unlined_line(&code->unlined, (uint32_t)at);
}
