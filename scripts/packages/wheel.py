"""The wheel: one for CPython 3.8 and later on any distribution whose C library is new enough.

What the program needs beyond the libraries that every such distribution has is beside it. The tag names
the oldest C library that the symbol versions of all files allow.
"""
import base64
import glob
import hashlib
import os
import re
import tempfile
import time
import zipfile

import libraries
import release as releases
import sbom
import tree

HERE = os.path.dirname(os.path.abspath(__file__))
# Of the libraries that PEP 600 takes for granted those that the program uses.
GRANTED = re.compile(r"lib(c|m|z|dl|pthread|rt)\.so|ld-linux")
# The C library's versions from which manylinux tags are made; others would be legal, but unusual.
TAGGED = [(2, 28), (2, 31), (2, 34), (2, 35), (2, 36), (2, 37), (2, 38), (2, 39), (2, 40), (2, 41)]
LIBRARIES = "rlscope_bpf.libs"

METADATA = """Metadata-Version: 2.1
Name: rlscope-bpf
Version: {version}
Summary: {summary}
Author: {maintainer}
License: BSD-2-Clause
Classifier: Environment :: Console
Classifier: License :: OSI Approved :: BSD License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{description}"""

DESCRIPTION = """# rlscope-bpf

rlscope-bpf {summary}.

```
sudo $(which rlscope-bpf) attach --pid PID               # until Ctrl-C; prints the report
sudo $(which rlscope-bpf) run -- python3 train.py        # from the first instruction
rlscope-bpf report rlscope-PID.trace                     # again, later, without root
```

Name operations in the script; it also runs without a profiler:

```python
import rlscope

with rlscope.operation("inference"):
    action = policy(observation)
```

It needs Linux on x86-64, kernel 5.15 or later with BTF, and root: `rlscope-bpf check` says what a host
lacks. The manual is `man rlscope-bpf`.
"""


def place_python(root, installed):
    """The package `rlscope`, and `rlscope_bpf` with the program and what targets load."""
    package = glob.glob(os.path.join(installed, "usr/lib*/**/rlscope-bpf/python/rlscope"), recursive=True)[0]
    for path in tree.files_of(package):
        tree.copy(path, os.path.join(root, "rlscope", os.path.basename(path)), 0o644)
    tree.run("patchelf", "--set-rpath", "$ORIGIN/../rlscope_bpf", os.path.join(root, "rlscope/_annotate.abi3.so"))
    program = os.path.join(root, "rlscope_bpf/rlscope-bpf")
    tree.copy(os.path.join(installed, "usr/bin/rlscope-bpf"), program, 0o755)
    tree.run("patchelf", "--set-rpath", "$ORIGIN/../" + LIBRARIES, program)
    for name in ("librlscope_annotate.so", "librlscope_cupti.so"):
        found = glob.glob(os.path.join(installed, "usr/lib*/**", name), recursive=True)
        if found:
            tree.copy(found[0], os.path.join(root, "rlscope_bpf", name), 0o644)
    for name in ("__init__.py", "__main__.py"):
        tree.copy(os.path.join(HERE, "wheel", "rlscope_bpf", name), os.path.join(root, "rlscope_bpf", name), 0o644)


def carry_libraries(root, program):
    folder = os.path.join(root, LIBRARIES)
    carried = libraries.carry(lambda soname: not GRANTED.match(soname), program, folder)
    for library in carried:
        tree.run("patchelf", "--set-rpath", "$ORIGIN", os.path.join(folder, library.soname))
    return carried


def platform_tag(root):
    needs = max(version for path in tree.files_of(root) if tree.is_elf(path)
                for version in libraries.versions(path))
    return "manylinux_%d_%d_x86_64" % next(tag for tag in TAGGED if tag >= needs)


def write_metadata(root, release, tag, carried):
    name = "rlscope_bpf-%s" % release.version
    folder = os.path.join(root, name + ".dist-info")
    values = {"version": release.version, "summary": releases.SUMMARY, "maintainer": releases.MAINTAINER}
    tree.write(os.path.join(folder, "METADATA"),
               METADATA.format(description=DESCRIPTION.format(**values), **values))
    tree.write(os.path.join(folder, "WHEEL"), "Wheel-Version: 1.0\nGenerator: rlscope-bpf scripts/package\n"
               "Root-Is-Purelib: false\nTag: py3-none-%s\n" % tag)
    tree.write(os.path.join(folder, "entry_points.txt"), "[console_scripts]\nrlscope-bpf = rlscope_bpf:main\n")
    tree.write(os.path.join(folder, "top_level.txt"), "rlscope\nrlscope_bpf\n")
    tree.copy(os.path.join(release.sources, "LICENSE"), os.path.join(folder, "licenses/LICENSE"), 0o644)
    for library in carried:
        tree.copy(library.copyright, os.path.join(folder, "licenses", library.name), 0o644)
    for page in glob.glob(os.path.join(release.sources, "doc/man/*.1")):
        tree.copy(page, os.path.join(root, name + ".data/data/share/man/man1", os.path.basename(page)), 0o644)
    write_record(root, folder)


def write_record(root, folder):
    lines = []
    for path in tree.files_of(root):
        with open(path, "rb") as file:
            data = file.read()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append("%s,sha256=%s,%d\n" % (os.path.relpath(path, root), digest, len(data)))
    record = os.path.join(folder, "RECORD")
    tree.write(record, "".join(lines) + os.path.relpath(record, root) + ",,\n")


def write_zip(root, target, epoch):
    # The description of the wheel last, as installers read the end first.
    paths = sorted(tree.files_of(root), key=lambda path: (".dist-info" in path, path))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in paths:
            info = zipfile.ZipInfo(os.path.relpath(path, root), time.gmtime(epoch)[:6])
            info.external_attr = (0o100755 if os.stat(path).st_mode & 0o100 else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            with open(path, "rb") as file:
                archive.writestr(info, file.read())


def build(release, build_folder, output):
    """Writes rlscope_bpf-VERSION-py3-none-TAG.whl and its bill of materials; returns its path."""
    with tempfile.TemporaryDirectory() as folder:
        installed, root = os.path.join(folder, "installed"), os.path.join(folder, "root")
        tree.install(build_folder, installed)
        place_python(root, installed)
        carried = carry_libraries(root, os.path.join(build_folder, "rlscope-bpf"))
        carried += libraries.linked_in(build_folder)
        tag = platform_tag(root)
        write_metadata(root, release, tag, carried)
        tree.fix_modes(root, release.epoch)
        target = os.path.join(output, "rlscope_bpf-%s-py3-none-%s.whl" % (release.version, tag))
        write_zip(root, target, release.epoch)
    sbom.write(target + ".spdx.json", target, release, [sbom.of_library(library) for library in carried])
    return target
