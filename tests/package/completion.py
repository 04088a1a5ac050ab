#!/usr/bin/python3
"""Completion for bash and zsh knows every command, and every option that its manual page lists."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import packages

import completion

PROGRAM = os.path.join(packages.BUILD, "rlscope-bpf")
COMPLETE = """
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_rlscope_bpf
printf '%s\\n' "${COMPREPLY[@]}"
"""


def documented():
    """{command: options} of the manual pages, which are written by hand."""
    pages = {}
    for path in glob.glob(os.path.join(packages.SOURCES, "doc/man/rlscope-bpf-*.1")):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if line.startswith(".It Fl")]
        names = re.findall(r"Fl ((?:Fl )?[a-zA-Z-]+)", " ".join(lines))
        command = re.search(r"rlscope-bpf-(\w+)\.1$", path).group(1)
        pages[command] = {"-" + name.replace("Fl ", "-") for name in names}
    return pages


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.script = os.path.join(cls.folder.name, "rlscope-bpf")
        with open(cls.script, "w", encoding="utf-8") as file:
            file.write(completion.bash(PROGRAM))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def completed(self, *words):
        done = subprocess.run(["bash", "-c", COMPLETE, "bash", self.script, "rlscope-bpf", *words],
                              stdout=subprocess.PIPE, check=True, text=True, cwd=self.folder.name)
        return set(done.stdout.split())

    def test_commands(self):
        self.assertLessEqual(set(documented()), self.completed(""))
        self.assertEqual(self.completed("rep"), {"report"})

    def test_options(self):
        self.assertGreater(len(documented()["attach"]), 15)
        for command, options in documented().items():
            self.assertEqual(options - self.completed(command, "-"), set(), command)

    def test_values(self):
        self.assertEqual(self.completed("report", "--format", "pe"), {"perfetto"})
        self.assertEqual(self.completed("report", "--format", "=", "pe"), {"perfetto"})
        self.assertEqual(self.completed("report", "--format", "="), set(completion.VALUES[None, "--format"].split()))
        self.assertEqual(self.completed("check", "-f", ""), {"text", "json"})
        self.assertIn(str(os.getpid()), self.completed("attach", "--pid", ""))
        self.assertEqual(self.completed("attach", "--duration", ""), set())
        self.assertEqual(self.completed("report", "rl"), {"rlscope-bpf"})
        self.assertEqual(self.completed("attach", "--json", "--report", "rl"), {"rlscope-bpf"})

    def test_a_command_of_run_is_not_ours(self):
        self.assertEqual(self.completed("run", "--", "python3", "--fo"), set())

    def test_values_are_those_of_the_program(self):
        """Each value of --format is one that the program takes."""
        with tempfile.TemporaryDirectory() as folder:
            for name in completion.VALUES[None, "--format"].split():
                done = subprocess.run([PROGRAM, "report", "-f", name, "-o", os.path.join(folder, "out"),
                                       os.path.join(folder, "none")],
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 1, done.stderr)
            done = subprocess.run([PROGRAM, "report", "-f", "nosuch", os.path.join(folder, "none")],
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 2)


class Zsh(unittest.TestCase):
    def test_options(self):
        text = completion.zsh(PROGRAM)
        cases = dict(re.findall(r"^\t\t(\w+)\)\n(.*?)^\t\t\t;;", text, re.M | re.S))
        self.assertEqual(set(cases), set(documented()))
        for command, options in documented().items():
            found = set(re.findall(r"'\*(--?[a-zA-Z-]+?)[=+]?\[", cases[command]))
            self.assertEqual(options - found, set(), command)

    def test_parses(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        with tempfile.NamedTemporaryFile("w", suffix="_rlscope-bpf") as file:
            file.write(completion.zsh(PROGRAM))
            file.flush()
            subprocess.run(["zsh", "-n", file.name], check=True)


if __name__ == "__main__":
    packages.need("bash")
    unittest.main()
