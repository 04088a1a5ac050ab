#!/usr/bin/python3
"""contents.py KIND: file lists, symbol versions, search paths, licences and the bill of materials."""
import glob
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import packages

import libraries
import tree

sys.path.insert(0, os.path.join(packages.SOURCES, "scripts", "packages", "image"))
import bundle  # noqa: E402

KIND = sys.argv.pop(1)
PACKAGE = packages.path_of(KIND)


def documents(pattern):
    return {os.path.basename(path) for path in glob.glob(os.path.join(packages.SOURCES, pattern))}


class Package(unittest.TestCase):
    """What holds for a package of any kind; `root` is the folder with its files."""

    root = None

    def elves(self):
        return [path for path in tree.files_of(self.root) if tree.is_elf(path)]

    def relative(self):
        return [os.path.relpath(path, self.root) for path in tree.files_of(self.root)]

    def check_nothing_of_the_build(self):
        for path in tree.files_of(self.root):
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    self.assertNotIn(packages.BUILD.encode(), file.read(), path)

    def check_needed(self, system):
        """Every library that a file asks for is one of the system's (a pattern) or carried."""
        carried = {os.path.basename(path) for path in self.elves()}
        for path in self.elves():
            for soname in libraries.needed(path):
                self.assertTrue(soname in carried or re.match(system, soname),
                                "%s needs %s" % (path, soname))

    def check_bill(self, carried):
        """CARRIED: {soname}; each is of a package that the bill names, with its licence's text."""
        with open(PACKAGE + ".spdx.json", encoding="utf-8") as file:
            bill = json.load(file)
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        named = {entry["SPDXID"]: entry for entry in bill["packages"]}
        self.assertEqual(len(named), len(bill["packages"]), "identifiers are unique")
        for relation in bill["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], named)
        sum_of = bill["packages"][0]["checksums"][0]["checksumValue"]
        self.assertEqual(sum_of, tree.run("sha256sum", PACKAGE).split()[0])
        contained = {named[relation["relatedSpdxElement"]]["name"] for relation in bill["relationships"]
                     if relation["relationshipType"] == "CONTAINS"}
        wanted = {libraries.Library(soname, self.found[soname]).name for soname in carried}
        wanted |= {library.name for library in libraries.linked_in(packages.BUILD)}
        self.assertEqual(contained, wanted)
        for name in wanted:
            texts = [path for path in self.relative() if re.search(r"(libraries|licenses)/%s$" % name, path)]
            self.assertTrue(texts, "the licence of %s is in the package" % name)
        return bill

    @property
    def found(self):
        return libraries.resolved(os.path.join(packages.BUILD, "rlscope-bpf"))


class Deb(Package):
    PRIVATE = "usr/lib/rlscope-bpf"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = cls.folder.name
        subprocess.run(["dpkg-deb", "-R", PACKAGE, cls.root], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_files(self):
        expected = {"usr/bin/rlscope-bpf", "usr/include/rlscope_annotate.h", "etc/rlscope-bpf/monitor.conf",
                    "usr/lib/systemd/system/rlscope-bpf-monitor.service",
                    "usr/share/bash-completion/completions/rlscope-bpf",
                    "usr/share/zsh/vendor-completions/_rlscope-bpf", "usr/share/lintian/overrides/rlscope-bpf",
                    "usr/lib/python3/dist-packages/rlscope"}
        expected |= {"DEBIAN/" + name for name in ("control", "conffiles", "md5sums", "postinst", "postrm", "prerm")}
        expected |= {os.path.join(self.PRIVATE, name) for name in
                     ("librlscope_annotate.so", "librlscope_cupti.so", "libbpf.so.1")}
        expected |= {os.path.join(self.PRIVATE, "python/rlscope", name) for name in
                     documents("userspace/annotate/python/rlscope/*.py") | {"_annotate.abi3.so"}}
        expected |= {"usr/share/man/man1/%s.gz" % page for page in documents("doc/man/*.1")}
        expected |= {"usr/share/doc/rlscope-bpf/" + name for name in
                     ("README.md", "changelog.gz", "changelog.Debian.gz", "copyright", "libraries/libbpf1")}
        expected |= {"usr/share/doc/rlscope-bpf/libraries/" + library.name
                     for library in libraries.linked_in(packages.BUILD)}
        expected |= {"usr/share/doc/rlscope-bpf/doc/" + name for name in documents("doc/*.md")}
        expected |= {"usr/share/rlscope-bpf/" + name for name in
                     ("prometheus/rlscope-alerts.yml", "prometheus/rlscope-scrape.yml",
                      "grafana/rlscope-dashboard.json", "kubernetes/monitor.yaml", "kubernetes/attach.yaml")}
        found = {path for path in self.relative() if not re.search("[zZ]y(dis|core)", path)}
        self.assertEqual(found ^ expected, set())

    def test_modes(self):
        for path in tree.files_of(self.root):
            mode = os.lstat(path).st_mode
            self.assertFalse(mode & (stat.S_ISUID | stat.S_ISGID), path)
            if stat.S_ISREG(mode):
                self.assertFalse(mode & 0o022, path)

    def test_program_finds_what_it_carries(self):
        self.check_nothing_of_the_build()
        self.check_needed(r"lib(c|m|z|lzma|elf|protobuf-c|sqlite3|microhttpd|crypt|jansson)\.so|ld-linux")
        program = os.path.join(self.root, "usr/bin/rlscope-bpf")
        self.assertEqual(libraries.run_path(program), "/" + self.PRIVATE)
        for path in self.elves():
            for folder in libraries.run_path(path).split(":"):
                self.assertTrue(not folder or folder.startswith(("$ORIGIN", "/usr/lib/rlscope-bpf")), path)

    def test_extension_finds_the_library_through_the_link(self):
        link = os.path.join(self.root, "usr/lib/python3/dist-packages/rlscope")
        folders = libraries.run_path(os.path.join(link, "_annotate.abi3.so")).split(":")
        # As the loader does it: the name that it was loaded by, without links resolved.
        places = [os.path.normpath(folder.replace("$ORIGIN", link)) for folder in folders]
        self.assertTrue(any(os.path.exists(os.path.join(place, "librlscope_annotate.so")) for place in places))

    def test_symbol_versions(self):
        """No newer C library than Debian 12's, and no newer than what the package asks for."""
        needs = max(version for path in self.elves() for version in libraries.versions(path))
        self.assertLessEqual(needs, (2, 36))
        control = self.control()
        declared = re.search(r"libc6 \(>= ([0-9.]+)\)", control["Depends"]).group(1)
        self.assertGreaterEqual(tuple(int(part) for part in declared.split(".")), needs)

    def control(self):
        with open(os.path.join(self.root, "DEBIAN/control"), encoding="utf-8") as file:
            return dict(re.findall(r"^([\w-]+): (.*)$", file.read(), re.M))

    def test_control(self):
        control = self.control()
        self.assertEqual(control["Version"], packages.VERSION + "-1")
        # Names that the next release of Debian changed without need are provided there; these are not.
        self.assertNotRegex(control["Depends"], "libbpf|libzy")
        with open(os.path.join(self.root, "DEBIAN/conffiles"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["/etc/rlscope-bpf/monitor.conf"])

    def test_unit_is_off_and_hardened(self):
        with open(os.path.join(self.root, "usr/lib/systemd/system/rlscope-bpf-monitor.service")) as file:
            unit = file.read()
        self.assertIn("ExecStart=/usr/bin/rlscope-bpf monitor --config /etc/rlscope-bpf/monitor.conf\n", unit)
        for setting in ("NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=CAP_BPF ",
                        "SystemCallFilter=", "MemoryDenyWriteExecute=yes"):
            self.assertIn("\n" + setting, unit)
        with open(os.path.join(self.root, "DEBIAN/postinst")) as file:
            script = file.read()
        self.assertNotRegex(script, r"deb-systemd-invoke (start|restart) |systemctl (enable|start)")

    def test_bill(self):
        carried = {os.path.basename(path) for path in self.elves()
                   if os.path.dirname(path).endswith(self.PRIVATE)} & set(self.found)
        self.assertIn("libbpf.so.1", carried)
        bill = self.check_bill(carried)
        depends = {re.split(r"[ (]", item)[0] for item in self.control()["Depends"].split(", ")}
        self.assertLessEqual(depends, {entry["name"] for entry in bill["packages"]})

    def test_changelog(self):
        text = tree.run("dpkg-parsechangelog", "-l", self.unpacked("changelog.Debian.gz"), "-S", "Changes")
        with open(os.path.join(packages.SOURCES, "CHANGES"), encoding="utf-8") as file:
            first = re.search(r"^Added\n  (.*)$", file.read(), re.M).group(1)
        self.assertIn(first[:40], text)

    def unpacked(self, name):
        target = os.path.join(self.folder.name, "DEBIAN", "unpacked")
        tree.write(target, tree.run("zcat", os.path.join(self.root, "usr/share/doc/rlscope-bpf", name)))
        self.addCleanup(os.unlink, target)
        return target


class Wheel(Package):
    DIST_INFO = "rlscope_bpf-%s.dist-info" % packages.VERSION
    # What PEP 600 grants.
    GRANTED = r"lib(c|m|z)\.so|ld-linux-x86-64\.so\.2$|linux-vdso"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = cls.folder.name
        with zipfile.ZipFile(PACKAGE) as archive:
            for info in archive.infolist():
                os.chmod(archive.extract(info, cls.root), info.external_attr >> 16 & 0o777)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_files(self):
        expected = {"rlscope_bpf/" + name for name in
                    ("__init__.py", "__main__.py", "rlscope-bpf", "librlscope_annotate.so", "librlscope_cupti.so")}
        expected |= {"rlscope/" + name for name in
                     documents("userspace/annotate/python/rlscope/*.py") | {"_annotate.abi3.so"}}
        expected |= {"rlscope_bpf-%s.data/data/share/man/man1/%s" % (packages.VERSION, page)
                     for page in documents("doc/man/*.1")}
        expected |= {os.path.join(self.DIST_INFO, name) for name in
                     ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE")}
        found = {path for path in self.relative()
                 if not path.startswith(("rlscope_bpf.libs/", self.DIST_INFO + "/licenses/lib",
                                         self.DIST_INFO + "/licenses/zlib"))}
        self.assertEqual(found ^ expected, set())
        self.assertTrue(os.access(os.path.join(self.root, "rlscope_bpf/rlscope-bpf"), os.X_OK))

    def test_record_is_complete(self):
        with open(os.path.join(self.root, self.DIST_INFO, "RECORD"), encoding="utf-8") as file:
            lines = [line.rsplit(",", 2) for line in file.read().splitlines()]
        self.assertEqual({line[0] for line in lines}, set(self.relative()))
        for path, digest, size in lines:
            if digest:
                self.assertEqual(os.path.getsize(os.path.join(self.root, path)), int(size))

    def test_nothing_else_is_needed(self):
        self.check_nothing_of_the_build()
        self.check_needed(self.GRANTED)
        for path in self.elves():
            for folder in libraries.run_path(path).split(":"):
                self.assertTrue(not folder or folder.startswith("$ORIGIN"), path)

    def test_program_finds_what_it_carries(self):
        """The loader takes each library from the wheel, though this system may have it too."""
        for name in ("rlscope_bpf/rlscope-bpf", "rlscope/_annotate.abi3.so"):
            for soname, path in libraries.resolved(os.path.join(self.root, name)).items():
                self.assertTrue(path.startswith(self.root) or re.match(self.GRANTED, soname), soname)
        printed = tree.run(os.path.join(self.root, "rlscope_bpf/rlscope-bpf"), "--version")
        self.assertEqual(printed, "rlscope-bpf %s\n" % packages.VERSION)

    def test_tag_is_the_lowest_possible(self):
        needs = max(version for path in self.elves() for version in libraries.versions(path))
        tagged = tuple(int(part) for part in re.search(r"manylinux_(\d+)_(\d+)_", PACKAGE).groups())
        self.assertLessEqual(needs, tagged)
        # The binaries of Debian 12; of newer systems the tag is newer too.
        if tree.run("ldd", "--version").split("\n")[0].endswith(" 2.36"):
            self.assertEqual(tagged, (2, 34))
        with open(os.path.join(self.root, self.DIST_INFO, "WHEEL"), encoding="utf-8") as file:
            self.assertIn("\nTag: py3-none-manylinux_%d_%d_x86_64\n" % tagged, file.read())

    def test_bill(self):
        self.check_bill({os.path.basename(path) for path in self.elves() if "/rlscope_bpf.libs/" in path})


class Image(Package):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = cls.folder.name
        cls.config = bundle.unpack(PACKAGE, cls.root)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_files(self):
        expected = {"usr/bin/rlscope-bpf", "usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/libc.so.6",
                    "usr/lib/rlscope-bpf/libbpf.so.1", "usr/lib/rlscope-bpf/librlscope_annotate.so",
                    "etc/os-release", "etc/rlscope-bpf/monitor.conf", "usr/share/doc/rlscope-bpf/copyright"}
        found = set(self.relative())
        self.assertLessEqual(expected, found)
        # Programs: one. No shell, no package manager.
        programs = [path for path in found if path.startswith(("usr/bin/", "usr/sbin/"))]
        self.assertEqual(programs, ["usr/bin/rlscope-bpf"])
        self.assertLess(sum(os.lstat(path).st_size for path in tree.files_of(self.root)), 80e6)

    def test_nothing_else_is_needed(self):
        self.check_nothing_of_the_build()
        self.check_needed("^$")

    def test_program_runs_without_the_system(self):
        """With this system's libraries out of the way: the image's own loader, and its folders only."""
        folders = [os.path.join(self.root, "usr/lib", name) for name in ("x86_64-linux-gnu", "rlscope-bpf")]
        loader = os.path.join(self.root, "usr/lib64/ld-linux-x86-64.so.2")
        program = os.path.join(self.root, "usr/bin/rlscope-bpf")
        listed = tree.run(loader, "--inhibit-cache", "--library-path", ":".join(folders), "--list", program)
        for path in re.findall(r"=> (/\S+)", listed):
            self.assertTrue(path.startswith(self.root), path)
        self.assertNotIn("not found", listed)

    def test_configuration(self):
        self.assertEqual(self.config["Entrypoint"], ["/usr/bin/rlscope-bpf"])
        self.assertEqual(self.config["Cmd"][0], "monitor")
        self.assertEqual(self.config["Labels"]["org.opencontainers.image.version"], packages.VERSION)

    def test_archive(self):
        """Each blob has the digest and the size by which it is named."""
        with tarfile.open(PACKAGE) as archive:
            names = archive.getnames()
            for name in names:
                if name.startswith("blobs/"):
                    data = archive.extractfile(name).read()
                    self.assertEqual(os.path.basename(name), hashlib.sha256(data).hexdigest())
            self.assertLessEqual({"oci-layout", "index.json", "manifest.json"}, set(names))

    def test_bill(self):
        with open(PACKAGE + ".spdx.json", encoding="utf-8") as file:
            named = {entry["name"] for entry in json.load(file)["packages"]}
        for library in libraries.linked_in(packages.BUILD) + [
                libraries.Library(soname, path) for soname, path in self.found.items()]:
            self.assertIn(library.name, named)


if __name__ == "__main__":
    packages.need("dpkg-deb", "readelf", "objdump")
    suite = unittest.defaultTestLoader.loadTestsFromTestCase({"deb": Deb, "wheel": Wheel, "image": Image}[KIND])
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
