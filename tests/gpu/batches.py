"""What the bridge wrote into files where it had no kernel to hand it to: its batches
(cupti_bridge/batch.h), and CUPTI's own records before the bridge had read them (tap.c)."""

import collections
import struct

HEAD = struct.Struct("<QHHHHIIQQQQQQQQQ")
RECORD = struct.Struct("<BBHIQQIIIIQQII")
MAGIC = 0x31545055434C5352
KERNEL, MEMCPY, MEMSET, SYNC, GRAPH, OVERHEAD, API, STATUS = range(1, 9)
WORK = (KERNEL, MEMCPY, MEMSET, GRAPH)
STATUSES = ["", "armed", "disarmed", "no driver", "no CUPTI", "slot taken", "stolen", "failed", "forked"]

Record = collections.namedtuple("Record", "kind subkind correlation start_ns end_ns device context stream "
                                          "tid value node graph name batch")
Batch = collections.namedtuple("Batch", "cupti sequence clock_ns cupti_ns width_ns dropped refused unpooled "
                                        "unclaimed flushed_ns")


def string_at(strings, offset):
    return strings[offset - 1:strings.index(b"\0", offset - 1)].decode() if offset else ""


def read(path):
    """(batches, records) of a file; a record's batch is an index into batches."""
    with open(path, "rb") as stream:
        data = stream.read()
    batches, records, at = [], [], 0
    while at < len(data):
        magic, _, size, count, _, string_bytes, cupti, *rest = HEAD.unpack_from(data, at)
        if magic != MAGIC or size != RECORD.size:
            raise ValueError("no batch at byte %d" % at)
        begin = at + HEAD.size
        strings = data[begin + count * size:begin + count * size + string_bytes]
        for i in range(count):
            fields = RECORD.unpack_from(data, begin + i * size)
            kept = fields[:2] + fields[3:-1]
            records.append(Record(*kept, string_at(strings, fields[-1]), len(batches)))
        batches.append(Batch(cupti, *rest))
        at = begin + count * size + string_bytes
    return batches, records


def lost(batches):
    """Of the last totals, those that are not 0; and batches that are missing."""
    if not batches:
        return {"batches": "none came"}
    last = batches[-1]._asdict()
    reported = {name: last[name] for name in ("dropped", "refused", "unpooled", "unclaimed") if last[name]}
    missing = batches[-1].sequence - len(batches)
    return dict(reported, missing=missing) if missing else reported


def statuses(records):
    return ["%s: %s" % (STATUSES[record.subkind], record.name) for record in records
            if record.kind == STATUS]


def union_ns(intervals):
    total, covered_to = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, covered_to))
        covered_to = max(covered_to, end)
    return total


def raw(path):
    """(record, name) of each that CUPTI made."""
    with open(path, "rb") as stream:
        data = stream.read()
    at = 0
    while at < len(data):
        length, name_bytes = struct.unpack_from("<II", data, at)
        at += 8
        yield data[at:at + length], data[at + length:at + length + name_bytes].decode(errors="replace")
        at += length + name_bytes


def raw_kernel(record):
    """(start, end, device, stream, correlation, node) of a kernel's record, read from CUPTI's own
    documentation and not from the bridge's code; None of another kind."""
    if struct.unpack_from("<I", record)[0] not in (3, 10):
        return None
    start, end = struct.unpack_from("<QQ", record, 16)
    device, _, stream = struct.unpack_from("<III", record, 40)
    correlation, = struct.unpack_from("<I", record, 92)
    node, = struct.unpack_from("<Q", record, 144)
    return start, end, device, stream, correlation, node
