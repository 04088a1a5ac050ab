#!/usr/bin/python3
"""pins.py: scripts/pins is whole (each package that a section wants is there, pip's with hashes), no script fetches
around it, and `drift` says where something differs. Runs in scripts/."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def normal(name):
    return re.sub(r"[-_.]+", "-", re.split("[<>=]", name)[0]).lower()


def sections():
    parts = re.split(r"^\[(.*)\]\n", pathlib.Path("pins").read_text(), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def shell(command):
    done = subprocess.run(["bash", "-c", ". ./lib.sh; " + command], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def check_section(name, text):
    wants = [word for line in re.findall(r"^# wants (.*)", text, re.M) for word in line.split() if "/" not in word]
    assert wants or name == "kernels", name
    pinned = shell(f"pinned '{name}'")
    if name in ("npm", "debian", "kernels"):
        rows = [line.split() for line in pinned.splitlines()]
        assert all(len(row) == (4 if name == "kernels" else 3) for row in rows), rows
        have = {normal(row[0 if name == "npm" else 1]) for row in rows}
    else:
        rows = re.findall(r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n", pinned, re.M)
        assert "".join(f"{n}=={v}{h}\n" for n, v, h in rows) == pinned, f"[{name}]: a line without hash or version"
        have = {normal(row[0]) for row in rows}
    missing = {normal(want) for want in wants} - have
    assert rows and not missing, (name, missing)


def check_kernels(text):
    """What vmtest knows is pinned, of the same suites."""
    known = shell("cache=/nonexistent; . vm/kernels.sh; known_kernels")
    assert {tuple(line.split()) for line in known.splitlines()} == {
        (series, suite) for suite, series in re.findall(r"^(\S+) (\S+) linux-image-\S+ \S+$", text, re.M)}


def check_no_way_around():
    for path in sorted(pathlib.Path(".").rglob("*")):
        if not path.is_file() or path.name in ("update-pins", "lib.sh") or path.suffix in (".md", ".json", ".yml"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            fetches = re.search(r"pip\S* (install|download) |npm install |apt-get \S* ?download", line)
            assert not fetches or "suite_apt" in line or line.lstrip().startswith("#"), f"{path}:{number}: {line}"


def check_drift(text):
    names = re.findall(r"^(\S+)==(\S+)", text, re.M)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, ".versions")
        file.write_text("".join(f"{name.replace('-', '_')}=={version}\n" for name, version in names))
        drift = ["./drift", f"workload={file}", f"clients={folder}/absent"]
        assert subprocess.check_output(drift, text=True) == ""
        assert len(subprocess.check_output([*drift, "--all"], text=True).splitlines()) == len(names) + 1
        file.write_text(file.read_text().replace(f"=={names[0][1]}\n", "==999.1\n", 1) + "brand_new==1\n")
        rows = [line.split() for line in subprocess.check_output(drift, text=True).splitlines()[1:]]
        assert ["[workload]", names[0][0], names[0][1], "999.1", "*"] in rows, rows
        assert ["[workload]", "brand-new", "-", "1", "*"] in rows, rows


def check_latest():
    """Names without bounds, and a stamp that is of the day."""
    words = shell("RLSCOPE_LATEST=1; pin_wants 'cupti 12'; pins_stamp workload").split()
    assert words[:3] == ["nvidia-cuda-cupti-cu12", "nvidia-cuda-runtime-cu12", "latest"], words
    assert "==" in shell("pin_wants 'cupti 12'")


def main():
    os.environ.pop("RLSCOPE_LATEST", None)  # `scripts/test --latest` runs this too
    everything = sections()
    for name, text in everything.items():
        check_section(name, text)
    check_kernels(everything["kernels"])
    check_no_way_around()
    check_drift(everything["workload"])
    check_latest()


if __name__ == "__main__":
    sys.exit(main())
