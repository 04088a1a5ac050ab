"""rlscope-bpf probes: what it prints, and the sentence for each way it can fail."""

import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

BINARY = os.environ["RLS_BIN"]
MODULES = os.path.join(os.environ["RLS_TRUTH"], "system")
PROGRAM = "import sys; sys.path.insert(0, %r); import truthsim; print('ready', flush=True); " \
          "sys.stdin.read()" % MODULES
KINDS = {"enter", "enter-call", "leave-ret", "leave-after"}
CLASSES = {"nop5", "emulated", "single-step"}
EXITS = {"return-probe", "sites", "stack-pointer", "none"}
SOURCES = {"symbol", "method-file", "method-live", "slot", "getter", "callback"}


def probes(*arguments):
    return subprocess.run([BINARY, "probes", *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=600, check=False)


class Target:
    """A Python process that waits for a request to end."""

    def __init__(self, program):
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", program], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        return str(self.process.pid)

    def __exit__(self, *_):
        self.process.communicate("")
        assert self.process.returncode == 0, "the target noticed"


class Probes(unittest.TestCase):
    def fails(self, result, status, *words):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_bad_usage(self):
        self.fails(probes(), 2, "--pid")
        self.fails(probes("--pid", "x"), 2, "'x'")
        self.fails(probes("--pid", "0"), 2, "'0'")
        self.fails(probes("--pid", "1", "--format", "csv"), 2, "csv")
        self.fails(probes("--pid", "1", "--simulator", ":x"), 2, "':x'")
        self.fails(probes("--pid", "1", "stray"), 2, "stray")

    def test_no_process(self):
        self.fails(probes("--pid", "1073741823"), 1, "no process with pid 1073741823")

    def test_no_python(self):
        with subprocess.Popen(["sleep", "60"]) as process:
            try:
                self.fails(probes("--pid", str(process.pid)), 1, "runs no Python")
            finally:
                process.kill()

    def test_broken_config(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
            config.write("simulator a.so\nsimulater b.so\n")
            config.flush()
            self.fails(probes("--pid", str(os.getpid()), "--config", config.name), 1,
                       config.name, "line 2", "simulater")
        self.fails(probes("--pid", str(os.getpid()), "--config", "/nowhere"), 1, "/nowhere")

    def test_python_without_a_known_library(self):
        result = probes("--pid", str(os.getpid()))
        self.assertEqual(result.returncode, 0)
        self.assertIn("no library of a known role", result.stderr)
        self.assertIn("Python %d.%d.%d" % sys.version_info[:3], result.stdout)

    def test_json(self):
        with Target(PROGRAM) as pid:
            result = probes("--pid", pid, "--format", "json", "--simulator", "truthsim*.so")
            short = probes("--pid", pid, "--json", "--simulator", "truthsim*.so")
        self.assertEqual((short.returncode, short.stdout), (0, result.stdout))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        document = json.loads(result.stdout)
        self.assertEqual(set(document), {"version", "tool", "pid", "python", "libraries", "warnings"})
        self.assertEqual((document["version"], document["pid"]), (1, int(pid)))
        library, = [entry for entry in document["libraries"] if "truthsim" in entry["path"]]
        self.assertEqual(set(library), {"path", "role", "functions", "sites"})
        self.assertEqual(library["role"], "simulator")
        for site in library["sites"]:
            self.assertEqual(set(site), {"name", "offset", "kind", "class", "exit", "source"})
            self.assertIn(site["kind"], KINDS)
            self.assertIn(site["class"], CLASSES)
            self.assertIn(site["exit"], EXITS)
            self.assertTrue(site["source"] and set(site["source"]) <= SOURCES, site)
            self.assertLess(site["offset"], os.path.getsize(library["path"]))
        names = {site["name"] for site in library["sites"]}
        self.assertLessEqual({"noargs", "heap_o", "truthsim.Static.nb_add", "truthsim.Heap.value"},
                             names)

    def test_text(self):
        with Target(PROGRAM) as pid:
            result = probes("--pid", pid, "--simulator", "truthsim*.so")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"(?m)^process \d+, Python 3\.")
        self.assertRegex(result.stdout, r"(?m)^/.*truthsim.*  simulator  \d+ functions, \d+ sites")
        self.assertRegex(result.stdout, r"(?m)^  0x[0-9a-f]+ +enter +\S+ +return-probe +noargs  ")


    def test_what_is_no_utf8(self):
        """A symbol's name, as a library may have it: replaced, since JSON has no such text."""
        with tempfile.TemporaryDirectory(prefix="rls-") as folder:
            path = os.path.join(folder, "libodd\udcff.so")
            compiled = subprocess.run(["cc", "-shared", "-x", "c", "-o", path, "-"], text=True, check=False,
                                      input="int odd_Qstep(int x) { return x + 1; }")
            if compiled.returncode:
                self.skipTest("no compiler")
            with open(path, "r+b") as stream:
                content = stream.read().replace(b"odd_Qstep", b"odd_\xffstep")
                stream.seek(0)
                stream.write(content)
            with Target("import ctypes, sys; ctypes.CDLL(%r); print('ready', flush=True); sys.stdin.read()" % path) as pid:
                result = probes("--pid", pid, "--json", "--native", "libodd*")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        library, = [entry for entry in json.loads(result.stdout)["libraries"] if "libodd" in entry["path"]]
        self.assertIn("libodd\ufffd.so", library["path"])
        self.assertEqual({site["name"] for site in library["sites"]}, {"odd_\ufffdstep"})

    def test_a_full_disk(self):
        for form in ("text", "json"):
            with open("/dev/full", "w") as full, Target(PROGRAM) as pid:
                result = subprocess.run([BINARY, "probes", "--pid", pid, "--format", form, "--simulator",
                                         "truthsim*.so"], stdout=full, stderr=subprocess.PIPE, text=True,
                                        timeout=600, check=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn("No space left", result.stderr)


if __name__ == "__main__":
    if not os.access(BINARY, os.X_OK):
        print("skipped: no profiler at", BINARY)
        sys.exit(77)
    if not glob.glob(os.path.join(MODULES, "truthsim*.so")):
        print("skipped: no modules of the ground truth for the system's interpreter")
        sys.exit(77)
    unittest.main()
