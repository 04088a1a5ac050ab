"""The Debian package: one for Debian 12 and 13.

Libraries of which the two have versions that do not go together are carried in /usr/lib/rlscope-bpf,
where the program looks first; for all others it depends on Debian's packages.
"""
import glob
import os
import re
import shutil
import tempfile
import textwrap
import time

import completion
import libraries
import release as releases
import sbom
import tree

HERE = os.path.dirname(os.path.abspath(__file__))
# Debian 12's libbpf is too old (what is needed is in its backports only); Zydis' name differs.
CARRIED = re.compile(r"lib(bpf|Zydis|Zycore)\.so")
PRIVATE = "usr/lib/rlscope-bpf"
DOCUMENTS = "usr/share/doc/rlscope-bpf"
REVISION = "1"


def place_libraries(root, installed):
    """What targets load and the Python package, from INSTALLED to the private folder; the public one of
    Python leads there. The extension finds the library from both (its RUNPATH)."""
    private = make(root, PRIVATE)
    for path in glob.glob(os.path.join(installed, "*.so")):
        shutil.move(path, private)
    if not os.path.samefile(os.path.join(installed, "rlscope-bpf"), private):
        shutil.move(os.path.join(installed, "rlscope-bpf", "python"), private)
        os.removedirs(os.path.join(installed, "rlscope-bpf"))
    for path in tree.files_of(private):
        os.chmod(path, 0o644)
    os.symlink("../../rlscope-bpf/python/rlscope",
               os.path.join(make(root, "usr/lib/python3/dist-packages"), "rlscope"))


def place_files(root, libdir, program):
    """From where CMake installs to where Debian's rules have things."""
    place_libraries(root, os.path.join(root, "usr", libdir))
    for page in glob.glob(os.path.join(root, "usr/share/man/man1/*.1")):
        tree.compress(page)
    os.unlink(os.path.join(root, DOCUMENTS, "LICENSE"))
    os.rename(os.path.join(root, DOCUMENTS, "CHANGES"), os.path.join(root, DOCUMENTS, "changelog"))
    tree.compress(os.path.join(root, DOCUMENTS, "changelog"))
    tree.write(os.path.join(root, "usr/share/bash-completion/completions/rlscope-bpf"), completion.bash(program))
    tree.write(os.path.join(root, "usr/share/zsh/vendor-completions/_rlscope-bpf"), completion.zsh(program))
    shutil.copyfile(os.path.join(HERE, "deb", "lintian-overrides"),
                    os.path.join(make(root, "usr/share/lintian/overrides"), "rlscope-bpf"))


def make(*parts):
    path = os.path.join(*parts)
    os.makedirs(path, exist_ok=True)
    return path


def debian_changelog(release):
    """CHANGES in the form of Debian's changelogs."""
    lines = []
    for version, date, sections in release.history:
        lines += ["%s (%s-%s) unstable; urgency=medium" % (releases.NAME, version, REVISION), ""]
        for section, entries in sections.items():
            lines.append("  * %s:" % section)
            for entry in entries:
                lines += textwrap.wrap(entry, 76, initial_indent="    - ", subsequent_indent="      ")
        stamp = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(releases.seconds_of(date)))
        lines += ["", " -- %s  %s" % (releases.MAINTAINER, stamp), ""]
    return "\n".join(lines)


def copyright_file(release, carried):
    """Debian's form of LICENSE, and what the carried libraries' own packages say."""
    with open(os.path.join(HERE, "deb", "copyright"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(release.sources, "LICENSE"), encoding="utf-8") as file:
        licence = file.read()
    terms = licence[licence.index("Redistribution and use"):].strip()
    indented = "\n".join(" " + line if line.strip() else " ." for line in terms.split("\n"))
    text = text.replace("@BSD-2-Clause@", indented)
    return text + "".join(
        "\nFiles: %s\nCopyright: see /%s/libraries/%s\nLicense: %s\n The text is in /%s/libraries/%s.\n" % (
            "/usr/bin/rlscope-bpf" if library.is_static else "/%s/%s" % (PRIVATE, library.soname), DOCUMENTS,
            library.name, library.licence.replace(" OR ", " or "), DOCUMENTS, library.name)
        for library in carried)


def write_documents(root, release, carried):
    tree.write(os.path.join(root, DOCUMENTS, "changelog.Debian"), debian_changelog(release))
    tree.compress(os.path.join(root, DOCUMENTS, "changelog.Debian"))
    tree.write(os.path.join(root, DOCUMENTS, "copyright"), copyright_file(release, carried))
    for library in carried:
        tree.copy(library.copyright,
                  os.path.join(root, DOCUMENTS, "libraries", library.name), 0o644)


def dependencies(root):
    """What dpkg-shlibdeps finds, without the packages of what is carried."""
    with tempfile.TemporaryDirectory() as folder:
        tree.write(os.path.join(folder, "debian/control"), "Source: rlscope-bpf\n\nPackage: rlscope-bpf\nArchitecture: amd64\n")
        elves = [path for path in tree.files_of(root) if tree.is_elf(path)]
        line = tree.run("dpkg-shlibdeps", "-O", "-l" + os.path.join(root, PRIVATE),
                        "--ignore-missing-info", *elves, cwd=folder)
    found = line.strip().split("=", 1)[1].split(", ")
    return ", ".join(sorted(item for item in found if not re.match(r"lib(bpf|zydis|zycore)", item)))


def write_control(root, release):
    control = make(root, "DEBIAN")
    installed = sum(os.lstat(path).st_size for path in tree.files_of(root)) // 1024
    with open(os.path.join(HERE, "deb", "control"), encoding="utf-8") as file:
        text = file.read()
    for name, value in (("VERSION", "%s-%s" % (release.version, REVISION)), ("DEPENDS", dependencies(root)),
                        ("MAINTAINER", releases.MAINTAINER), ("SIZE", str(installed)),
                        ("SUMMARY", releases.SUMMARY)):
        text = text.replace("@%s@" % name, value)
    conffiles = sorted("/" + os.path.relpath(path, root) for path in tree.files_of(os.path.join(root, "etc")))
    tree.write(os.path.join(control, "control"), text)
    tree.write(os.path.join(control, "conffiles"), "".join(path + "\n" for path in conffiles))
    for script in ("postinst", "prerm", "postrm"):
        tree.copy(os.path.join(HERE, "deb", script), os.path.join(control, script), 0o755)
    sums = ["%s  %s\n" % (digest(path), os.path.relpath(path, root)) for path in tree.files_of(root)
            if not os.path.islink(path) and not path.startswith((control, os.path.join(root, "etc")))]
    tree.write(os.path.join(control, "md5sums"), "".join(sums))


def digest(path):
    return tree.run("md5sum", path).split()[0].lstrip("\\")


def build(release, build_folder, output):
    """Writes rlscope-bpf_VERSION_amd64.deb and its bill of materials into OUTPUT; returns its path."""
    name = "%s_%s-%s_amd64.deb" % (releases.NAME, release.version, REVISION)
    with tempfile.TemporaryDirectory() as folder:
        root = make(folder, "root")
        tree.install(build_folder, root)
        program = os.path.join(build_folder, "rlscope-bpf")
        place_files(root, libdir_of(build_folder), program)
        installed = os.path.join(root, "usr/bin/rlscope-bpf")
        carried = libraries.carry(CARRIED.match, program, os.path.join(root, PRIVATE))
        contained = carried + libraries.linked_in(build_folder)
        tree.run("patchelf", "--set-rpath", "/" + PRIVATE, installed)
        write_documents(root, release, contained)
        write_control(root, release)
        tree.fix_modes(root, release.epoch)
        target = os.path.join(output, name)
        tree.run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", root, target,
                 env=dict(os.environ, SOURCE_DATE_EPOCH=str(release.epoch)))
        depends = dependencies(root)
    sbom.write(target + ".spdx.json", target, release, [sbom.of_library(library) for library in contained],
               [depended_package(item) for item in depends.split(", ")])
    return target


def depended_package(item):
    name, version = re.match(r"(\S+)(?: \((.*)\))?", item).groups()
    return sbom.package(name, version or "any", "NOASSERTION")


def libdir_of(build_folder):
    with open(os.path.join(build_folder, "CMakeCache.txt"), encoding="utf-8") as file:
        return re.search(r"^CMAKE_INSTALL_LIBDIR:\w+=(.*)$", file.read(), re.M).group(1)
