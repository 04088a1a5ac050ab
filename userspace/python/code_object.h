/* Code objects of a running interpreter, read from outside: the names and lines of a Python
 * frame. Their content is hostile input: lengths are bounded and text is made valid UTF-8.
 */
#ifndef RLS_CODE_OBJECT_H
#define RLS_CODE_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/process/space.h"
#include "userspace/python/line_table.h"
#include "userspace/python/python_frames.h"
#include "userspace/python/unlined_code.h"

#define RLS_CODE_NAME_BYTES 256 /* longest name kept, NUL included */
#define RLS_CODE_FILE_BYTES 1024
#define RLS_CODE_LINES_BYTES_MAX (1U << 20)

struct rls_code_object {
	char *file, *function; /* co_filename; co_qualname, before 3.11 co_name */
	int32_t first_line;
	uint32_t identity; /* rls_code_identity */
	enum rls_line_encoding encoding;
	uint8_t *lines;
	size_t lines_bytes;
	struct rls_unlined unlined;
};

/* Reads the one at address, whose type must be code_type (the address of PyCode_Type; 0: not
 * checked). 0, -EFAULT: not all of it can be read now; -EINVAL: it is no code object; -ENOMEM. */
int rls_code_object_read(const struct rls_space *space, const struct rls_frame_layout *layout,
			 uint64_t code_type, uint64_t address, struct rls_code_object *out);
void rls_code_object_release(struct rls_code_object *code);

/* Line of the instruction at byte offset `at`; before the first one (at < 0): the first line. An
 * instruction without a line has that of rls_unlined_line. 0: it has none. */
int32_t rls_code_object_line(const struct rls_code_object *code, int32_t at);

#endif
