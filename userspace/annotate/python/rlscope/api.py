"""The original RL-Scope's annotation API, so that its scripts run unchanged:

    import rlscope.api as rlscope

    rlscope.add_rlscope_arguments(parser)
    rlscope.handle_rlscope_args(parser, args, reports_progress=True)
    rlscope.prof.set_metadata({"algo": "PPO", "env": "Walker2D"})
    with rlscope.prof.profile(process_name="train", phase_name="training"):
        rlscope.prof.report_progress(percent_complete=0.1, num_timesteps=1, total_timesteps=10)
        with rlscope.prof.operation("inference"):
            ...

Process name, phase and operations go where rlscope-bpf reads them. What steered the old
tool's own recording is accepted and says once that it does nothing; where the old tool
ended the script (a missing option, `max_passes` reached) the script goes on. Needs neither
TensorFlow nor PyTorch. `prof` is there from the start.
"""

import os
import sys

import rlscope as _rlscope
from rlscope import __version__, _arguments
from rlscope._arguments import (
    add_rlscope_arguments,
    click_add_arguments,
    fix_gflags_rlscope_args,
    logger,
)
from rlscope._silent import operation as _no_operation

__all__ = [
    "Profiler", "RLScopeAPIError", "prof", "logger", "version", "__version__",
    "add_rlscope_arguments", "click_add_arguments", "fix_gflags_rlscope_args",
    "handle_rlscope_args", "handle_gflags_rlscope_args", "handle_click_rlscope_args",
    "rlscope_argv_and_env", "wrap_module", "unwrap_module", "register_wrap_module",
    "wrap_entire_module", "unwrap_entire_module",
]

DEFAULT_PHASE = "default_phase"

version = __version__


class RLScopeAPIError(Exception):
    pass


class _Profile:
    """The block of Profiler.profile()."""

    def __init__(self, prof, process_name, phase_name):
        self._prof = prof
        self._process_name = process_name
        self._phase_name = phase_name
        self._phase_before = ""

    def __enter__(self):
        self._phase_before = _rlscope.get_phase()
        self._prof.set_process_name(self._process_name)
        self._prof.set_phase(self._phase_name)
        self._prof.start()
        return self._prof

    def __exit__(self, kind, error, traceback):
        self._prof.stop()
        self._prof.set_phase(self._phase_before)


class Profiler:
    """Scripts use the one there is: `rlscope.api.prof`."""

    def __init__(self, directory=None, reports_progress=False, args=None, **options):
        self.process_name = None
        self.phase = None
        self.metadata = {}
        self.percent_complete = None
        self.num_timesteps = None
        self.total_timesteps = None
        self.num_passes = 0
        self.pass_idx = 0
        self.has_next_pass = False
        self.tracing_enabled = False
        self.delay = None
        self.delay_passes = None
        self.max_passes = None
        self._begun = []
        self._configure(directory, reports_progress, args, options)

    def _configure(self, directory, reports_progress, args, options):
        given = dict(_arguments.read(args)) if args is not None else {}
        given.update((name, value) for name, value in options.items() if value is not None)
        self.directory = directory if directory is not None else given.get("directory")
        self.reports_progress = reports_progress
        self.debug = bool(given.get("debug"))
        self.disable = bool(given.get("disable"))
        self._annotates = not (self.disable or given.get("disable_pyprof")
                               or given.get("disable_pyprof_annotations"))
        self.set_metadata({key: given[key] for key in ("algo", "env") if key in given})
        self.algo = self.metadata.get("algo")
        self.env = self.metadata.get("env")
        if given.get("phase"):
            self.set_phase(given["phase"])

    # Annotations.

    def profile(self, process_name, phase_name=DEFAULT_PHASE, handle_utilization_sampler=True):
        """Context manager: the process's name, and its phase inside the block."""
        return _Profile(self, process_name, phase_name)

    def operation(self, operation, skip=False):
        """Context manager: an operation."""
        if skip or not self._annotates:
            return _no_operation(operation)
        return _rlscope.operation(operation)

    def set_operation(self, bench_name):
        """Begins an operation; end_operation() ends it."""
        begun = self.operation(bench_name)
        begun.__enter__()
        self._begun.append(begun)

    def end_operation(self, bench_name, skip_finish=False):
        """Ends what set_operation() began last; without one, does nothing."""
        if self._begun:
            self._begun.pop().__exit__(None, None, None)

    def set_phase(self, phase):
        self.phase = phase
        if self._annotates:
            _rlscope.set_phase(phase)

    def set_process_name(self, process_name):
        if process_name == "":
            raise RLScopeAPIError("a process name cannot be empty")
        self.process_name = process_name
        if self._annotates:
            _rlscope.set_process_name(process_name)

    def set_metadata(self, variables):
        self.metadata.update(variables)

    def report_progress(self, percent_complete=None, num_timesteps=None, total_timesteps=None):
        self.percent_complete = percent_complete
        self.num_timesteps = num_timesteps
        self.total_timesteps = total_timesteps
        self.num_passes += 1

    # The old tool's own recording.

    def start(self, start_utilization_sampler=False, handle_utilization_sampler=False):
        self.tracing_enabled = True

    def stop(self):
        while self._begun:
            self.end_operation(None)
        self.tracing_enabled = False

    def enable_tracing(self):
        self.tracing_enabled = True

    def finish(self, should_exit=False):
        self.stop()

    def set_max_passes(self, max_passes, skip_if_set=True):
        self.max_passes = max_passes
        _arguments.warn_once("set_max_passes()", "rlscope-bpf records until it is stopped")

    def set_delay_passes(self, delay_passes, skip_if_set=True):
        self.delay_passes = delay_passes
        _arguments.warn_once("set_delay_passes()", "rlscope-bpf records from when it attaches")

    def set_max_operations(self, operation, num_pushes):
        _arguments.warn_once("set_max_operations()", "rlscope-bpf reads no hardware counters")


prof = Profiler()


def handle_rlscope_args(parser, args, directory=None, reports_progress=False, **options):
    """Obeys the --rlscope-* options of `args`: a namespace, absl's FLAGS or a dict."""
    prof._configure(directory, reports_progress, args, options)


def handle_gflags_rlscope_args(FLAGS, directory=None, reports_progress=False, **options):
    handle_rlscope_args(None, FLAGS, directory, reports_progress, **options)


def handle_click_rlscope_args(rlscope_kwargs, directory=None, reports_progress=False, **options):
    handle_rlscope_args(None, rlscope_kwargs, directory, reports_progress, **options)


def rlscope_argv_and_env(prof, keep_executable=False, keep_non_rlscope_args=False, env=None):
    """(argv, environment) to start another process of the job with: children are recorded by
    themselves, so no option needs handing on."""
    argv = [sys.executable, sys.argv[0]] if keep_executable else []
    if keep_non_rlscope_args:
        argv += _arguments.without_rlscope(sys.argv[1:])
    return argv, dict(os.environ if env is None else env)


def _no_wrapping(name):
    def ignore(*args, **kwargs):
        _arguments.warn_once(name + "()", "libraries are probed from outside the script")

    ignore.__name__ = name
    return ignore


wrap_module = _no_wrapping("wrap_module")
unwrap_module = _no_wrapping("unwrap_module")
register_wrap_module = _no_wrapping("register_wrap_module")
wrap_entire_module = _no_wrapping("wrap_entire_module")
unwrap_entire_module = _no_wrapping("unwrap_entire_module")
