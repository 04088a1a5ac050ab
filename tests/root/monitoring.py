"""rlscope-bpf monitor and what it prints, for the tests of it."""

import re
import signal

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
        status = self.wait(60)
        return status, Page(self.out.text())
