"""bundle.py IMAGE FOLDER ARGUMENT...: a bundle that runc and crun run, from the OCI archive, with ARGUMENTs
instead of its own command. It has the capabilities and the namespaces that doc/install.md names."""
import json
import os
import sys
import tarfile

# What recording needs, and nothing more: BPF programs, probes, and jobs of other users with their files.
CAPABILITIES = ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"]
MOUNTS = [("/proc", "proc", "proc", []), ("/sys", "/sys", "bind", ["rbind", "ro"]),
          ("/tmp", "tmpfs", "tmpfs", []), ("/run", "tmpfs", "tmpfs", []), ("/dev", "tmpfs", "tmpfs", ["nosuid"])]


def unpack(image, folder):
    """Returns the image's configuration."""
    with tarfile.open(image) as archive:
        def blob(described):
            return archive.extractfile("blobs/" + described["digest"].replace(":", "/"))

        manifest = json.load(blob(json.load(archive.extractfile("index.json"))["manifests"][0]))
        for layer in manifest["layers"]:
            with tarfile.open(fileobj=blob(layer), mode="r:gz") as files:
                files.extractall(folder, numeric_owner=True)
        return json.load(blob(manifest["config"]))["config"]


def main(image, folder, *arguments):
    config = unpack(image, os.path.join(folder, "rootfs"))
    command = config["Entrypoint"] + (list(arguments) or config["Cmd"])
    names = ("bounding", "effective", "permitted")
    bundle = {
        "ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": True},
        "process": {"args": command, "env": config["Env"], "cwd": config["WorkingDir"],
                    "user": {"uid": 0, "gid": 0}, "noNewPrivileges": True,
                    "capabilities": {name: CAPABILITIES for name in names},
                    "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 16384, "hard": 16384}]},
        "mounts": [{"destination": where, "source": source, "type": kind, "options": options}
                   for where, source, kind, options in MOUNTS],
        # The host's processes and network; files are the image's own.
        "linux": {"namespaces": [{"type": "mount"}, {"type": "ipc"}, {"type": "uts"}]}}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(bundle, file, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
