#!/usr/bin/python3
"""check.py RLSCOPE_BPF: what `check` prints is whole and agrees with its exit status."""
import json
import subprocess
import sys

NEEDS = {"required", "better", "remark"}


def run(*arguments):
    return subprocess.run([sys.argv[1], "check", *arguments], capture_output=True, text=True, timeout=600)


def main():
    answer = run("--format", "json")
    report = json.loads(answer.stdout)
    checks = report["checks"]
    short = json.loads(run("--json").stdout)
    assert [check["name"] for check in short["checks"]] == [check["name"] for check in checks]
    assert report["version"] == 1 and report["tool"].startswith("rlscope-bpf "), report
    assert len({check["name"] for check in checks}) == len(checks) >= 15
    for check in checks:
        assert check["need"] in NEEDS and check["claim"] and check["detail"], check
        assert check["yes"] == (check["remedy"] == ""), check
    able = all(check["yes"] for check in checks if check["need"] == "required")
    assert report["can_profile"] == able and answer.returncode == (0 if able else 1)

    no = [check["name"] for check in checks if check["need"] == "required" and not check["yes"]]
    assert report.get("hindrance") == (no[0] if no else None)

    text = run()
    assert text.stdout.splitlines()[-1].startswith("This host can profile" if able else "This host cannot profile: ")
    assert text.returncode == answer.returncode
    for check in checks:
        assert f" {check['name']} " in text.stdout, check["name"]

    assert run("--help").returncode == 0 and "--format" in run("--help").stdout
    for wrong in (["--format", "xml"], ["--no-such-option"], ["argument"]):
        assert run(*wrong).returncode == 2 and not run(*wrong).stdout, wrong
    unprivileged = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--", sys.argv[1], "check", "--format", "json"],
        capture_output=True, text=True, timeout=600)
    if unprivileged.stdout:
        refused = json.loads(unprivileged.stdout)
        assert unprivileged.returncode == 1 and not refused["can_profile"]


if __name__ == "__main__":
    main()
