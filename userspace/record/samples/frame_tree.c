#include "userspace/record/samples/frame_tree.h"

#include <errno.h>

void rls_frame_tree_free(struct rls_frame_tree *tree)
{
	rls_index_map_free(&tree->ids);
}

static int frame_tree_add(struct rls_frame_tree *tree, uint32_t parent,
			  const struct rls_frame *frame, uint64_t time_ns, uint32_t id)
{
	struct rls_event event = rls_event_at(RLS_EVENT_FRAME, 0, 0, time_ns);

	event.frame.id = id;
	event.frame.parent = parent;
	event.frame.line = frame->line;
	event.frame.native = frame->native;
	event.frame.function = frame->function;
	event.frame.file = frame->file;
	return rls_emit(tree->sink, &event);
}

int rls_frame_tree_id(struct rls_frame_tree *tree, uint32_t parent, const struct rls_frame *frame,
		      uint64_t time_ns, uint32_t *out)
{
	/* Lines fit in 31 bits (line_table.h), which leaves one to tell native frames. */
	uint64_t place = (uint64_t)parent << 32 | (uint64_t)frame->native << 31 | frame->line;
	uint64_t name = (uint64_t)frame->function << 32 | frame->file;
	uintptr_t known = (uintptr_t)rls_index_map_get(&tree->ids, place, name);
	int r;

	if (known) {
		*out = (uint32_t)known;
		return 0;
	}
	if (tree->count >= RLS_FRAME_TREE_MAX) {
		tree->full = true;
		*out = parent;
		return 0;
	}
	known = tree->count + 1;
	r = rls_index_map_put(&tree->ids, place, name, (void *)known); /* NOLINT: a number */
	if (!r)
		r = frame_tree_add(tree, parent, frame, time_ns, (uint32_t)known);
	if (r)
		return r;
	tree->count++;
	*out = (uint32_t)known;
	return 0;
}
