#!/usr/bin/python3
"""On another architecture CMake refuses, in one sentence, before it looks for anything else."""
import subprocess
import tempfile

import packages

packages.need("cmake", "ninja")
with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run(["cmake", "-G", "Ninja", "-S", packages.SOURCES, "-B", folder, "-DCMAKE_SYSTEM_NAME=Linux",
                           "-DCMAKE_SYSTEM_PROCESSOR=aarch64"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
assert done.returncode, "configured for another architecture"
said = " ".join(done.stderr.split())
assert "rlscope-bpf runs on Linux x86-64, this is Linux aarch64" in said, said
assert said.count("CMake Error") == 1, said
