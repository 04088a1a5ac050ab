"""Scripts written for the original RL-Scope."""

import argparse
import logging
import sys
import unittest
from unittest import mock

import records
import rlscope.api as rlscope
from records import PHASE, POP, PROCESS_NAME, PUSH


class Messages(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, message):
        self.lines.append(message.getMessage())


class Api(unittest.TestCase):
    def setUp(self):
        self.before = records.head()
        self.messages = Messages()
        rlscope.logger.addHandler(self.messages)
        rlscope.logger.propagate = False
        self.addCleanup(rlscope.logger.removeHandler, self.messages)
        self.addCleanup(rlscope.handle_rlscope_args, None, {})

    def parse(self, *arguments):
        parser = argparse.ArgumentParser()
        parser.add_argument("--env")
        rlscope.add_rlscope_arguments(parser)
        return parser, parser.parse_args(arguments)

    def test_a_training_script(self):
        parser, args = self.parse("--env", "Walker2D", "--rlscope-directory", "/tmp/traces")
        rlscope.handle_rlscope_args(parser, args, directory=args.rlscope_directory,
                                    reports_progress=True)
        rlscope.prof.set_metadata({"algo": "PPO", "env": args.env})
        with rlscope.prof.profile(process_name="train", phase_name="training"):
            for t in range(2):
                rlscope.prof.report_progress(percent_complete=t / 2., num_timesteps=t,
                                             total_timesteps=2)
                with rlscope.prof.operation("step"):
                    with rlscope.prof.operation("inference"):
                        pass
            rlscope.prof.set_phase("evaluation")
            rlscope.prof.set_operation("backpropagation")
            rlscope.prof.end_operation("backpropagation")
        step = [(PUSH, "step", 1), (PUSH, "inference", 2), (POP, "step", 1), (POP, "", 0)]
        self.assertEqual(records.edges(self.before), [
            (PROCESS_NAME, "train", 0), (PHASE, "training", 0)] + 2 * step + [
            (PHASE, "evaluation", 0), (PUSH, "backpropagation", 1), (POP, "", 0), (PHASE, "", 0)])
        self.assertEqual(rlscope.prof.metadata["algo"], "PPO")
        self.assertEqual(rlscope.prof.directory, "/tmp/traces")
        self.assertEqual(self.messages.lines, [])

    def test_what_means_nothing_here_is_said_once(self):
        parser, args = self.parse("--rlscope-trace-time-sec", "3", "--rlscope-keep-traces")
        for _ in range(2):
            rlscope.handle_rlscope_args(parser, args)
            rlscope.prof.set_max_passes(10, skip_if_set=True)
            rlscope.prof.set_delay_passes(10, skip_if_set=False)
            rlscope.wrap_module(argparse, "Simulator C")
            rlscope.register_wrap_module(lambda: 0, lambda: 0)
        named = [line.split()[1] for line in self.messages.lines]
        self.assertEqual(sorted(named), sorted([
            "--rlscope-trace-time-sec", "--rlscope-keep-traces", "set_max_passes()",
            "set_delay_passes()", "wrap_module()", "register_wrap_module()"]))

    def test_disable(self):
        parser, args = self.parse("--rlscope-disable")
        rlscope.handle_rlscope_args(parser, args)
        with rlscope.prof.profile("name", "phase"), rlscope.prof.operation("x"):
            self.assertEqual(records.stack(), [])
        self.assertEqual(records.edges(self.before), [])

    def test_skip_and_stray_ends(self):
        with rlscope.prof.operation("x", skip=True):
            self.assertEqual(records.stack(), [])
        with rlscope.prof.operation("mine"):
            rlscope.prof.end_operation("never begun")
            self.assertEqual(records.stack(), ["mine"])

    def test_stop_ends_what_was_begun(self):
        rlscope.prof.start()
        rlscope.prof.set_operation("a")
        rlscope.prof.set_operation("b")
        rlscope.prof.stop()
        self.assertEqual(records.stack(), [])

    def test_an_exception_passes(self):
        with self.assertRaises(KeyError):
            with rlscope.prof.profile("name"), rlscope.prof.operation("x"):
                raise KeyError
        self.assertEqual(records.stack(), [])
        with self.assertRaises(rlscope.RLScopeAPIError):
            rlscope.prof.set_process_name("")

    def test_click_and_gflags_forms(self):
        rlscope.handle_click_rlscope_args({"rlscope_algo": "SAC", "rlscope_disable": False})
        self.assertEqual(rlscope.prof.metadata["algo"], "SAC")

        class Flags:
            rlscope_env = "Ant"

        rlscope.handle_gflags_rlscope_args(Flags(), directory="d", reports_progress=True)
        self.assertEqual((rlscope.prof.env, rlscope.prof.directory), ("Ant", "d"))

    def test_what_starts_another_process(self):
        def argv(*arguments, **options):
            with mock.patch.object(sys, "argv", ["train.py"] + list(arguments)):
                return rlscope.rlscope_argv_and_env(rlscope.prof, **options)[0]

        given = ("--rlscope-directory", "/tmp/x", "--lr", "3")
        self.assertEqual(argv(*given, keep_executable=True, keep_non_rlscope_args=True),
                         [sys.executable, "train.py", "--lr", "3"])
        self.assertEqual(argv(*given, keep_executable=True), [sys.executable, "train.py"])
        self.assertEqual(argv(*given, keep_non_rlscope_args=True), ["--lr", "3"])
        self.assertEqual(argv(*given), [])
        self.assertEqual(argv("-v", "--rlscope-debug", "in", "--rlscope-max-passes=4", "--rlscope-disable=false", "--rl=1",
                              "-h", keep_non_rlscope_args=True), ["-v", "in", "--rl=1", "-h"])

    def test_gflags_definitions(self):
        defined = {}

        class flags:
            pass

        for kind in ("bool", "integer", "float", "string"):
            setattr(flags, "DEFINE_" + kind, staticmethod(
                lambda name, default, help, kind=kind: defined.update({name: kind})))
        rlscope.add_rlscope_arguments(flags)
        self.assertEqual(defined["rlscope-max-passes"], "integer")
        self.assertEqual(defined["rlscope-disable"], "bool")
        self.assertEqual(len(defined), 22)


if __name__ == "__main__":
    unittest.main()
