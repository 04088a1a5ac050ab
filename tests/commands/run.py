#!/usr/bin/python3
"""run.py RLSCOPE_BPF: a command that cannot be executed is one sentence and a shell's exit status, with or without
root: no trace, no report."""
import os
import pathlib
import subprocess
import sys
import tempfile


def write(path, text, mode):
    path.write_text(text)
    path.chmod(mode)
    return path


def check(folder, command, status, *words, path=None):
    environment = dict(os.environ, PATH=os.environ["PATH"] if path is None else path)
    answer = subprocess.run([sys.argv[1], "run", "--", command, "argument"], capture_output=True, text=True, timeout=600,
                            cwd=folder, env=environment)
    lines = answer.stderr.splitlines()
    assert answer.returncode == status and not answer.stdout, answer
    assert len(lines) == 1 and all(str(word) in lines[0] for word in ("cannot run", command, *words)), answer
    assert not [name for name in os.listdir(folder) if "trace" in name], os.listdir(folder)


def main():
    sys.argv[1] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "directory").mkdir()
        os.mkfifo(folder / "fifo", 0o755)
        write(folder / "plain", "echo hello\n", 0o644)
        write(folder / "script", "#! /no/such/interpreter -x\n", 0o755)
        write(folder / "nested", f"#!{folder}/script\n", 0o755)
        write(folder / "by-folder", f"#!{folder}/directory", 0o755)
        check(folder, "/no/such/command", 127, "No such file")
        check(folder, "no-such-command", 127, "No such file")
        check(folder, "", 127, "No such file")
        check(folder, "script", 127, path="/nowhere:/no/such")
        check(folder, "./plain", 126, "Permission denied")
        check(folder, "plain", 126, "Permission denied", path=f"/nowhere:{folder}:/usr/bin")
        check(folder, "plain", 126, "Permission denied", path="/nowhere:")
        check(folder, "./directory", 126, "directory")
        check(folder, "./fifo", 126, "Permission denied")
        check(folder, "./plain/below", 126, "Not a directory")
        check(folder, "./script", 127, "/no/such/interpreter", "No such file")
        check(folder, "./nested", 127, "/no/such/interpreter", "No such file")
        check(folder, "./by-folder", 126, folder / "directory", "directory")


main()
