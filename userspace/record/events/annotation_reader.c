#include "userspace/record/events/annotation_reader.h"

#include <errno.h>
#include <string.h>

#include "userspace/process/space.h"

int rls_annotation_reader_descriptor(pid_t pid, uint64_t address,
				     struct rls_annotate_descriptor *out)
{
	struct rls_annotate_descriptor descriptor;
	int r = rls_live_read(pid, address, &descriptor, sizeof(descriptor));

	if (r)
		return r;
	if (descriptor.magic != RLS_ANNOTATE_MAGIC || descriptor.version != RLS_ANNOTATE_VERSION ||
	    descriptor.size < sizeof(descriptor))
		return -EINVAL;
	*out = descriptor;
	return 0;
}

int rls_annotation_reader_name(pid_t pid, uint64_t address, char out[RLS_NAME_BYTES])
{
	struct rls_name name;
	int r = rls_live_read(pid, address, &name, sizeof(name));

	if (r)
		return r;
	if (name.length >= RLS_NAME_BYTES)
		return -EINVAL;
	memcpy(out, name.text, name.length);
	out[name.length] = '\0';
	return (int)name.length;
}

int rls_annotation_reader_rest(const struct rls_wire_final *final, uint64_t end_ns,
			       struct rls_translator *translator)
{
	const pid_t pid = (pid_t) final->header.pid;
	const uint64_t address = final->record, edges_seen = final->edges_seen;
	struct rls_thread_record record;
	uint64_t head;
	int r = rls_live_read(pid, address, &record, sizeof(record));

	/* The thread may be writing: what it has overwritten, or may be, shows in head by now. */
	if (!r)
		r = rls_live_read(pid, address + offsetof(struct rls_thread_record, head), &head,
				  sizeof(head));
	if (r)
		return r;
	if (record.head - edges_seen > RLS_EDGE_RING || head - edges_seen >= RLS_EDGE_RING)
		return -EOVERFLOW;
	for (uint64_t i = edges_seen; i != record.head; i++) {
		struct rls_edge *edge = &record.edges[i % RLS_EDGE_RING];
		char name[RLS_NAME_BYTES] = "";
		int length = edge->name ? rls_annotation_reader_name(pid, edge->name, name) : 0;

		if (length < 0)
			return length;
		edge->time_ns -= (uint64_t) final->clock_ahead_ns;
		if (edge->time_ns > end_ns)
			break;
		r = rls_translator_add_edge(translator, final->header.pid, final->header.tid, edge,
					    name, (size_t)length);
		if (r)
			return r;
	}
	return 0;
}
