"""The calling thread's record (annotate_wire.h), read in the process itself."""

import ctypes
import os

import rlscope

EDGE_RING, STACK_MAX = 256, 64
PUSH, POP, PHASE, PROCESS_NAME = 1, 2, 3, 4
RESUMED, DISORDER = 1, 2

_library = ctypes.CDLL(os.path.join(
    os.path.dirname(rlscope.__file__), "..", "..", "librlscope_annotate.so"))
_library.rlscope_annotate_thread_record.restype = ctypes.c_void_p


class Edge(ctypes.Structure):
    _fields_ = [("time_ns", ctypes.c_uint64), ("name", ctypes.c_uint64),
                ("kind", ctypes.c_uint16), ("depth", ctypes.c_uint16),
                ("flags", ctypes.c_uint32)]


class Record(ctypes.Structure):
    _fields_ = [("head", ctypes.c_uint64), ("tid", ctypes.c_uint32), ("depth", ctypes.c_uint32),
                ("stack", ctypes.c_uint64 * STACK_MAX), ("edges", Edge * EDGE_RING)]


def _name(address):
    return ctypes.string_at(address + 8).decode() if address else ""


def record():
    address = _library.rlscope_annotate_thread_record()
    return Record.from_address(address) if address else None


def head():
    return record().head if record() else 0


def stack():
    """The names of the operations the thread is in, outermost first."""
    now = record()
    return [_name(now.stack[i]) for i in range(now.depth)] if now else []


def flagged_edges(since):
    """(kind, name, depth, flags) of the edges from number `since` on."""
    now = record()
    found = [now.edges[number % EDGE_RING] for number in range(since, now.head)] if now else []
    return [(edge.kind, _name(edge.name), edge.depth, edge.flags) for edge in found]


def edges(since):
    """(kind, name, depth) of them."""
    return [edge[:3] for edge in flagged_edges(since)]
