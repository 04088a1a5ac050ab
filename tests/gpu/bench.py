"""What the checks of gpu_check.py work with: interpreters, jobs, recordings, fixtures."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURE_LINES = 4000
FIXTURE_BYTES = 512 << 10
IMPORT_SECONDS = 60
ARMED_SECONDS = 0.5  # in which the bridge has seen that someone looks
IMPORTS = {"torch": "import torch; assert torch.cuda.is_available()",
           "jax": "import jax; assert jax.default_backend() == 'gpu'",
           "triton": "import triton, torch; assert torch.cuda.is_available()"}


class NotPossible(Exception):
    """Something is missing here that the check needs."""


class Bench:
    def __init__(self, options):
        self.tree, self.fakes, self.out = options.tree, options.fakes, options.out
        self.binary = os.path.join(self.tree, "rlscope-bpf")
        self.bridge = os.path.join(self.tree, "librlscope_cupti.so")
        self.alone = find_alone(self.tree)
        self.job = os.path.join(HERE, "cuda_job.py")
        self.pythons = {"torch": options.python} if options.python else {}
        self.children = []
        self.scratch = tempfile.mkdtemp(prefix="rlscope-gpu-")
        self.kept = os.path.join(self.scratch, "fixtures")
        os.mkdir(self.kept)

    def environment(self, bridge=True, **more):
        added = {"PYTHONPATH": os.path.join(self.tree, "python"), **more}
        if self.fakes:
            added["LD_LIBRARY_PATH"] = os.path.join(self.fakes, "13")
            added["RLS_JOB"] = "fakes"
        if bridge:
            added.setdefault("CUDA_INJECTION64_PATH", self.bridge)
        return dict(os.environ, **added)

    def python(self, kind="torch"):
        """An interpreter in which this framework sees the GPU; with fakes any will do."""
        if kind not in self.pythons:
            self.pythons[kind] = sys.executable if self.fakes else find_python(IMPORTS[kind])
        if not self.pythons[kind]:
            raise NotPossible("no Python here has %s and sees the GPU by it" % kind)
        return self.pythons[kind]

    def program(self, name):
        """A .cu file beside this one, compiled by the nvcc that is here."""
        nvcc = shutil.which("nvcc") or next(iter(glob.glob("/usr/local/cuda*/bin/nvcc")), None)
        if not nvcc:
            raise NotPossible("there is no nvcc here")
        made = os.path.join(self.scratch, name)
        done = subprocess.run([nvcc, "-o", made, os.path.join(HERE, name + ".cu")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        if done.returncode:
            raise NotPossible("nvcc cannot compile here: %s" % done.stdout[-300:])
        return made

    def start(self, *arguments, kind="torch", **more):
        """A job that has begun; it prints JSON when it has ended."""
        if not self.fakes:
            more["RLS_JOB"] = kind
        return self.start_command([self.python(kind), self.job, *arguments], **more)

    def start_command(self, command, **more):
        child = subprocess.Popen(command, env=self.environment(**more), stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, encoding="utf-8")
        self.children.append(child)
        line = child.stdout.readline()
        if not line.startswith("ready"):
            child.kill()
            raise NotPossible("the job does not start: %r" % line)
        return child

    def why_no_recorder(self):
        """None: a process can be recorded here; else what the recorder says to it."""
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.children.append(child)
        time.sleep(0.3)
        try:
            self.recorded(["attach", "--pid", str(child.pid)], ["--duration", "0.2"])
        except (NotPossible, OSError, ValueError, subprocess.TimeoutExpired) as reason:
            return str(reason)
        finally:
            self.clean_up()
        return None

    def need_alone(self):
        if not self.alone:
            raise NotPossible("there is no librlscope_cupti_alone.so in the tree")

    def clean_up(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        self.children = []

    def ended(self, child):
        """What the job says at its end."""
        reported = child.stdout.read()
        child.wait(timeout=10)
        return json.loads(reported.splitlines()[-1])

    def stopped(self, child):
        """The same, of one that goes on until its input ends (--until-input-ends)."""
        child.stdin.close()
        return self.ended(child)

    def record(self, job, *arguments, name=None, go=False):
        """(report, events) of a recording of a job, to its end if nothing else is said. Says "go" to
        one that waits for it (--await-go) once the recorder is there."""
        def say():
            if go:
                time.sleep(ARMED_SECONDS)
                job.stdin.write("go\n")
                job.stdin.flush()
        return self.recorded(["attach", "--pid", str(job.pid)], arguments, name, on_recording=say)

    def run(self, *arguments, kind="torch", **more):
        """(report, events) of a job that is recorded from its first instruction."""
        command = [self.python(kind), self.job, *arguments]
        if not self.fakes:
            more["RLS_JOB"] = kind
        return self.recorded(["run"], ["--report", "/dev/stderr", "--", *command],
                             environment=self.environment(bridge=False, **more))

    def recorded(self, command, arguments, name=None, environment=None, on_recording=lambda: None):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            where = os.path.join(folder, "report")
            arguments = [where if part == "/dev/stderr" else part for part in arguments]
            if where not in arguments:
                arguments = ["--report", where, *arguments]
            follow([self.binary, *command, "-o", trace, "--format", "json", "--overhead-budget", "none",
                    *arguments], environment, on_recording)
            with open(where) as stream:
                report = json.load(stream)
            dump = subprocess.run([self.binary, "dump", trace], stdout=subprocess.PIPE,
                                  encoding="utf-8", check=False).stdout.splitlines()
        if name:
            self.keep(name, dump)
        return report, [json.loads(line) for line in dump]

    def keep(self, name, lines):
        with open(os.path.join(self.kept, name + ".jsonl"), "w") as stream:
            stream.write("\n".join(lines[:FIXTURE_LINES]) + "\n")

    def keep_bytes(self, name, path):
        with open(path, "rb") as source, open(os.path.join(self.kept, name), "wb") as made:
            made.write(source.read(FIXTURE_BYTES))

    def pack_fixtures(self):
        """One file for all, after each check: who is cut off has what there was."""
        if os.listdir(self.kept):
            with tarfile.open(os.path.join(self.out, "fixtures.tar.gz"), "w:gz") as archive:
                archive.add(self.kept, "fixtures")

    def close(self):
        self.clean_up()
        shutil.rmtree(self.scratch, ignore_errors=True)


def follow(command, environment, on_recording):
    """Runs the recorder to its end; calls back when it has said that it records."""
    reported = []
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, encoding="utf-8") as recorder:
        try:
            for line in recorder.stderr:
                reported.append(line.strip())
                if line.startswith("recording "):
                    on_recording()
        except BaseException:
            recorder.kill()
            raise
    if recorder.returncode:
        raise NotPossible(reported[-1] if reported else "it failed")


def find_alone(tree):
    """The bridge whose batches go into a file: beside the others in a packed tree."""
    places = [os.path.join(tree, part, "librlscope_cupti_alone.so") for part in ("", "tests/gpu")]
    return next((place for place in places if os.path.exists(place)), None)


def find_python(test):
    """The first interpreter here that passes, or None."""
    places = [sys.executable, *glob.glob("/opt/*/bin/python3"), "/usr/local/bin/python3",
              *glob.glob("/root/*/bin/python3"), *glob.glob("/home/*/*/bin/python3"), "/usr/bin/python3"]
    for python in dict.fromkeys(place for place in places if os.access(place, os.X_OK)):
        try:
            if subprocess.run([python, "-c", test], stderr=subprocess.DEVNULL, check=False,
                              timeout=IMPORT_SECONDS).returncode == 0:
                return python
        except subprocess.TimeoutExpired:
            pass
    return None


def kernels(report):
    return sum(gpu["kernels"] for gpu in report["gpu"])


def busy_ns(report):
    return sum(gpu["busy_ns"] for gpu in report["gpu"])


def launched(events):
    """When each launch that CUPTI tells of began, by its number."""
    return {event["correlation"]: event["time_ns"] for event in events if event["event"] == "launch"}


def launch_delays(events):
    """From the beginning of each launch to that of its work, sorted."""
    begun = launched(events)
    return sorted(event["start_ns"] - begun[event["correlation"]] for event in events
                  if event["event"] == "gpu" and event.get("correlation") in begun)


def quartiles(values):
    return [values[(len(values) - 1) * part // 4] for part in range(5)] if values else []


def lost(report):
    return {loss["buffer"]: loss["dropped"] for loss in report["losses"] if loss["dropped"]}
