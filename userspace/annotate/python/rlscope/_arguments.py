"""The original RL-Scope's command-line options, for scripts that add them to their own.

Every option is accepted, in argparse, absl/gflags and click. The few that can mean something
to annotations are obeyed (see Profiler in api.py); of the others a script is warned once that
they do nothing.
"""

import argparse
import logging

logger = logging.getLogger("rlscope")

# option: type of its value; bool is a flag.
OPTIONS = {
    "--rlscope-directory": str,
    "--rlscope-max-passes": int,
    "--rlscope-delay-passes": int,
    "--rlscope-env": str,
    "--rlscope-algo": str,
    "--rlscope-trace-time-sec": float,
    "--rlscope-disable": bool,
    "--rlscope-internal-start-trace-time-sec": float,
    "--rlscope-phase": str,
    "--rlscope-internal-parent-process-name": str,
    "--rls-util-sampler-pid": str,
    "--rlscope-keep-traces": bool,
    "--rlscope-calibration": bool,
    "--rlscope-disable-pyprof-annotations": bool,
    "--rlscope-disable-pyprof-interceptions": bool,
    "--rlscope-disable-pyprof": bool,
    "--rlscope-disable-tfprof": bool,
    "--rlscope-disable-gpu-hw": bool,
    "--rlscope-just-sample-util": bool,
    "--rlscope-skip-rm-traces": bool,
    "--rlscope-debug": bool,
    "--rlscope-line-numbers": bool,
}

# What has its effect here, or needs none.
_OBEYED = {"directory", "env", "algo", "disable", "phase", "disable_pyprof",
           "disable_pyprof_annotations", "debug", "line_numbers"}

_warned = set()


def warn_once(what, why):
    if what not in _warned:
        _warned.add(what)
        logger.warning("rlscope: %s has no effect: %s", what, why)


def _attribute(option):
    return option.lstrip("-").replace("-", "_")


def add_rlscope_arguments(parser):
    """Adds the options to an argparse parser or group, or to absl's `flags` module."""
    if isinstance(parser, argparse.ArgumentParser):
        parser = parser.add_argument_group("RL-Scope")
    for option, kind in OPTIONS.items():
        if hasattr(parser, "add_argument"):
            _add_to_argparse(parser, option, kind)
        else:
            _add_to_gflags(parser, option, kind)


def _help(option):
    name = _attribute(option)[len("rlscope_"):]
    return "RL-Scope option" + ("" if name in _OBEYED else ", accepted and ignored")


def _add_to_argparse(parser, option, kind):
    if kind is bool:
        parser.add_argument(option, action="store_true", help=_help(option))
    else:
        parser.add_argument(option, type=kind, help=_help(option))


def _add_to_gflags(flags, option, kind):
    define = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer,
              float: flags.DEFINE_float, str: flags.DEFINE_string}[kind]
    define(option[2:], False if kind is bool else None, _help(option))


def without_rlscope(arguments):
    """The arguments without the options, and without their values."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_rlscope_arguments(parser)
    # gflags has "--rlscope-disable=false", which argparse would end the script for.
    spaced = [argument for argument in arguments
              if "=" not in argument or argument.split("=", 1)[0] not in OPTIONS]
    return parser.parse_known_args(spaced)[1]


def fix_gflags_rlscope_args(FLAGS):
    """Makes FLAGS['rlscope-x'] readable as FLAGS.rlscope_x too."""
    for name in dir(FLAGS):
        if name.startswith("rlscope-") and not hasattr(FLAGS, name.replace("-", "_")):
            FLAGS[name.replace("-", "_")] = FLAGS[name]


def click_add_arguments():
    """A decorator that adds the options to a click command."""

    def decorate(function):
        import click

        for option, kind in OPTIONS.items():
            if kind is bool:
                option = "{0}/--no-{1}".format(option, option[2:])
                function = click.option(option, default=False)(function)
            else:
                function = click.option(option, type=kind, default=None)(function)
        return function

    return decorate


def read(args):
    """{name without prefix: value} of what was given, from a namespace, flags or a dict."""
    given = {}
    for option in OPTIONS:
        name = _attribute(option)
        if isinstance(args, dict):
            value = args.get(name)
        else:
            value = getattr(args, name, None) or getattr(args, option[2:], None)
        if value is None or value is False:
            continue
        short = name[len("rlscope_"):] if name.startswith("rlscope_") else name
        given[short] = value
        if short not in _OBEYED:
            warn_once(option, "rlscope-bpf decides what to record, from outside the script")
    return given
