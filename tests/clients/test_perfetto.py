"""The Perfetto file in the official protobuf classes: slices nest, sums and flows are right."""
import collections

import common

common.with_client_packages("perfetto")
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent  # noqa: E402


class Picture:
    """Every slice as (track, depth, names, category, start, end), after sorting by time as a viewer does."""

    def __init__(self, data):
        trace = Trace()
        trace.ParseFromString(data)
        # What the classes do not know would be lost, or come out in another order.
        assert len(trace.SerializeToString()) == len(data)
        self.tracks = {packet.track_descriptor.uuid: packet.track_descriptor for packet in trace.packet
                       if packet.HasField("track_descriptor")}
        self.names, self.kinds = {}, {}
        for packet in trace.packet:
            self.names.update((name.iid, name.name) for name in packet.interned_data.event_names)
            self.kinds.update((kind.iid, kind.name) for kind in packet.interned_data.event_categories)
        self.slices, self.flows, self.counts, self.instants = [], collections.defaultdict(list), [], []
        open_slices = collections.defaultdict(list)
        packets = [packet for packet in trace.packet if packet.HasField("track_event")]
        for packet in sorted(packets, key=lambda packet: packet.timestamp):
            self.take(packet.timestamp, packet.track_event, open_slices[packet.track_event.track_uuid])
        assert not any(open_slices.values()), "every slice ends"

    def take(self, at, event, stack):
        assert event.track_uuid in self.tracks
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((self.names[event.name_iid], self.kinds[event.category_iids[0]], at))
            for flow in event.terminating_flow_ids:
                self.flows[flow].append(("end", at))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            names = tuple(name for name, _, _ in stack)
            _, kind, start = stack.pop()
            assert at > start
            self.slices.append((event.track_uuid, names, kind, start, at))
        elif event.type == TrackEvent.TYPE_INSTANT:
            self.instants.append(event.name or self.names[event.name_iid])
            for flow in event.flow_ids:
                self.flows[flow].append(("begin", at))
        else:
            self.counts.append((event.track_uuid, at, event.counter_value))

    def owner(self, uuid):
        track = self.tracks[uuid]
        return track if track.HasField("thread") or track.HasField("process") else self.tracks[track.parent_uuid]


def category_sums(picture):
    phases = [(picture.owner(uuid).process.pid, names[0], start, end)
              for uuid, names, kind, start, end in picture.slices if kind == "phase"]
    sums = collections.Counter()
    for uuid, names, kind, start, end in picture.slices:
        if kind != "category":
            continue
        thread = picture.tracks[uuid].thread
        phase = [name for pid, name, begin, until in phases if pid == thread.pid and begin <= start and end <= until]
        assert len(phase) <= 1
        sums[thread.pid, thread.tid, phase[0] if phase else "", names[-2] if len(names) > 1 else "", names[-1]] += end - start
    return dict(sums)


def busy_sums(picture):
    sums, since = collections.Counter(), {}
    for uuid, at, value in picture.counts:
        if picture.tracks[uuid].counter.unit_name == "bytes":
            continue
        if value:
            since[uuid] = at
        else:
            device = int(picture.tracks[uuid].name.split()[1])
            sums[picture.owner(uuid).process.pid, device] += at - since.pop(uuid)
    assert not since
    return dict(sums)


def memory_rows(picture):
    """(pid, name of the counter, instant, bytes), of memory."""
    return sorted((picture.owner(uuid).process.pid, picture.tracks[uuid].name, at, value)
                  for uuid, at, value in picture.counts if picture.tracks[uuid].counter.unit_name == "bytes")


def expected_memory(model):
    for row in model["memory_timeline"]:
        gpu = "GPU %d " % row["device"] if row["device"] >= 0 else ""
        yield row["pid"], gpu + "memory allocated" if gpu else "resident memory", row["time_ns"], row["rss_bytes"]
        if row["live_bytes"] is not None:
            yield row["pid"], gpu + "live memory of lines", row["time_ns"], row["live_bytes"]


def main():
    trace = common.Trace()
    picture = Picture(trace.report("perfetto").read_bytes())
    assert category_sums(picture) == trace.sums("wall_ns", "pid", "tid", "phase", "operation", "category")
    assert busy_sums(picture) == {(gpu["pid"], gpu["device"]): gpu["busy_ns"] for gpu in trace.model["gpu"]}
    assert trace.model["memory_timeline"] and memory_rows(picture) == sorted(expected_memory(trace.model))
    assert picture.flows and all([kind for kind, _ in sorted(ends, key=lambda end: end[1])] == ["begin", "end"]
                                 for ends in picture.flows.values())
    kernels = sum(gpu["kernels"] for gpu in trace.model["gpu"])
    assert sum(kind == "gpu" and names[-1] in ("gemm", "relu") for _, names, kind, _, _ in picture.slices) == kernels
    names = {picture.tracks[uuid].thread.thread_name for uuid, _, kind, _, _ in picture.slices if kind == "category"}
    assert names == {thread["name"] for thread in trace.model["threads"]}

    cut_short = common.Trace(complete=False)
    instants = Picture(cut_short.report("perfetto").read_bytes()).instants
    assert set(cut_short.warnings()) <= set(instants)
    print(len(picture.slices), "slices,", len(picture.flows), "flows")


main()
