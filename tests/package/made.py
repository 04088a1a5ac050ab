#!/usr/bin/python3
"""made.py KIND: the package is made twice, with the same bytes."""
import os
import shutil
import subprocess
import sys

import packages


def make(kind, run):
    done = subprocess.run([os.path.join(packages.SOURCES, "scripts", "package"), "--build", packages.BUILD,
                    "--output", os.path.join(packages.FOLDER, run, kind), kind],
                          stderr=subprocess.PIPE, text=True)
    if "of no package" in done.stderr:
        print("SKIP: " + done.stderr)
        sys.exit(77)
    assert not done.returncode, done.stderr


def content(kind, run, suffix):
    with open(packages.path_of(kind, run) + suffix, "rb") as file:
        return file.read()


packages.need("dpkg-deb", "dpkg-shlibdeps", "patchelf")
for run in ("first", "second"):
    shutil.rmtree(os.path.join(packages.FOLDER, run, sys.argv[1]), ignore_errors=True)
    make(sys.argv[1], run)
for suffix in ("", ".spdx.json"):
    assert content(sys.argv[1], "first", suffix) == content(sys.argv[1], "second", suffix), \
        "two runs made different files *%s" % suffix
