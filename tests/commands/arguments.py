#!/usr/bin/python3
"""arguments.py RLSCOPE_BPF EVENTS: what is wrong with an option is one sentence, whatever the command, and --json is
--format json wherever that is."""
import json
import subprocess
import sys

COMMANDS = ("attach", "calibrate", "check", "compare", "dump", "monitor", "probes", "report", "run", "top")
WITH_VALUE = {"attach": "--pid", "calibrate": "--pid", "check": "--format", "compare": "--fail-if", "monitor": "--name",
              "probes": "--pid", "report": "--top", "run": "--duration", "top": "--name"}


def run(*arguments):
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=60)


def check(answer, command, word):
    lines = answer.stderr.splitlines()
    assert answer.returncode == 2 and not answer.stdout, (command, word, answer)
    assert len(lines) == 1 and command in lines[0] and word in lines[0], (command, lines)


def check_json(*words):
    short, long = run(*words, "--json"), run(*words, "--format", "json")
    assert short.stdout == long.stdout and short.returncode == long.returncode == 0, (words, short)
    assert isinstance(json.loads(short.stdout), dict), words


def main():
    for command in COMMANDS:
        check(run(command, "--no-such-option"), command, "--no-such-option")
        if command in WITH_VALUE:
            check(run(command, WITH_VALUE[command]), command, WITH_VALUE[command])
        answer = run(command, "--help")
        assert answer.returncode == 0 and answer.stdout.startswith("Usage: ") and not answer.stderr, command
        assert "--format" not in answer.stdout or "--json " in answer.stdout, command
    for together in ("-o", "x", "--report", "x"), ("--operation", "a=b", "--sample-hz", "0"), ("--format", "sqlite"), \
            ("--format", "sqlite", "--report", sys.argv[2]):
        answer = run("attach", "--pid", "1", *together)
        assert answer.returncode == 2 and len(answer.stderr.splitlines()) == 1, (together, answer)
    check(run("calibrate", "--", "true"), "calibrate", "--pid")
    check_json("report", sys.argv[2])
    check_json("compare", sys.argv[2], sys.argv[2])


main()
