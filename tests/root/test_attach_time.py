#!/usr/bin/python3
"""Attach to a PyTorch process and detach again: what it runs is counted, it has its speed again, and how long
either took is printed."""

import os
import subprocess

import harness

SCRIPT = ("import torch, sys, time\nprint('ready', flush=True)\nx = torch.ones(4)\n"
          "for line in sys.stdin:\n    start = time.thread_time()\n    for _ in range(int(line)): x = x + 1\n"
          "    print('done', time.thread_time() - start, flush=True)\n")


def torch_interpreter():
    path = os.environ.get("RLS_TORCH_PYTHON")
    if path and os.access(path, os.X_OK) and not subprocess.run(
            [path, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
        return path
    return harness.skip("no interpreter with torch (RLS_TORCH_PYTHON)")


def adds_seconds(target, count=20000):
    """How long it ran for them on a CPU."""
    target.say(str(count))
    return float(target.out.wait("done", harness.PATIENCE_SECONDS).split()[1])


def main():
    harness.need_root_and_profiler()
    python = torch_interpreter()
    checks = harness.Checks()
    with harness.Process([python, "-c", SCRIPT]) as target:
        checks.that(target.out.wait("ready", harness.PATIENCE_SECONDS) is not None, "%s has torch" % python)
        adds_seconds(target)
        before = min(adds_seconds(target) for _ in range(5))
        with harness.Recording([target.pid], roles=[]) as recording:
            during = adds_seconds(target)
            status = recording.stop()
            report = recording.report()
        # A probe left behind would slow every one of them; another process does not.
        after = min(adds_seconds(target) for _ in range(5))
    sites = sum(library["sites"] for library in report["processes"][0]["libraries"])
    checks.saw("attach to recording %.2f s, stop to end %.2f s, %d sites" % (
        recording.recording_seconds, recording.stop_seconds, sites))
    checks.saw("20000 additions: %.3f s before, %.3f s during, %.3f s after" % (
        before, during, after))
    checks.that(status == 0 and sites > 1000, "status %d, torch's functions are probed" % status)
    count = sum(flow["count"] for flow in report["transitions"]
                if (flow["from"], flow["to"]) == ("python", "backend"))
    checks.that(count >= 20000, "python->backend %d times for 20000 additions" % count)
    checks.that(after < before * 1.5 + 0.05, "the target is as fast as before")
    checks.finish()


if __name__ == "__main__":
    main()
