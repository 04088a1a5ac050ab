"""The container image: an OCI archive of two layers, the system's libraries and the Debian package.

There is no shell in it and no package manager: the program, what it needs, and the licences.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import time

import deb
import libraries
import release as releases
import sbom
import tree

MEDIA = "application/vnd.oci.image."
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}
FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin")
LOADER = "/lib64/ld-linux-x86-64.so.2"
FILES = {"etc/passwd": "root:x:0:0:root:/:/usr/sbin/nologin\n", "etc/group": "root:x:0:\n"}


def make_base(root, program):
    """The C library and what the program takes from the system, from the files that are installed here."""
    for folder in FOLDERS:
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for name, target in LINKS.items():
        os.symlink(target, os.path.join(root, name))
    for name, text in FILES.items():
        tree.write(os.path.join(root, name), text)
    tree.copy("/usr/lib/os-release", os.path.join(root, "usr/lib/os-release"), 0o644)
    os.symlink("../usr/lib/os-release", os.path.join(root, "etc/os-release"))
    found = {soname: path for soname, path in libraries.resolved(program).items()
             if not deb.CARRIED.match(soname)}
    found[os.path.basename(LOADER)] = LOADER
    carried = []
    for soname, path in sorted(found.items()):
        library = libraries.Library(soname, path)
        folder = "usr/lib64" if path == LOADER else "usr/lib/x86_64-linux-gnu"
        tree.copy(os.path.realpath(path), os.path.join(root, folder, soname), 0o755)
        notice = os.path.join(root, "usr/share/doc", library.name, "copyright")
        tree.copy(library.copyright, notice, 0o644)
        carried.append(library)
    return carried


class Archive:
    """An OCI image layout under construction: blobs by their digest."""

    def __init__(self):
        self.blobs = {}

    def add(self, kind, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs["blobs/sha256/" + digest] = data
        return {"mediaType": MEDIA + kind, "digest": "sha256:" + digest, "size": len(data)}

    def add_json(self, kind, value):
        return self.add(kind, json.dumps(value, sort_keys=True).encode())

    def write(self, path, epoch):
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
            for name, data in sorted(self.blobs.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.mode = len(data), epoch, 0o644
                archive.addfile(info, io.BytesIO(data))


def configuration(release, layers):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch))
    return {"architecture": "amd64", "os": "linux", "created": created,
            "config": {"Entrypoint": ["/usr/bin/rlscope-bpf"],
                       "Cmd": ["monitor", "--listen", "0.0.0.0:9435"], "ExposedPorts": {"9435/tcp": {}},
                       "Env": ["PATH=/usr/bin"], "WorkingDir": "/tmp",
                       "Labels": {"org.opencontainers.image.title": releases.NAME,
                                  "org.opencontainers.image.version": release.version,
                                  "org.opencontainers.image.licenses": "BSD-2-Clause",
                                  "org.opencontainers.image.description": "rlscope-bpf " + releases.SUMMARY}},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()
                                                      for layer in layers]},
            "history": [{"created": created, "created_by": "scripts/package image"} for _ in layers]}


def write_archive(path, release, layers):
    archive = Archive()
    described = [archive.add("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0)) for layer in layers]
    config = archive.add_json("config.v1+json", configuration(release, layers))
    manifest = archive.add_json("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": config, "layers": described})
    manifest["annotations"] = {"org.opencontainers.image.ref.name": release.version}
    name = "%s:%s" % (releases.NAME, release.version)
    other = {"oci-layout": {"imageLayoutVersion": "1.0.0"},
             "index.json": {"schemaVersion": 2, "manifests": [manifest]},
             # For `docker load` of versions that do not know the layout.
             "manifest.json": [{"Config": blob_name(config), "RepoTags": [name],
                                "Layers": [blob_name(layer) for layer in described]}]}
    for file, value in other.items():
        archive.blobs[file] = json.dumps(value, sort_keys=True).encode()
    archive.write(path, release.epoch)


def blob_name(described):
    return "blobs/" + described["digest"].replace(":", "/")


def place_package(root, package):
    """The Debian package's files; what only a whole system can use is left out."""
    tree.run("dpkg-deb", "-x", package, root)
    for folder in ("usr/lib/systemd", "usr/share/bash-completion", "usr/share/zsh", "usr/share/lintian",
                   "usr/share/man", "usr/include", "usr/lib/python3"):
        shutil.rmtree(os.path.join(root, folder))


def build(release, build_folder, output):
    """Writes rlscope-bpf-VERSION.oci.tar and its bill of materials into OUTPUT; returns its path."""
    with tempfile.TemporaryDirectory() as folder:
        package = deb.build(release, build_folder, folder)
        roots = [os.path.join(folder, name) for name in ("base", "package")]
        carried = make_base(roots[0], os.path.join(build_folder, "rlscope-bpf"))
        place_package(roots[1], package)
        layers = []
        for root in roots:
            tree.fix_modes(root, release.epoch)
            layers.append(tree.tar_bytes(root, release.epoch))
        target = os.path.join(output, "%s-%s.oci.tar" % (releases.NAME, release.version))
        write_archive(target, release, layers)
        with open(package + ".spdx.json", encoding="utf-8") as file:
            inner = sbom.contained_in(json.load(file))
    sbom.write(target + ".spdx.json", target, release, [sbom.of_library(library) for library in carried] + inner)
    return target
