"""Name what a training script is doing, for rlscope-bpf to read.

    import rlscope

    rlscope.set_phase("data_collection")
    with rlscope.operation("inference"):
        action = policy(observation)

    @rlscope.operation("simulation")
    def step(action): ...

A block around `await` or `yield` is left while its coroutine or generator is suspended (CPython
3.12 and later; decorated functions: always).

Costs about a fifth of a microsecond a block and needs nothing: without a profiler, and even
without the library, the script runs unchanged. Works in CPython 3.8 and later; scripts
written for the original RL-Scope use `rlscope.api`.
"""

try:
    from rlscope._annotate import get_phase, operation, set_phase, set_process_name
    from rlscope._annotate import version as __version__

    from rlscope import _follow

    _follow.begin()
except ImportError:
    # No extension for this interpreter, or librlscope_annotate.so is not there.
    from rlscope._silent import get_phase, operation, set_phase, set_process_name
    from rlscope._silent import version as __version__

__all__ = ["operation", "phase", "set_phase", "get_phase", "set_process_name"]


class phase:
    """Context manager: the process's phase inside the block, the one before after it."""

    def __init__(self, name):
        self.name = name
        self._before = []

    def __enter__(self):
        self._before.append(get_phase())
        set_phase(self.name)
        return self

    def __exit__(self, kind, error, traceback):
        set_phase(self._before.pop())
