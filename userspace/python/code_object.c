#include "userspace/python/code_object.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "bpf/wire/stack.h"
#include "userspace/python/text_object.h"

/* PyBytesObject, the same in 3.8 to 3.14: offsets behind PyObject, which ends in its type. */
enum {
	BYTES_SIZE = 0,
	BYTES_DATA = 16,
	CODE_BYTECODE = 32, /* PyCodeObject.co_code before 3.11 */
};
#define UNLINED_CODE_BYTES_MAX (1U << 16)
/* The str object that the pointer at `where` refers to, cut where it gets too long. */
static int read_text(const struct rls_space *space, const struct rls_frame_layout *layout,
		     uint64_t where, size_t limit_bytes, char **out)
{
	uint64_t object;

	if (!rls_space_read(space, where, &object, sizeof(object)))
		return -EFAULT;
	return rls_text_object_read(space, layout, object, limit_bytes, out);
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
	return rls_object_is_alive(space, layout, object) ? 0 : -EFAULT;
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
	if (!r && (!read_identity(space, layout, address, &code) ||
		   !rls_object_is_alive(space, layout, address)))
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
