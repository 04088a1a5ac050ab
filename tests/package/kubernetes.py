#!/usr/bin/python3
"""Kubernetes' files: the image of this version, the capabilities that the image is checked with, and no
privileged container; Kubernetes' own schemas, where kubernetes-validate is installed."""
import glob
import os
import re
import subprocess
import sys

import packages

sys.path.insert(0, os.path.join(packages.SOURCES, "scripts", "packages", "image"))
import bundle  # noqa: E402

FILES = glob.glob(os.path.join(packages.SOURCES, "scripts", "kubernetes", "*.yaml"))
assert len(FILES) == 2
for path in FILES:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    added = re.findall(r"\"(\w+)\"", re.search(r"add: \[(.*)\]", text).group(1))
    assert ["CAP_" + name for name in added] == bundle.CAPABILITIES, path
    assert "image: rlscope-bpf:%s\n" % packages.VERSION in text, path
    assert "privileged" not in text and "hostPID: true" in text, path
    with open(os.path.join(packages.SOURCES, "doc", "install.md"), encoding="utf-8") as file:
        manual = file.read()
    assert "CAP_" + ", CAP_".join(added[:-1]) + " and CAP_" + added[-1] in manual, "doc/install.md"
packages.need("kubernetes-validate")
for path in FILES:
    subprocess.run(["kubernetes-validate", "--strict", path], check=True)
