#!/usr/bin/python3
"""output.py RLSCOPE_BPF EVENTS: what cannot be printed is no success, and a report never empties a file
that it was not asked to write."""
import os
import shutil
import subprocess
import sys
import tempfile


def run(*arguments, **options):
    return subprocess.run([sys.argv[1], *arguments], stderr=subprocess.PIPE, text=True, timeout=600,
                          **{"stdout": subprocess.PIPE, **options})


def check_refused(answer, *words):
    lines = answer.stderr.splitlines()
    assert answer.returncode == 1 and len(lines) == 1 and all(word in lines[0] for word in words), answer


def check_full():
    with open("/dev/full", "w") as full:
        for words in (["--version"], ["--help"], ["check", "--help"], ["calibrate", "--help"], ["dump", sys.argv[2]],
                      ["report", sys.argv[2]], ["report", "--json-schema"], ["compare", sys.argv[2], sys.argv[2]]):
            check_refused(run(*words, stdout=full), "No space left")
        # Where this host cannot profile, the status is 1 anyway.
        for words in (["check"], ["check", "--json"]):
            assert run(*words, stdout=full).returncode == 1, words


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def check_kept(folder):
    trace, link, other, report = (os.path.join(folder, name) for name in ("trace", "link", "other", "report"))
    shutil.copy(sys.argv[2], trace)
    shutil.copy(sys.argv[2], other)
    os.symlink(trace, link)
    before = read(trace)
    for words in ([trace, "-o", trace], [link, "-o", trace], [trace, "-o", link], [other, trace, "-o", trace],
                  [trace, "--format", "chrome", "-o", trace]):
        check_refused(run("report", *words), words[-1], "one of the traces")
        assert read(trace) == before, words
    with open(report, "w") as stream:
        stream.write("an old report")
    with open(other, "w") as stream:
        stream.write("no trace")
    for missing in (os.path.join(folder, "missing"), other, folder):
        for words in ([missing], [trace, missing]):
            check_refused(run("report", *words, "-o", report), missing)
            assert read(report) == b"an old report", words
            check_refused(run("report", *words, "-o", report + ".new"), missing)
            assert not os.path.exists(report + ".new"), words
    with open(trace) as stream:
        answer = run("report", "/dev/stdin", "-o", report, stdin=stream)
        piped = subprocess.run("cat %s | %s report /dev/stdin -o %s.piped" % (trace, sys.argv[1], report), shell=True,
                               timeout=600)
    assert answer.returncode == piped.returncode == 0, (answer, piped)
    assert read(report) == read(report + ".piped") == run("report", trace).stdout.encode(), answer
    assert run("report", trace, "-o", "/dev/null").returncode == 0


def main():
    check_full()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        check_kept(folder)


main()
