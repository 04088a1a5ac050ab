"""rlscope-bpf monitor and what it prints, for the tests of it."""

import http.client
import re
import signal
import time
import urllib.request

import harness

SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """[(name, {label: value}, number)]"""
    found = []
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if match and not line.startswith("#"):
            found.append((match[1], dict(LABEL.findall(match[2] or "")), float(match[3])))
    return found


class Page:
    """The samples of one page."""

    def __init__(self, text):
        self.text = text
        self.samples = parse(text)

    def sum(self, name, **labels):
        return sum(number for found, has, number in self.samples
                   if found == name and all(has.get(key) == value for key, value in labels.items()))

    def values(self, name, label):
        return {has.get(label) for found, has, _ in self.samples if found == name}


class Monitor(harness.Process):
    """rlscope-bpf monitor --print; live when it returns."""

    def __init__(self, *arguments, roles=harness.ROLES, **options):
        super().__init__([harness.BINARY, "monitor", "--print", "--listen", "none", *roles, *arguments], **options)
        if self.err.wait("recording", harness.RECORDING_SECONDS) is None:
            raise RuntimeError("never recording: status %s, %s" % (
                self.child.poll(), self.err.text()))

    def stop(self, number=signal.SIGTERM):
        """Ends it: the exit status and the page."""
        self.child.send_signal(number)
        status = self.wait()
        return status, Page(self.out.text())


class Served(harness.Process):
    """rlscope-bpf monitor on a port of its own; live when it returns."""

    def __init__(self, *arguments, roles=harness.ROLES, **options):
        super().__init__([harness.BINARY, "monitor", "--listen", "127.0.0.1:0", *roles, *arguments], **options)
        line = self.err.wait("metrics at ", harness.RECORDING_SECONDS)
        if line is None:
            raise RuntimeError("never serving: status %s, %s" % (self.child.poll(), self.err.text()))
        self.url = line.split()[-1]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def page(self):
        """Tries again: who shares an address with an enemy may be turned away for a while."""
        for _ in range(60):
            try:
                with urllib.request.urlopen(self.url, timeout=30) as answer:
                    return Page(answer.read().decode())
            except (OSError, http.client.HTTPException):
                time.sleep(0.3)
        raise RuntimeError("the metrics cannot be had")

    def until(self, holds):
        end = time.monotonic() + harness.PATIENCE_SECONDS
        page = self.page()
        while not holds(page) and time.monotonic() < end:
            time.sleep(0.1)
            page = self.page()
        return page

    def fresh(self):
        """A page of figures that were taken after now."""
        now = time.time()
        page = self.until(lambda page: page.sum("rlscope_snapshot_timestamp_seconds") > now)
        if page.sum("rlscope_snapshot_timestamp_seconds") <= now:
            raise RuntimeError("no new figures")
        return page

    def stop(self, number=signal.SIGTERM):
        """Ends it, which was started with --print: the exit status and the last page."""
        self.child.send_signal(number)
        status = self.wait()
        return status, Page(self.out.text())
