/* Perfetto's protobuf trace: a stream of packets, one for each begin, end, instant and count.
 *
 * All packets are of one sequence. Names are sent once, with the first packet that uses them,
 * and referred to by id from then on. Times are CLOCK_MONOTONIC as recorded: they need not be
 * in order, the reader sorts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/base/grow.h"
#include "analysis/base/index_map.h"
#include "analysis/writers/export/proto_stream.h"
#include "analysis/writers/writer.h"
#include "perfetto.pb-c.h"

#define PACKET_FIELD 1
#define SEQUENCE 1
#define INCREMENTAL_STATE_CLEARED 1
#define NEEDS_INCREMENTAL_STATE 2
#define WARNINGS_TRACK UINT64_MAX
/* Two of each process and device, from here on: tracks of the sweep have 32 bits. */
#define MEMORY_TRACKS (1ULL << 32)
#define NAME_BYTES 64

struct perfetto {
	struct rls_track_sink sink;
	struct rls_proto_stream stream;
	bool begun; /* the sequence's first packet is out */
	bool *sent; /* by name id */
	size_t sent_count;
	bool kind_sent[RLS_SLICE_KIND_MAX];
	struct rls_index_map processes; /* (pid, 0) -> its track's number */
};

static struct perfetto *perfetto_of(struct rls_track_sink *sink)
{
	return (struct perfetto *)sink;
}

static int perfetto_write(struct perfetto *perfetto, RlsPerfetto__TracePacket *packet)
{
	packet->has_trusted_packet_sequence_id = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->has_sequence_flags = true;
	packet->sequence_flags =
		perfetto->begun ? NEEDS_INCREMENTAL_STATE : INCREMENTAL_STATE_CLEARED;
	perfetto->begun = true;
	return rls_proto_stream_put(&perfetto->stream, PACKET_FIELD, &packet->base);
}

/* --- tracks ------------------------------------------------------------------------- */

static int put_descriptor(struct perfetto *perfetto, RlsPerfetto__TrackDescriptor *descriptor,
			  uint64_t uuid)
{
	RlsPerfetto__TracePacket packet = RLS_PERFETTO__TRACE_PACKET__INIT;

	descriptor->has_uuid = true;
	descriptor->uuid = uuid;
	packet.track_descriptor = descriptor;
	return perfetto_write(perfetto, &packet);
}

static int put_process(struct perfetto *perfetto, const struct rls_track *track)
{
	RlsPerfetto__TrackDescriptor descriptor = RLS_PERFETTO__TRACK_DESCRIPTOR__INIT;
	RlsPerfetto__ProcessDescriptor process = RLS_PERFETTO__PROCESS_DESCRIPTOR__INIT;

	process.has_pid = true;
	process.pid = (int32_t)track->pid;
	process.process_name = (char *)track->name;
	descriptor.process = &process;
	if (rls_index_map_put(&perfetto->processes, track->pid, 0,
			      (void *)(uintptr_t)track->number)) /* NOLINT: a number */
		return -ENOMEM;
	return put_descriptor(perfetto, &descriptor, track->number);
}

static int put_thread(struct perfetto *perfetto, const struct rls_track *track)
{
	RlsPerfetto__TrackDescriptor descriptor = RLS_PERFETTO__TRACK_DESCRIPTOR__INIT;
	RlsPerfetto__ThreadDescriptor thread = RLS_PERFETTO__THREAD_DESCRIPTOR__INIT;

	thread.has_pid = thread.has_tid = true;
	thread.pid = (int32_t)track->pid;
	thread.tid = (int32_t)track->tid;
	thread.thread_name = (char *)track->name;
	descriptor.thread = &thread;
	descriptor.has_parent_uuid = true;
	descriptor.parent_uuid = track->process->number;
	return put_descriptor(perfetto, &descriptor, track->number);
}

static int put_track(struct rls_track_sink *sink, const struct rls_track *track)
{
	RlsPerfetto__TrackDescriptor descriptor = RLS_PERFETTO__TRACK_DESCRIPTOR__INIT;
	RlsPerfetto__CounterDescriptor counter = RLS_PERFETTO__COUNTER_DESCRIPTOR__INIT;

	if (track->kind == RLS_TRACK_PROCESS)
		return put_process(perfetto_of(sink), track);
	if (track->kind == RLS_TRACK_THREAD)
		return put_thread(perfetto_of(sink), track);
	descriptor.name = (char *)track->name;
	descriptor.has_parent_uuid = true;
	descriptor.parent_uuid = track->process->number;
	if (track->kind == RLS_TRACK_GPU_BUSY)
		descriptor.counter = &counter;
	return put_descriptor(perfetto_of(sink), &descriptor, track->number);
}

/* --- events ------------------------------------------------------------------------- */

static int put_event(struct perfetto *perfetto, RlsPerfetto__TrackEvent *event,
		     RlsPerfetto__TracePacket *packet, const struct rls_track *track,
		     uint64_t at_ns)
{
	event->has_track_uuid = true;
	event->track_uuid = track->number;
	event->has_type = true;
	packet->has_timestamp = true;
	packet->timestamp = at_ns;
	packet->track_event = event;
	return perfetto_write(perfetto, packet);
}

/* Ids of the format begin at 1: its own are the names' and kinds' plus one. */
static int put_slice(struct perfetto *perfetto, RlsPerfetto__TrackEvent *event,
		     const struct rls_track *track, uint64_t at_ns, const struct rls_slice *slice)
{
	RlsPerfetto__TracePacket packet = RLS_PERFETTO__TRACE_PACKET__INIT;
	RlsPerfetto__InternedData interned = RLS_PERFETTO__INTERNED_DATA__INIT;
	RlsPerfetto__InternedName name = RLS_PERFETTO__INTERNED_NAME__INIT, kind = name;
	RlsPerfetto__InternedName *names[] = {&name}, *kinds[] = {&kind};
	uint64_t category = (uint64_t)slice->kind + 1;
	int err = rls_grow_to(&perfetto->sent, &perfetto->sent_count, slice->name);

	if (err)
		return err;
	name.has_iid = kind.has_iid = true;
	name.iid = (uint64_t)slice->name + 1;
	name.name = (char *)rls_string_pool_get(perfetto->sink.names, slice->name);
	kind.iid = category;
	kind.name = (char *)rls_slice_kind_name(slice->kind);
	if (!perfetto->sent[slice->name]) {
		interned.n_event_names = 1;
		interned.event_names = names;
		packet.interned_data = &interned;
	}
	if (!perfetto->kind_sent[slice->kind]) {
		interned.n_event_categories = 1;
		interned.event_categories = kinds;
		packet.interned_data = &interned;
	}
	perfetto->sent[slice->name] = perfetto->kind_sent[slice->kind] = true;
	event->has_name_iid = true;
	event->name_iid = name.iid;
	event->n_category_iids = 1;
	event->category_iids = &category;
	return put_event(perfetto, event, &packet, track, at_ns);
}

static int put_begin(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		     const struct rls_slice *slice)
{
	RlsPerfetto__TrackEvent event = RLS_PERFETTO__TRACK_EVENT__INIT;
	uint64_t flow = slice->flow;

	event.type = RLS_PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN;
	event.n_terminating_flow_ids = flow ? 1 : 0;
	event.terminating_flow_ids = &flow;
	return put_slice(perfetto_of(sink), &event, track, at_ns, slice);
}

static int put_launch(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		      const struct rls_slice *slice)
{
	RlsPerfetto__TrackEvent event = RLS_PERFETTO__TRACK_EVENT__INIT;
	uint64_t flow = slice->flow;

	event.type = RLS_PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT;
	event.n_flow_ids = flow ? 1 : 0;
	event.flow_ids = &flow;
	return put_slice(perfetto_of(sink), &event, track, at_ns, slice);
}

static int put_end(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns)
{
	RlsPerfetto__TracePacket packet = RLS_PERFETTO__TRACE_PACKET__INIT;
	RlsPerfetto__TrackEvent event = RLS_PERFETTO__TRACK_EVENT__INIT;

	event.type = RLS_PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	return put_event(perfetto_of(sink), &event, &packet, track, at_ns);
}

static int put_value(struct perfetto *perfetto, uint64_t uuid, uint64_t at_ns, uint64_t value)
{
	RlsPerfetto__TracePacket packet = RLS_PERFETTO__TRACE_PACKET__INIT;
	RlsPerfetto__TrackEvent event = RLS_PERFETTO__TRACK_EVENT__INIT;

	event.type = RLS_PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER;
	event.has_counter_value = event.has_track_uuid = event.has_type = true;
	event.counter_value = (int64_t)value;
	event.track_uuid = uuid;
	packet.has_timestamp = true;
	packet.timestamp = at_ns;
	packet.track_event = &event;
	return perfetto_write(perfetto, &packet);
}

static int put_count(struct rls_track_sink *sink, const struct rls_track *track, uint64_t at_ns,
		     uint64_t value)
{
	return put_value(perfetto_of(sink), track->number, at_ns, value);
}

/* --- memory ------------------------------------------------------------------------- */

static int put_memory_track(struct perfetto *perfetto, uint64_t uuid, uint32_t pid,
			    const char *name)
{
	RlsPerfetto__TrackDescriptor descriptor = RLS_PERFETTO__TRACK_DESCRIPTOR__INIT;
	RlsPerfetto__CounterDescriptor counter = RLS_PERFETTO__COUNTER_DESCRIPTOR__INIT;
	uintptr_t process = (uintptr_t)rls_index_map_get(&perfetto->processes, pid, 0);

	descriptor.name = (char *)name;
	descriptor.has_parent_uuid = process != 0;
	descriptor.parent_uuid = process;
	counter.unit_name = "bytes";
	descriptor.counter = &counter;
	return put_descriptor(perfetto, &descriptor, uuid);
}

/* What the process has of one device, from this row on: what it uses, and what lives of its lines. */
static int put_memory_tracks(struct perfetto *perfetto, uint64_t uuid,
			     const struct rls_memory_timeline_row *row)
{
	char used[NAME_BYTES] = "resident memory", live[NAME_BYTES] = "live memory of lines";
	int err;

	if (row->device >= 0) {
		snprintf(used, sizeof(used), "GPU %" PRId32 " memory allocated", row->device);
		snprintf(live, sizeof(live), "GPU %" PRId32 " live memory of lines", row->device);
	}
	err = put_memory_track(perfetto, uuid, row->pid, used);
	return err ? err : put_memory_track(perfetto, uuid + 1, row->pid, live);
}

static int put_memory(struct perfetto *perfetto, const struct rls_report *report)
{
	const struct rls_memory_timeline_row *before = NULL;
	uint64_t uuid = MEMORY_TRACKS;
	int err = 0;

	for (size_t i = 0; !err && i < report->memory_timeline_count; i++) {
		const struct rls_memory_timeline_row *row = &report->memory_timeline[i];

		if (!before || before->pid != row->pid || before->device != row->device) {
			uuid += 2;
			err = put_memory_tracks(perfetto, uuid, row);
		}
		before = row;
		if (!err)
			err = put_value(perfetto, uuid, row->time_ns, row->rss_bytes);
		if (!err && row->live_bytes != RLS_COUNT_UNKNOWN)
			err = put_value(perfetto, uuid + 1, row->time_ns, row->live_bytes);
	}
	return err;
}

/* --- the end ------------------------------------------------------------------------ */

/* Memory; and warnings as a track of their own, at the trace's end: the format has no other place that is shown. */
static int put_rest(struct rls_track_sink *sink, const struct rls_report *report)
{
	RlsPerfetto__TrackDescriptor descriptor = RLS_PERFETTO__TRACK_DESCRIPTOR__INIT;
	int err = put_memory(perfetto_of(sink), report);

	if (err || !report->warning_count)
		return err;
	descriptor.name = "warnings of rlscope-bpf";
	err = put_descriptor(perfetto_of(sink), &descriptor, WARNINGS_TRACK);
	for (size_t i = 0; !err && i < report->warning_count; i++) {
		RlsPerfetto__TracePacket packet = RLS_PERFETTO__TRACE_PACKET__INIT;
		RlsPerfetto__TrackEvent event = RLS_PERFETTO__TRACK_EVENT__INIT;

		event.has_type = event.has_track_uuid = packet.has_timestamp = true;
		event.type = RLS_PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT;
		event.track_uuid = WARNINGS_TRACK;
		event.name = (char *)report->warnings[i];
		packet.timestamp = report->end_ns;
		packet.track_event = &event;
		err = perfetto_write(perfetto_of(sink), &packet);
	}
	return err;
}

static void free_perfetto(struct rls_track_sink *sink)
{
	struct perfetto *perfetto = perfetto_of(sink);

	rls_proto_stream_free(&perfetto->stream);
	free(perfetto->sent);
	rls_index_map_free(&perfetto->processes);
	free(perfetto);
}

static struct rls_track_sink *open_perfetto(FILE *output)
{
	struct perfetto *perfetto = calloc(1, sizeof(*perfetto));

	if (!perfetto)
		return NULL;
	perfetto->sink = (struct rls_track_sink){
		.track = put_track,
		.begin = put_begin,
		.end = put_end,
		.launch = put_launch,
		.count = put_count,
		.finish = put_rest,
		.free = free_perfetto,
	};
	perfetto->stream.out = output;
	return &perfetto->sink;
}

const struct rls_report_writer rls_perfetto_writer = {
	.name = "perfetto",
	.open = open_perfetto,
	.binary = true,
};
