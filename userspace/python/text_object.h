/* Text of str objects of a running interpreter, read from outside. Their content is hostile input. */
#ifndef RLS_TEXT_OBJECT_H
#define RLS_TEXT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/process/space.h"
#include "userspace/python/python_frames.h"

/* Whether an object still exists: asked after it was read, so that what was read was its own. */
bool rls_object_is_alive(const struct rls_space *space, const struct rls_frame_layout *layout,
			 uint64_t object);

/* The str object at an address as UTF-8, shorter than limit_bytes, without control characters. *out is the
 * caller's. 0, -EFAULT: not all of it can be read now; -EINVAL: it is no str; -ENOMEM. */
int rls_text_object_read(const struct rls_space *space, const struct rls_frame_layout *layout,
			 uint64_t object, size_t limit_bytes, char **out);

#endif
