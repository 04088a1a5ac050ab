#!/usr/bin/python3
"""The monitor as operators and others see it: scraped by friend and foe while it counts a target's
every transition, reloaded, in a port that is taken; and top, in a terminal: test_monitor_serving.py."""

import collections
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

import harness
import monitoring

sys.path.insert(0, os.path.join(os.path.dirname(harness.HERE), "metrics"))
from promtool import promtool  # noqa: E402

ROLES = ["--simulator", "truthsim*", "--backend", "truthback*", "--native", "libtruthc.so*"]
TRANSITIONS = "rlscope_transitions_total"
REQUESTS = 10000


class Served(monitoring.Served):
    """With a configuration file."""

    def __init__(self, folder, *arguments):
        self.config = os.path.join(folder, "monitor.conf")
        self.configure("interval 0.5\n")
        super().__init__("--config", self.config, *harness.EXACT, *arguments, roles=ROLES)

    def configure(self, text):
        with open(self.config, "w") as file:
            file.write(text)


def be_hostile(port):
    """Half-open connections, junk, and requests by the thousand."""
    half_open = []
    for _ in range(20):
        link = socket.create_connection(("127.0.0.1", port))
        link.sendall(b"GET /metrics HTTP/1.1\r\nX:")
        half_open.append(link)
    for i in range(REQUESTS):
        with socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE_SECONDS) as link:
            link.sendall(b"GET /metrics HTTP/1.0\r\n\r\n" if i % 10 else os.urandom(300))
            try:
                if i % 10:  # who sends junk does not wait for what comes of it
                    link.recv(10)
            except ConnectionError:
                pass
    return half_open


def expected(rows):
    wanted = collections.Counter()
    for row in rows:
        for flow, count in row["truth"].items():
            wanted[tuple(flow.split("->"))] += count
    return wanted


def counted(page, flow):
    return page.sum(TRANSITIONS, **dict(zip(("from", "to"), flow)))


def all_counted(wanted):
    return lambda page: all(counted(page, flow) >= count for flow, count in wanted.items())


def check_counts(checks, page, wanted, when):
    found = {flow: counted(page, flow) for flow in wanted}
    checks.that(found == dict(wanted) and wanted, "%s: %d transitions, each counted: %s" % (
        when, sum(wanted.values()), {flow: (found[flow], n) for flow, n in wanted.items() if found[flow] != n}))
    checks.that(page.sum("rlscope_lost_events_total") == 0, "%s: nothing lost" % when)


def check_scrapers(checks, folder):
    """Counts are exact under attack, and go on over a reload."""
    name = harness.name_of_its_own(folder, "exact.py")
    with Served(folder, "--name", name) as monitor, harness.Target(name, folder=folder) as target:
        monitor.until(lambda page: page.sum("rlscope_jobs") == 1)
        enemy = threading.Thread(target=lambda: links.extend(be_hostile(monitor.port)))
        links, rows = [], []
        enemy.start()
        while enemy.is_alive():
            rows += target.ask(do="kinds", count=200, names=["methods.noargs", "methods.o"])
        enemy.join()
        checks.saw("%d rounds while %d requests came" % (len(rows) // 2, REQUESTS))
        wanted = expected(rows)
        page = monitor.until(all_counted(wanted))
        check_counts(checks, page, wanted, "under attack")
        checks.that(page.sum("rlscope_monitor_requests_refused_total") > 0, "junk was refused")
        checks.that(len(os.listdir("/proc/%d/fd" % monitor.pid)) < page.sum("rlscope_monitor_open_fds") + 60,
                    "no descriptors are left behind")
        for link in links:
            link.close()
        monitor.configure("nonsense\n")
        monitor.child.send_signal(signal.SIGHUP)
        checks.that(monitor.err.wait("rlscope-bpf: %s, line 1" % monitor.config, harness.PATIENCE_SECONDS),
                    "a bad file is reported")
        monitor.configure("interval 0.2\n")
        monitor.child.send_signal(signal.SIGHUP)
        wanted.update(expected(target.ask(do="kinds", count=50, names=["methods.noargs"])))
        page = monitor.until(all_counted(wanted))
        check_counts(checks, page, wanted, "after reloads")
        if promtool():
            check = subprocess.run([promtool(), "check", "metrics"], input=page.text, text=True,
                                   capture_output=True)
            checks.that((check.returncode, check.stderr) == (0, ""), "promtool finds no fault: " + check.stderr)
        taken = subprocess.run([harness.BINARY, "monitor", "--listen", "127.0.0.1:%d" % monitor.port],
                               capture_output=True, text=True, timeout=harness.PATIENCE_SECONDS)
        checks.that(taken.returncode == 1 and taken.stderr.count("\n") == 1 and "in use" in taken.stderr,
                    "a port that is taken: " + taken.stderr.strip())
        monitor.child.send_signal(signal.SIGTERM)
        checks.that(monitor.wait() == 0, "ends cleanly")


def check_without_root(checks, folder):
    binary = harness.copy_for_others(folder)
    for command in (["monitor", "--listen", "127.0.0.1:0"], ["top", "--once"]):
        done = subprocess.run([binary, *command], capture_output=True, text=True, timeout=harness.PATIENCE_SECONDS, user=65534,
                              group=65534, extra_groups=[])
        checks.that(done.returncode == 1 and done.stderr.count("\n") == 1,
                    "%s without root: %s" % (command[0], done.stderr.strip()))


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, columns, lines, *command):
        self.master, slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        self.text = b""

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, what, seconds=harness.PATIENCE_SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not what(self.text):
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536)
        return what(self.text)

    def end(self):
        status = self.child.poll()
        while status is None:
            self.until(lambda text: False, 0.2)
            status = self.child.poll()
        self.until(lambda text: False, 0.2)
        restored = termios.tcgetattr(self.slave) == self.before
        os.close(self.master)
        os.close(self.slave)
        return status, restored


ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


def last_frame(text):
    """The lines of the last one that was drawn whole, without what is not seen."""
    frame = text.split(b"\x1b[H")[-2]
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", frame).decode(errors="replace").split("\n")


def keeps_to_size(text, columns=40, lines=5):
    """Frames of before are still on their way at first."""
    if text.count(b"\x1b[H") < 3:
        return False
    frame = last_frame(text)
    return len(frame) <= lines + 1 and max(len(line) for line in frame) <= columns


def check_terminal(checks, script):
    for name, end in (("q", lambda terminal: os.write(terminal.master, b"q")),
                      ("a crash", lambda terminal: terminal.child.send_signal(signal.SIGSEGV))):
        terminal = Terminal(100, 20, harness.BINARY, "top", "--interval", "0.2", *harness.EXACT, *ROLES,
                            "--name", script)
        checks.that(terminal.until(lambda text: ENTER in text and text.count(b"rlscope-bpf top: ") >= 2),
                    "%s: the table is drawn again and again" % name)
        checks.that(b"python3" in terminal.text, "%s: with the job" % name)
        terminal.text = b""
        terminal.resize(40, 5)
        checks.that(terminal.until(keeps_to_size), "%s: in another size, which it keeps to: %r" % (
            name, last_frame(b"\x1b[H" + terminal.text)))
        end(terminal)
        status, restored = terminal.end()
        checks.that(status == (-signal.SIGSEGV if name == "a crash" else 0) and restored and LEAVE in terminal.text,
                    "%s ends it with %s, the terminal is as it was" % (name, status))


def check_gone(checks):
    """Whoever has lost its terminal has nobody to show anything to, but for nohup(1)'s children."""
    for name, lose in (("a hang-up", lambda terminal: terminal.child.send_signal(signal.SIGHUP)),
                       ("the loss of its terminal", lambda terminal: os.close(terminal.master))):
        terminal = Terminal(80, 24, harness.BINARY, "top", "--name", "no-such-job")
        checks.that(terminal.until(lambda text: ENTER in text), "the screen is there before %s" % name)
        os.close(terminal.slave)
        lose(terminal)
        try:
            status = terminal.child.wait(harness.PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            terminal.child.kill()
            status = terminal.child.wait() and None
        checks.that(status == 0, "%s ends top: %s" % (name, status))
    command = ["nohup", harness.BINARY, "top", "--json", "--interval", "0.2", "--name", "no-such-job"]
    with harness.Process(command) as process:
        checks.that(process.out.wait("{", harness.PATIENCE_SECONDS) is not None, "nohup top --json prints")
        process.child.send_signal(signal.SIGHUP)
        time.sleep(1)
        more = [process.out.wait("{", harness.PATIENCE_SECONDS) for _ in range(10)]
        checks.that(all(more) and process.child.poll() is None, "and goes on after a hang-up")
        process.child.send_signal(signal.SIGTERM)
        checks.that(process.wait() == 0, "until it is asked to end")


def check_top(checks, folder):
    script = harness.name_of_its_own(folder, "exact.py")
    with harness.Target(script, folder=folder) as target:
        once = subprocess.run([harness.BINARY, "top", "--once", "--json", "--name", script, *ROLES],
                              capture_output=True, text=True, timeout=harness.PATIENCE_SECONDS)
        seen = json.loads(once.stdout)
        checks.that(once.returncode == 0 and len(seen["jobs"]) == 1, "top --once --json: %s" % once.stdout[:200])
        share = seen["jobs"][0]["total_ns"] / seen["elapsed_ns"]
        checks.that(0.8 < share < 1.2, "its one thread is one thread: %.3f" % share)
        check_terminal(checks, script)
        rows = target.ask(do="kinds", count=5, names=["methods.noargs"])
        checks.that(len(rows) == 1, "and the target works on")


def main():
    harness.need_root_and_profiler()
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        check_without_root(checks, folder)
        check_scrapers(checks, folder)
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        check_top(checks, folder)
    check_gone(checks)
    checks.finish()


if __name__ == "__main__":
    main()
