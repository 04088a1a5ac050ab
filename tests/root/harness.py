"""Starts targets and the profiler, and reads what the profiler wrote.

Used by the test_*.py programs beside it. From the environment, set by CTest:
RLS_BIN (the profiler), RLS_TRUTH (folder of the ground-truth builds), RLS_PYTHONPATH
(the rlscope package), RLS_PYTHONS ("tag=interpreter,…").
"""

import collections
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TRUTH_SOURCES = os.path.join(os.path.dirname(HERE), "ground_truth")
HAZARD_SOURCES = os.path.join(os.path.dirname(HERE), "hazards")
BINARY = os.environ.get("RLS_BIN", "build/rlscope-bpf")
TRUTH = os.environ.get("RLS_TRUTH", "build/tests/ground_truth")
ROLES = ["--simulator", "truthsim*", "--backend", "truthback*", "--simulator", "libtruthc.so*",
         "--simulator", "libtruthctx.so*",
         "--simulator", "libtruthcxx.so*", "--simulator", "truthpb*", "--simulator", "truthnb*",
         "--simulator", "truthcy*", "--simulator", "truthload*"]
EXACT = ["--overhead-budget", "none"]
SKIP = 77
# Nothing takes so long but what never comes: not on a machine that others keep busy, nor on an emulated processor.
PATIENCE_SECONDS = 240
RECORDING_SECONDS = PATIENCE_SECONDS


def skip(reason):
    print("SKIP: " + reason, flush=True)
    sys.exit(SKIP)


def need_root_and_profiler():
    if os.geteuid() != 0:
        skip("needs root: real probes are put in place")
    if not os.access(BINARY, os.X_OK):
        skip("no profiler at %s" % BINARY)


def interpreters():
    """{tag: path} of the interpreters that the ground truth was built for."""
    pairs = [pair.split("=", 1) for pair in os.environ.get("RLS_PYTHONS", "").split(",") if pair]
    return {tag: path for tag, path in pairs if os.access(path, os.X_OK)}


def interpreter(tag="system"):
    path = interpreters().get(tag)
    if not path:
        skip("no interpreter for %s (RLS_PYTHONS)" % tag)
    return path


def modules(tag="system"):
    folder = os.path.join(TRUTH, tag)
    if not os.path.isdir(folder):
        skip("no ground-truth modules in %s" % folder)
    return folder


def name_of_its_own(folder, script):
    """The name of a link to a script of the ground truth, which no process of others has: for --name."""
    name = "%s-%d.py" % (os.path.splitext(script)[0], os.getpid())
    os.symlink(os.path.join(TRUTH_SOURCES, script), os.path.join(folder, name))
    return name


def eventually(condition, seconds=PATIENCE_SECONDS):
    """What the condition comes to once it holds; or in the end."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.05)


def ran_seconds(pid, tid):
    """The CPU time of a thread; without bound when it has ended."""
    try:
        with open("/proc/%d/task/%d/schedstat" % (pid, tid)) as stream:
            return int(stream.read().split()[0]) / 1e9
    except OSError:
        return float("inf")


def let_run(pid, seconds, tids=()):
    """Until each of the threads, or the process's first, has run for so long from now on."""
    end = {tid: ran_seconds(pid, tid) + seconds for tid in tids or [pid]}
    if not eventually(lambda: all(ran_seconds(pid, tid) >= ran for tid, ran in end.items())):
        raise RuntimeError("threads of process %d do not run: %s" % (pid, list(end)))


def let_workers_run(pid, seconds):
    """Until the process's threads but for the first have run for so long from now on, all together."""
    def ran():
        tids = [int(tid) for tid in os.listdir("/proc/%d/task" % pid) if int(tid) != pid]
        return sum(ran for ran in (ran_seconds(pid, tid) for tid in tids) if ran != float("inf"))
    end = ran() + seconds
    if not eventually(lambda: ran() >= end):
        raise RuntimeError("the workers of process %d do not run" % pid)


class Checks:
    """Counts what held and what did not, and prints every one of them."""

    def __init__(self):
        self.failed = 0

    def that(self, holds, sentence):
        print(("ok    " if holds else "FAIL  ") + sentence, flush=True)
        if not holds:
            self.failed += 1
        return holds

    def saw(self, sentence):
        print("      " + sentence, flush=True)

    def finish(self):
        print("%d failed" % self.failed if self.failed else "all held")
        sys.exit(1 if self.failed else 0)


class Lines:
    """A stream read by a thread, so that waiting for a line can time out."""

    def __init__(self, stream):
        self.seen = []
        self.queue = queue.Queue()
        self.thread = threading.Thread(target=self.read, args=(stream,), daemon=True)
        self.thread.start()

    def read(self, stream):
        for line in stream:
            self.seen.append(line)
            self.queue.put(line)
        self.queue.put(None)

    def wait(self, prefix, seconds):
        """The first new line with the prefix, or None at the stream's end or the time's."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return None
            if line is None or line.startswith(prefix):
                return line

    def text(self):
        self.thread.join(5)
        return "".join(self.seen)


class Process:
    """A child with piped streams that does not outlive the test."""

    def __init__(self, command, **options):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                                      **options)
        self.out = Lines(self.child.stdout)
        self.err = Lines(self.child.stderr)
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def say(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def wait(self, seconds=PATIENCE_SECONDS):
        """The exit status; negative for a signal."""
        return self.child.wait(timeout=seconds)


class Target(Process):
    """A ground-truth program that answers JSON commands."""

    def __init__(self, script, tag="system", arguments=(), folder=TRUTH_SOURCES, **options):
        environment = dict(os.environ, PYTHONPATH=os.environ.get("RLS_PYTHONPATH", ""))
        python = interpreter(tag.replace("-stripped", ""))
        super().__init__([python, os.path.join(folder, script), "--modules", modules(tag),
                          *arguments], env=environment, **options)
        if not self.out.wait('{"ready"', PATIENCE_SECONDS):
            raise RuntimeError("%s is not ready: %s" % (script, self.err.text()))

    def ask(self, seconds=PATIENCE_SECONDS, **command):
        self.say(json.dumps(command))
        line = self.out.wait("[", seconds)
        if line is None:
            raise RuntimeError("no answer to %s: %s" % (command, self.err.text()))
        return json.loads(line)


class Recording(Process):
    """rlscope-bpf attach; with `live` it returns when every probe is live."""

    def __init__(self, pids, *arguments, roles=ROLES, folder=None, live=True, prefix=(), **options):
        self.owned = None if folder else tempfile.TemporaryDirectory(prefix="rls-")
        self.folder = folder or self.owned.name
        self.trace = os.path.join(self.folder, "trace")
        self.report_path = os.path.join(self.folder, "report.json")
        command = [*prefix, BINARY, "attach"]
        for pid in pids:
            command += ["--pid", str(pid)]
        command += [*EXACT, *roles, "-o", self.trace, "--format", "json",
                    "--report", self.report_path, *arguments]
        self.start = time.monotonic()
        super().__init__(command, **options)
        self.recording_seconds = None
        if live:
            self.wait_live()

    def wait_live(self):
        if self.err.wait("recording", RECORDING_SECONDS) is None:
            raise RuntimeError("never recording: status %s, %s" % (
                self.child.poll(), self.err.text()))
        self.recording_seconds = time.monotonic() - self.start

    def wait_probed(self, pid, name):
        """Until the process's library is probed, of one recorded with -v."""
        begin = "rlscope-bpf: debug: process %d: " % pid
        if not eventually(lambda: any(line.startswith(begin) and name in line and line.endswith(" is probed\n")
                                      for line in self.err.seen)):
            raise RuntimeError("%s is not probed: %s" % (name, self.err.text()))

    def wait_tables(self, pid):
        """Until the process's method tables were read again after its last library was probed: modules
        fill them after they are mapped. Of one recorded with -v."""
        begin = "rlscope-bpf: debug: process %d: " % pid

        def last(text):
            return max((i for i, line in enumerate(self.err.seen)
                        if line.startswith(begin) and text in line), default=-1)
        if not eventually(lambda: last("tables read again") > last("is probed")):
            raise RuntimeError("tables are not read again: %s" % self.err.text())

    def stop(self, number=signal.SIGINT):
        """Ends recording; the exit status."""
        start = time.monotonic()
        self.child.send_signal(number)
        status = self.wait()
        self.stop_seconds = time.monotonic() - start
        return status

    def report(self):
        with open(self.report_path) as stream:
            return json.load(stream)

    def __exit__(self, *error):
        super().__exit__(*error)
        if self.owned:
            self.owned.cleanup()


def run(*arguments, **options):
    """rlscope-bpf with these arguments, to its end."""
    return subprocess.run([BINARY, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace",
                          timeout=options.pop("timeout", PATIENCE_SECONDS), **options)


def check_walks(checks, report, one_in=200):
    """Of stacks that were walked, fewer than one in so many failed, and for the one reason there is:
    CPython 3.11 and 3.12 have no whole stack for some instructions after C has called Python."""
    said = [w for w in report["warnings"] if w.startswith("samples")]
    entering = [w for w in said if "entering Python" in w]
    checks.that(said == entering, "no other samples lack anything: %s" % said)
    for taken, failed in [[int(word) for word in w.replace(",", "").split() if word.isdigit()]
                          for w in entering]:
        checks.that(failed <= taken / one_in, "of %d walks %d failed" % (taken, failed))


def flows(report, of_process=False):
    """{(pid, tid): {"from->to": n}} over phases and operations; {pid: …} of_process."""
    found = collections.defaultdict(collections.Counter)
    for entry in report["transitions"]:
        key = entry["pid"] if of_process else (entry["pid"], entry["tid"])
        found[key]["%s->%s" % (entry["from"], entry["to"])] += entry["count"]
    return found


def check_truth(checks, report, rows):
    """Each row's transitions, exactly; what differs is printed."""
    found = flows(report)
    exact, lesser = 0, []
    for row in rows:
        got = {flow: n for flow, n in found.get((row["pid"], row["tid"]), {}).items() if n}
        if got == row["truth"]:
            exact += 1
        elif row.get("lesser") and got == row["lesser"]:
            lesser.append(row["kind"])
        else:
            checks.that(False, "%s: truth %s, reported %s" % (row["kind"], row["truth"], got))
    total = sum(sum(row["truth"].values()) for row in rows)
    if lesser:
        checks.saw("only their entries are traced, as documented: %s" % " ".join(lesser))
    checks.that(exact + len(lesser) == len(rows) and rows, "%d of %d threads exact, %d transitions in all" % (
        exact, len(rows), total))


def check_sums(checks, report):
    """A thread's cpu and cpu+gpu rows sum to its wall_ns, to the nanosecond."""
    sums = collections.Counter()
    for row in report["breakdown"]:
        if row["resource"] in ("cpu", "cpu+gpu"):
            sums[row["pid"], row["tid"]] += row["wall_ns"]
    wrong = ["tid %d: rows %d, wall %d" % (thread["tid"], sums[thread["pid"], thread["tid"]],
                                           thread["wall_ns"])
             for thread in report["threads"]
             if sums[thread["pid"], thread["tid"]] != thread["wall_ns"]]
    checks.that(report["threads"] and not wrong,
                "rows of %d threads sum to their wall time%s" % (
                    len(report["threads"]), "".join("; " + w for w in wrong[:5])))


def check_lossless(checks, report):
    lost = [loss for loss in report["losses"] if loss["dropped"]]
    checks.that(not lost and report["complete"], "complete, losses: %s" % (lost or "none"))


def copy_for_others(folder):
    """The profiler where any user may run it."""
    os.chmod(folder, 0o755)
    path = os.path.join(folder, "rlscope-bpf")
    shutil.copy(BINARY, path)
    os.chmod(path, 0o755)
    return path


NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}
