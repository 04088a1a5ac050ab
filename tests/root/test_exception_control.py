#!/usr/bin/python3
"""Negative control, opt-in: the kernel's plain return probes abort a throwing target.

This is what the profiler must never do. RLS_NEGATIVE_CONTROL=1 runs it; it needs tracefs.
"""

import os
import signal
import subprocess

import harness

TRACEFS = "/sys/kernel/tracing"
SYMBOL = "truthcxx_throw"


def symbol_offset(path):
    listing = subprocess.run(["nm", "-D", path], stdout=subprocess.PIPE, check=True,
                             universal_newlines=True).stdout
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[2] == SYMBOL:
            return int(fields[0], 16)  # .text is mapped at its file offset in these libraries
    return None


def tracefs_write(name, text):
    """Appends: truncating uprobe_events would remove everybody's probes."""
    descriptor = os.open(os.path.join(TRACEFS, name), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, (text + "\n").encode())
    finally:
        os.close(descriptor)


def main():
    if os.environ.get("RLS_NEGATIVE_CONTROL") != "1":
        harness.skip("opt-in: RLS_NEGATIVE_CONTROL=1 (it aborts a process of its own)")
    if os.geteuid() != 0:
        harness.skip("needs root")
    mounted = False
    if not os.path.exists(os.path.join(TRACEFS, "uprobe_events")):
        mounted = subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACEFS],
                                 stderr=subprocess.DEVNULL).returncode == 0
        if not mounted:
            harness.skip("no tracefs here")
    library = os.path.join(harness.TRUTH, "libtruthcxx.so")
    checks = harness.Checks()
    tracefs_write("uprobe_events", "r:rls_control/throw %s:0x%x" % (library, symbol_offset(library)))
    try:
        tracefs_write("events/rls_control/throw/enable", "1")
        done = subprocess.run(
            [harness.interpreter(), os.path.join(harness.HAZARD_SOURCES, "hazards.py"),
             "throw_through", "--modules", harness.modules(), "--libraries", harness.TRUTH],
            input="go\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        checks.that(done.returncode == -signal.SIGABRT, "plain return probe: status %d, %r" % (
            done.returncode, done.stderr[-200:]))
    finally:
        tracefs_write("events/rls_control/throw/enable", "0")
        tracefs_write("uprobe_events", "-:rls_control/throw")
        if mounted:
            subprocess.run(["umount", TRACEFS], check=False)
    checks.finish()


if __name__ == "__main__":
    main()
