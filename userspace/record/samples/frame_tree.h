/* Frame tree: every stack that samples were taken in, as a tree, so that a sample is one
 * number. A place in it becomes a FRAME event when it is first asked for.
 */
#ifndef RLS_FRAME_TREE_H
#define RLS_FRAME_TREE_H

#include <stdint.h>

#include "analysis/base/index_map.h"
#include "userspace/record/events/event_sink.h"

/* A frame without its caller. */
struct rls_frame {
	rls_string_id function, file;
	uint32_t line;
	bool native;
};

struct rls_frame_tree {
	const struct rls_event_sink *sink;
	struct rls_index_map ids; /* (parent and line, function and file) → id */
	uint32_t count;
	bool full; /* some frames were left out */
};

/* More places than any program has; what comes beyond is its caller's. */
#define RLS_FRAME_TREE_MAX (1U << 20)

void rls_frame_tree_free(struct rls_frame_tree *tree);

/* The id of a frame under parent (0: outermost). 0 or -errno. */
int rls_frame_tree_id(struct rls_frame_tree *tree, uint32_t parent, const struct rls_frame *frame,
		      uint64_t time_ns, uint32_t *out);

#endif
