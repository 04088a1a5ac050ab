#!/usr/bin/python3
"""The page of a real training job, as attach writes it: in Chromium, with the network off, the
bars' figures are the JSON's, and switching and searching work by keyboard.

Stable-Baselines3's PPO where scripts/setup-sb3 has installed it, the bundled on-policy job
otherwise; without Chromium or either of them it skips."""

import json
import os
import sys
import tempfile

import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKLOADS = os.path.join(ROOT, "tests", "workloads")
os.environ.setdefault("RLS_GOLDEN", os.path.join(ROOT, "tests", "golden"))
sys.path.insert(0, os.path.join(ROOT, "tests", "browser"))

import chromium     # noqa: E402
import test_html as pages       # noqa: E402


def choose_job():
    for python, script in ((os.environ.get("RLS_SB3_PYTHON", ""), "sb3_ppo.py"),
                           (os.environ.get("RLS_TORCH_PYTHON", ""), "onpolicy.py")):
        if os.access(python, os.X_OK):
            return python, script
    return harness.skip("no Python with PyTorch: run scripts/setup workload")


def record(folder, seconds):
    """The page, and the model in the same recording's JSON form."""
    python, script = choose_job()
    environment = dict(os.environ, PYTHONPATH=os.environ.get("RLS_PYTHONPATH", ""))
    page, trace = os.path.join(folder, "page.html"), os.path.join(folder, "trace")
    with harness.Process([python, script, "--seconds", "120"], cwd=WORKLOADS, env=environment) as job:
        if not job.out.wait("training", harness.PATIENCE_SECONDS):
            raise RuntimeError("the job does not train: %s" % job.err.text())
        done = harness.run("attach", "--pid", str(job.pid), "--duration", str(seconds), "-o", trace,
                           "--format", "html", "--report", page, timeout=harness.PATIENCE_SECONDS)
    if done.returncode:
        raise RuntimeError("attach ended with %d: %s" % (done.returncode, done.stderr))
    return script, page, json.loads(harness.run("report", "--format", "json", trace).stdout)


def look(checks, browser, path, model):
    page = browser.open(path)
    pages.check_quiet(page)
    page.evaluate("document.querySelector('[name=by][value=operation]').click()")
    pages.check_sums(page, model)
    pages.check_overview(page, model)
    checks.saw("opened in %.2f s, %d bytes" % (page.load_seconds, os.path.getsize(path)))
    page.press("c")
    pages.check_sums(page, model, measure="corrected_ns")
    page.press("/")
    page.type("no such name")
    page.wait_for("document.querySelectorAll('#where-table .empty').length === 1")
    pages.check_quiet(page)
    # A count is null where too few windows were seen, as in five seconds.
    flows = {(row["from"], row["to"]) for row in model["transitions"]}
    checks.that(("python", "backend") in flows, "transitions are there: %s" % flows)


def main():
    harness.need_root_and_profiler()
    if not chromium.find():
        harness.skip("there is no Chromium here (Debian's package: chromium)")
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-html-") as folder:
        script, path, model = record(folder, 5)
        checks.saw("%s: %.1f s recorded" % (script, model["duration_ns"] / 1e9))
        with chromium.Chromium() as browser:
            look(checks, browser, path, model)
    checks.finish()


if __name__ == "__main__":
    main()
