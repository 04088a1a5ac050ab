#!/usr/bin/env python3
"""style.py format SOURCES | style.py tidy SOURCES BUILD: the code holds to .clang-format, .clang-tidy.

Both use the versions that Debian 12 has (14): later ones lay some lines out otherwise. Without
them the check is skipped (77), and says so.
"""
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

VERSION = "14"
ROOTS = ("analysis", "bpf", "userspace", "cupti_bridge", "tests")


def tool(name):
    for candidate in ("%s-%s" % (name, VERSION), name):
        path = shutil.which(candidate)
        if path and " %s." % VERSION in subprocess.run([path, "--version"], capture_output=True,
                                                       text=True, check=False).stdout:
            return path
    print("skipped: %s %s is not installed" % (name, VERSION))
    sys.exit(77)


def over_all(command, files):
    """Runs command with each file on all CPUs; the output of those that fail."""
    def run(file):
        result = subprocess.run(command + [file], capture_output=True, text=True, check=False)
        return (result.stdout + result.stderr).strip() if result.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(run, files) if text]


def sources(top, roots):
    return sorted(os.path.join(folder, name) for root in roots
                  for folder, _, names in os.walk(os.path.join(top, root))
                  for name in names if name.endswith((".c", ".h")))


def check_format(top):
    files = sources(top, ROOTS)
    return len(files), over_all([tool("clang-format"), "--dry-run", "--Werror"], files)


def check_tidy(top, build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    compiled = {os.path.normpath(os.path.join(entry["directory"], entry["file"]))
                for entry in commands}
    files = [path for path in sources(top, ("analysis", "userspace", "cupti_bridge"))
             if os.path.abspath(path) in compiled]
    return len(files), over_all([tool("clang-tidy"), "-p", build, "--quiet"], files)


def main():
    what, arguments = sys.argv[1], [os.path.abspath(path) for path in sys.argv[2:]]
    count, faults = {"format": check_format, "tidy": check_tidy}[what](*arguments)
    for fault in faults:
        print(fault[:3000])
    print("%d files, %d with faults" % (count, len(faults)))
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
