"""An annotated script where the library or the extension is not there: same output, silent."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import rlscope

SCRIPT = """
import asyncio
import rlscope
import rlscope.api

rlscope.set_process_name("p")
rlscope.set_phase("warmup")

@rlscope.operation("f")
def f(x):
    return x + 1

@rlscope.operation("g")
async def g():
    return 5

with rlscope.phase("train"), rlscope.operation("step") as step:
    assert rlscope.get_phase() == "train"
    with rlscope.api.prof.operation("inner"):
        print(f(1), asyncio.run(g()), step)
assert rlscope.get_phase() == "warmup"
for wrong in (lambda: rlscope.operation(1), lambda: rlscope.operation("x")(3)):
    try:
        wrong()
    except TypeError:
        pass
    else:
        raise AssertionError("no TypeError")
"""


class Missing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = os.path.join(folder.name, "build")
        self.package = os.path.join(self.build, "python", "rlscope")
        shutil.copytree(os.path.dirname(rlscope.__file__), self.package)
        self.library = os.path.join(self.build, "librlscope_annotate.so")
        shutil.copy(os.path.join(os.path.dirname(rlscope.__file__), "..", "..",
                                 "librlscope_annotate.so"), self.library)

    def run_script(self, script):
        environment = dict(os.environ, PYTHONPATH=os.path.join(self.build, "python"))
        done = subprocess.run([sys.executable, "-W", "error", "-c", script], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        return done.stdout.decode().split()

    def test_everything_is_there(self):
        self.assertEqual(self.run_script(SCRIPT), ["2", "5", "rlscope.operation('step')"])
        self.assertNotEqual(self.run_script("import rlscope; print(rlscope.__version__)"), ["0"])

    def test_without_the_library(self):
        os.unlink(self.library)
        self.assertEqual(self.run_script(SCRIPT), ["2", "5", "rlscope.operation('step')"])
        self.assertEqual(self.run_script("import rlscope; print(rlscope.__version__)"), ["0"])

    def test_without_the_extension(self):
        os.unlink(os.path.join(self.package, "_annotate.abi3.so"))
        self.assertEqual(self.run_script(SCRIPT), ["2", "5", "rlscope.operation('step')"])

    def test_with_a_broken_library(self):
        with open(self.library, "wb") as library:
            library.write(b"\x7fELF, but no more")
        self.assertEqual(self.run_script(SCRIPT), ["2", "5", "rlscope.operation('step')"])


if __name__ == "__main__":
    unittest.main()
