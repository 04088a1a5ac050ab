#!/usr/bin/python3
"""What cannot be done: one clear sentence on stderr, the right status, nothing lost."""

import contextlib
import json
import os
import resource
import subprocess
import tempfile

import harness


def sentence(checks, name, done, status, *words):
    """The status, and a first line on stderr that has one of the words; no report."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = done.stderr.lower()
    checks.that(done.returncode == status and lines and any(word in said for word in words),
                "%s: status %d, %r" % (name, done.returncode, lines[-1] if lines else ""))
    checks.that(len(lines) <= 3 and not done.stdout.strip(), "%s: %d lines and no report" % (
        name, len(lines)))


def attach(pid, folder, *arguments, **options):
    binary = options.pop("binary", None)
    command = ["attach", "--pid", str(pid), "-o", os.path.join(folder, "trace"), "--duration",
               "0.3", *arguments]
    if binary is None:
        return harness.run(*command, **options)
    return subprocess.run([binary, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=harness.PATIENCE_SECONDS, **options)


def pid_unused():
    with open("/proc/sys/kernel/pid_max") as stream:
        pid = int(stream.read()) - 1
    while os.path.exists("/proc/%d" % pid):
        pid -= 1
    return pid


def wrong_targets(checks, folder):
    pid = pid_unused()
    sentence(checks, "missing pid", attach(pid, folder), 1, str(pid))
    sentence(checks, "pid 0", attach(0, folder), 2, "pid")
    sentence(checks, "pid 'abc'", attach("abc", folder), 2, "abc")
    sentence(checks, "negative pid", attach(-5, folder), 2, "-5")
    other = subprocess.Popen(["sleep", "600"])
    try:
        sentence(checks, "not Python", attach(other.pid, folder), 1, "python")
    finally:
        other.kill()
        other.wait()
    checks.that(not os.path.exists(os.path.join(folder, "trace")), "no trace file is left behind")


def bad_usage(checks):
    for name, arguments in (("no command", []), ("unknown command", ["attack"]),
                            ("unknown option", ["attach", "--pit", "1"]),
                            ("no pid", ["attach"]),
                            ("bad duration", ["attach", "--pid", "1", "--duration", "soon"]),
                            ("bad format", ["attach", "--pid", "1", "--format", "word"]),
                            ("bad budget", ["attach", "--pid", "1", "--overhead-budget", "lots"])):
        done = harness.run(*arguments)
        checks.that(done.returncode == 2 and done.stderr.strip(), "%s: status %d, %r" % (
            name, done.returncode, done.stderr.splitlines()[:1]))


def python_without_library(checks, folder):
    python = harness.interpreter()
    with harness.Process([python, "-c", "input()"]) as target:
        done = attach(target.pid, folder, "--format", "json")
    checks.that(done.returncode == 0 and "warning" in done.stderr.lower(),
                "Python without a library: status %d, %r" % (done.returncode, done.stderr[:200]))


def no_permission(checks, folder):
    binary = harness.copy_for_others(folder)
    place = os.path.join(folder, "nobody")
    os.mkdir(place)
    os.chmod(place, 0o777)
    with harness.Target("exact.py") as target:
        done = attach(target.pid, place, binary=binary, **harness.NOBODY)
        sentence(checks, "as nobody", done, 1, "root", "permission", "cap_")


def config_broken(checks, folder):
    path = os.path.join(folder, "config")
    with harness.Target("exact.py") as target:
        sentence(checks, "config that is not there",
                 attach(target.pid, folder, "--config", path), 1, "config")
        with open(path, "wb") as stream:
            stream.write(b"\xff\xfe[[[ this = is not\n")
        done = attach(target.pid, folder, "--config", path)
        checks.that(done.returncode in (1, 2) and path in done.stderr,
                    "broken config: status %d, %r" % (done.returncode, done.stderr[:200]))
        sentence(checks, "config that is a folder",
                 attach(target.pid, folder, "--config", folder), 1, "config", folder)


def output_unwritable(checks, folder):
    with harness.Target("exact.py") as target:
        place = os.path.join(folder, "nowhere")
        done = harness.run("attach", "--pid", str(target.pid), "--duration", "0.3", "-o",
                           os.path.join(place, "trace"))
        sentence(checks, "-o in a folder that is not there", done, 1, "nowhere")
        empty = os.path.join(folder, "empty")
        os.mkdir(empty)
        done = attach(target.pid, empty, "--report", os.path.join(place, "report"))
        sentence(checks, "--report in a folder that is not there", done, 1, "nowhere")
        checks.that(not os.listdir(empty), "which is reported before anything is recorded")


@contextlib.contextmanager
def small_disk(folder, kib):
    place = os.path.join(folder, "disk")
    os.mkdir(place)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "tmpfs", place],
                             stderr=subprocess.PIPE)
    if mounted.returncode:
        harness.skip("no tmpfs can be mounted: %s" % mounted.stderr)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def file_ends(checks, name, trace, word, **options):
    """A recording whose trace cannot grow ends by itself, and reports what it has."""
    with harness.Target("exact.py") as target:
        with harness.Process([harness.BINARY, "attach", "--pid", str(target.pid), *harness.EXACT, *harness.ROLES,
                              "-o", trace, "--format", "json"], **options) as recorder:
            if recorder.err.wait("recording", harness.PATIENCE_SECONDS) is None:
                checks.that(False, "%s: never recording: %s" % (name, recorder.err.text()))
                return
            target.ask(do="kinds", count=1000)
            status = recorder.wait()
        checks.that(status == 1, "%s: ends by itself with status %d" % (name, status))
        said = recorder.err.text()
        checks.that(word in said.lower(), "%s: %r" % (name, said[-200:]))
        checks.that(target.ask(do="kinds", count=5, names=["methods.o"]), "the target works on")
        checks.that(json.loads(recorder.out.text())["processes"], "%s: what was recorded is reported" % name)
        done = harness.run("report", trace, "--format", "json")
        checks.that(done.returncode in (0, 3), "%s: the trace reads, status %d" % (name, done.returncode))


def disk_full(checks, folder):
    with small_disk(folder, 64) as place:
        file_ends(checks, "full disk", os.path.join(place, "trace"), "space")


def file_too_large(checks, folder):
    limit = 64 << 10
    file_ends(checks, "limit for files", os.path.join(folder, "limited"), "too large",
              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))


def writers_full(checks, folder):
    """What every other writer says of a full disk and of a limit for files."""
    trace = os.path.join(folder, "written")
    with harness.Target("exact.py") as target:
        harness.run("attach", "--pid", str(target.pid), "-o", trace, "--duration", "0.3", "--format", "json")
    formats = "text", "json", "jsonl", "csv", "html", "sqlite", "perfetto", "chrome", "speedscope", "pprof", "folded"
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))}
    for name, out, options, word in (("full disk", "/dev/full", {}, "space"),
                                     ("limit for files", os.path.join(folder, "out-%s"), limit, "too large")):
        for form in formats:
            done = harness.run("report", trace, "--format", form, "-o", out.replace("%s", form), **options)
            sentence(checks, "report as %s, %s" % (form, name), done, 1, word)
        done = harness.run("compare", trace, trace, "-o", out.replace("%s", "compare"), "--format", "html", **options)
        sentence(checks, "compare, " + name, done, 1, word)
    with open("/dev/full", "w") as full:
        for command in ("report", trace), ("dump", trace), ("compare", trace, trace):
            done = subprocess.run([harness.BINARY, *command], stdout=full, stderr=subprocess.PIPE, universal_newlines=True)
            checks.that(done.returncode == 1 and "space" in done.stderr, "%s to a full disk: status %d, %r" % (
                command[0], done.returncode, done.stderr))


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        bad_usage(checks)
        wrong_targets(checks, folder)
        python_without_library(checks, folder)
        no_permission(checks, folder)
        config_broken(checks, folder)
        output_unwritable(checks, folder)
        disk_full(checks, folder)
        file_too_large(checks, folder)
        writers_full(checks, folder)
    checks.finish()


if __name__ == "__main__":
    main()
