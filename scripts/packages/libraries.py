"""Shared libraries that a package carries: which, from which Debian package, under which licence."""
import os
import re
import shutil
import subprocess

from tree import run

# How each library's licence is called in SPDX; its full text is in the package.
LICENCES = {
    "libbpf": "LGPL-2.1-only OR BSD-2-Clause", "libzydis": "MIT", "libzycore": "MIT",
    "libelf": "LGPL-3.0-or-later OR GPL-2.0-or-later", "liblzma": "0BSD OR LicenseRef-public-domain",
    "zlib": "Zlib", "libprotobuf-c": "BSD-2-Clause", "libsqlite3": "blessing",
    "libmicrohttpd": "LGPL-2.1-or-later", "libcrypt": "LGPL-2.1-or-later", "libjansson": "MIT",
    "libgnutls": "LGPL-2.1-or-later", "libp11-kit": "BSD-3-Clause",
    "libidn2": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later", "libtasn1": "LGPL-2.1-or-later",
    "libnettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libhogweed": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libc6": "LGPL-2.1-or-later", "libgmp": "LGPL-3.0-or-later OR GPL-2.0-or-later", "libffi": "MIT", "libzstd": "BSD-3-Clause",
}


class Library:
    """A shared library of this system: soname, path, and the package that has it."""

    def __init__(self, soname, path):
        self.soname, self.path = soname, path
        self.package = package_of(path)
        self.name = self.package.split(":")[0]
        self.is_static = path.endswith(".a")
        self.version = run("dpkg-query", "-W", "-f", "${Version}", self.package)
        self.source = run("dpkg-query", "-W", "-f", "${source:Package}", self.package)
        self.copyright = "/usr/share/doc/%s/copyright" % self.name
        names = [name for name in LICENCES if self.package.startswith(name)]
        if not names:
            raise ValueError("the licence of %s is not known: add it to LICENCES" % self.package)
        self.licence = LICENCES[max(names, key=len)]


def package_of(path):
    """/lib may be a link to /usr/lib, and dpkg knows one of the names."""
    real = os.path.realpath(path)
    for name in (path, real, real.replace("/usr/lib/", "/lib/", 1)):
        found = subprocess.run(["dpkg-query", "-S", name], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        if not found.returncode:
            return found.stdout.split(": ")[0].split(",")[0]
    raise ValueError("%s is of no package: build packages with Debian's libraries" % path)


def needed(path):
    """Sonames that an ELF file asks for."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))


def run_path(path):
    found = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "-dW", path))
    return found.group(1) if found else ""


def resolved(path):
    """{soname: path} of all that the loader finds for it here."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", path), re.M))


def versions(path, prefix="GLIBC_"):
    """Symbol versions of that prefix that it needs, as tuples of numbers."""
    found = re.findall(r"\(%s([0-9.]+)\)" % prefix, run("objdump", "-T", path))
    return {tuple(int(part) for part in version.split(".")) for version in found}


def carry(wanted, program, folder):
    """Copies libraries that PROGRAM needs (WANTED says by soname which) into FOLDER: [Library]."""
    carried = []
    os.makedirs(folder, exist_ok=True)
    for soname, path in sorted(resolved(program).items()):
        if wanted(soname):
            library = Library(soname, path)
            target = os.path.join(folder, soname)
            shutil.copyfile(path, target)
            os.chmod(target, 0o644)
            carried.append(library)
    return carried


def linked_in(build):
    """[Library] of those that are in the program itself: libcrypt, where its static form was found."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(r"^RLS_CRYPT_LIBRARY:\w+=(/.*)$", file.read(), re.M)
    return [Library("libcrypt.a", found.group(1))] if found else []
