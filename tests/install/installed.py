#!/usr/bin/python3
"""installed.py layout SOURCES | library CC | python INTERPRETER | run: one check of what was
installed below RLS_PREFIX, which must work without the build tree."""
import glob
import os
import subprocess
import sys
import tempfile

PREFIX, LIBDIR = os.environ["RLS_PREFIX"], os.environ["RLS_LIBDIR"]
PROGRAM = os.path.join(PREFIX, "bin", "rlscope-bpf")
LIBRARY = os.path.join(PREFIX, LIBDIR, "librlscope_annotate.so")
PACKAGES = os.path.join(PREFIX, LIBDIR, "rlscope-bpf", "python")

C_PROGRAM = """
#include <rlscope_annotate.h>
int main(void)
{
	rlscope_operation_begin("installed");
	rlscope_operation_end();
	return 0;
}
"""

PYTHON_PROGRAM = """
import os, rlscope, rlscope.api
with rlscope.operation("installed"):
    rlscope.set_phase("test")
print(rlscope.__file__)
print(sorted({line.split()[-1] for line in open("/proc/self/maps") if "librlscope_annotate" in line}))
"""


def output(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True, **options)
    assert done.returncode == 0, "%s ended with status %d" % (command[0], done.returncode)
    return done.stdout


def installed_files():
    return sorted(os.path.relpath(os.path.join(folder, name), PREFIX)
                  for folder, _, names in os.walk(PREFIX) for name in names)


def layout(sources):
    pages = [os.path.basename(page) for page in
             glob.glob(os.path.join(sources, "doc", "man", "*.1"))]
    modules = [os.path.basename(module) for module in
               glob.glob(os.path.join(sources, "userspace", "annotate", "python", "rlscope", "*.py"))]
    package = os.path.join(LIBDIR, "rlscope-bpf", "python", "rlscope")
    expected = ["bin/rlscope-bpf", "include/rlscope_annotate.h",
                os.path.join(LIBDIR, "librlscope_annotate.so"),
                os.path.join(package, "_annotate.abi3.so")]
    expected += [os.path.join(package, module) for module in modules]
    expected += [os.path.join("share", "man", "man1", page) for page in pages]
    expected += [os.path.join("share", "doc", "rlscope-bpf", name)
                 for name in ("README.md", "LICENSE", "CHANGES")]
    expected += [os.path.join("share", "doc", "rlscope-bpf", "doc", os.path.basename(document))
                 for document in glob.glob(os.path.join(sources, "doc", "*.md"))]
    expected += ["lib/systemd/system/rlscope-bpf-monitor.service", "etc/rlscope-bpf/monitor.conf"]
    expected += [os.path.join("share", "rlscope-bpf", *name) for name in
                 (("prometheus", "rlscope-alerts.yml"), ("prometheus", "rlscope-scrape.yml"),
                  ("grafana", "rlscope-dashboard.json"), ("kubernetes", "monitor.yaml"),
                  ("kubernetes", "attach.yaml"))]
    optional = {os.path.join(LIBDIR, "librlscope_cupti.so")}
    assert "rlscope-bpf.1" in pages and "__init__.py" in modules
    found = set(installed_files())
    assert set(expected) <= found, "missing: %s" % sorted(set(expected) - found)
    assert found <= set(expected) | optional, "unexpected: %s" % sorted(found - set(expected))
    assert os.environ["RLS_VERSION"] in output(PROGRAM, "--version")


def library(compiler):
    """A C program of somebody else's, made with what is installed and nothing more."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "user.c"), os.path.join(folder, "user")
        with open(source, "w") as file:
            file.write(C_PROGRAM)
        output(compiler, "-std=c99", "-Wall", "-Werror", "-I", os.path.join(PREFIX, "include"),
               source, "-o", program, LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY))
        output(program)


def python(interpreter):
    printed = output(interpreter, "-c", PYTHON_PROGRAM, cwd="/",
                     env=dict(os.environ, PYTHONPATH=PACKAGES)).splitlines()
    assert printed[0].startswith(PACKAGES + "/"), "rlscope came from %s" % printed[0]
    assert printed[1] == str([LIBRARY]), "it loaded %s, not %s" % (printed[1], LIBRARY)


def run():
    """`run` offers the installed library to NVTX, by a path that leads to it."""
    if os.geteuid() != 0:
        print("SKIP: needs root: the installed program records a command")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        offered = output(PROGRAM, "run", "-o", os.path.join(folder, "trace"), "--report",
                         os.path.join(folder, "report"), "--", "/bin/sh", "-c",
                         "echo $NVTX_INJECTION64_PATH", cwd=folder,
                         env={name: value for name, value in os.environ.items()
                              if name != "NVTX_INJECTION64_PATH"}).strip()
    assert offered and os.path.samefile(offered, LIBRARY), "it offered '%s'" % offered


if __name__ == "__main__":
    {"layout": layout, "library": library, "python": python, "run": run}[sys.argv[1]](*sys.argv[2:])
