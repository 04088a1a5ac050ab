"""Begins following operations through suspensions of generators and coroutines (follow.h)."""

import contextlib
import sys
import types

from rlscope import _annotate

_TYPES = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_TOOLS = (4, 3)  # of sys.monitoring: those that no kind of tool has by custom


def _chain_is_known():
    """Two generators, one inside the other, show where the chain of them lies."""
    found = []

    def inner():
        yield found.append(_annotate._learn(generators[1], generators[0]))

    def outer():
        for _ in generators[1]:
            yield

    generators = [outer(), inner()]
    for _ in generators[0]:
        pass
    return found[0]


def _tool():
    """A tool of sys.monitoring that is ours, or None."""
    for tool in _TOOLS:
        try:
            sys.monitoring.use_tool_id(tool, "rlscope")
            return tool
        except ValueError:
            pass
    return None


def begin():
    file = contextlib.contextmanager.__code__.co_filename
    tool = _tool() if hasattr(sys, "monitoring") else None
    if not _chain_is_known():
        return
    if tool is None:
        _annotate._learn(_TYPES, file, None, None, None)
        return
    events = sys.monitoring.events
    sys.monitoring.register_callback(tool, events.PY_YIELD, _annotate._on_yield)
    sys.monitoring.register_callback(tool, events.PY_RESUME, _annotate._on_resume)
    sys.monitoring.register_callback(tool, events.PY_THROW, _annotate._on_resume)
    # Exceptions that are thrown into generators cannot be watched by their code; they are rare.
    sys.monitoring.set_events(tool, events.PY_THROW)
    _annotate._learn(_TYPES, file, sys.monitoring.set_local_events, tool,
                     events.PY_YIELD | events.PY_RESUME)
