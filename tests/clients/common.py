"""What the tests of one client each share: a trace, its figures, and where clients are."""
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

BIN = os.environ["RLS_BIN"]
CACHE = pathlib.Path(os.environ.get("RLSCOPE_CLIENTS") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "rlscope-bpf", "clients"))
CATEGORIES = ["python", "simulator", "backend", "cuda_api", "native", "unknown"]
OPERATIONS = ["step", "inference", 'back "propagation"', "<b>", "naïve; 100", "python"]


def skip(reason):
    print("SKIP:", reason)
    sys.exit(77)


def with_client_packages(*modules):
    """Runs the caller again under the clients' own interpreter, unless these are here already."""
    try:
        for module in modules:
            __import__(module)
    except ImportError as error:
        python = CACHE / "python" / "bin" / "python"
        if not python.exists() or os.environ.get("RLS_CLIENTS_TRIED"):
            skip(f"{error}; `scripts/setup clients` installs it")
        os.environ["RLS_CLIENTS_TRIED"] = "1"
        os.execv(python, [str(python), *sys.argv])


def thread_events(chance, pid, tid, end_ns):
    """A life of nested operations, of categories, and of launches whose work follows."""
    at, stack, correlation = chance.randrange(1000), [], tid * 1000
    yield {"event": "thread", "time_ns": at, "pid": pid, "tid": tid, "name": f"worker {tid}"}
    while at < end_ns:
        at += chance.randrange(1, 2000)
        who = {"time_ns": at, "pid": pid, "tid": tid}
        what = chance.random()
        if what < 0.5:
            yield {"event": "category", **who, "category": chance.choice(CATEGORIES)}
        elif what < 0.8:
            stack = stack[:-1] if stack and chance.random() < 0.5 else (stack + [chance.choice(OPERATIONS)])[:6]
            yield {"event": "operation", **who, "stack": stack}
        elif what < 0.9:
            yield {"event": "hits", **who, "count": 3, "cost_ns": chance.randrange(200)}
            yield {"event": "off_cpu", **who, "ns": chance.randrange(300)}
        else:
            correlation += 1
            start = at + chance.randrange(1, 3000)
            yield {"event": "launch", **who, "name": "cudaLaunchKernel", "correlation": correlation}
            yield {"event": "gpu", "pid": pid, "device": chance.randrange(2), "stream": chance.randrange(3), "kind": "kernel",
                   "name": chance.choice(["gemm", "relu"]), "start_ns": start, "end_ns": start + chance.randrange(1, 2500),
                   "correlation": correlation}


def events(complete):
    chance, end_ns = random.Random(8), 400_000
    for pid in (100, 200):
        yield {"event": "process", "time_ns": 0, "pid": pid, "ppid": 1, "name": f"train {pid}"}
        for at in range(0, end_ns, 50_000):
            yield {"event": "phase", "time_ns": at, "pid": pid, "phase": chance.choice(["collect", "train", ""])}
        for tid in range(pid, pid + 3):
            yield from thread_events(chance, pid, tid, end_ns)
        for at in range(0, end_ns, 20_000):
            yield {"event": "memory_use", "time_ns": at, "pid": pid, "rss_bytes": (1 << 20) + chance.randrange(1 << 20)}
        yield {"event": "memory_use", "time_ns": 9000, "pid": pid, "gpu": True, "device": 1, "allocated_bytes": 4096 + pid}
    # A process of which the GPU alone is seen.
    yield {"event": "process", "time_ns": 0, "pid": 300, "ppid": 1, "name": "server"}
    yield {"event": "gpu", "pid": 300, "device": 0, "kind": "memcpy", "name": "", "start_ns": 2000, "end_ns": 9000}
    if complete:
        yield {"event": "end", "time_ns": end_ns + 5000, "complete": True}


class Trace:
    """A trace in a temporary folder, and what `report` makes of it."""

    def __init__(self, complete=True):
        self.folder = tempfile.TemporaryDirectory(prefix="rlscope-clients-")
        self.path = pathlib.Path(self.folder.name, "events.jsonl")
        self.path.write_text("".join(json.dumps(event) + "\n" for event in events(complete)))
        self.status = 0 if complete else 3
        self.model = json.loads(self.report("json").read_text())

    def report(self, form, *arguments):
        output = pathlib.Path(self.folder.name, f"report.{form}{''.join(arguments)}")
        run = subprocess.run([BIN, "report", "--format", form, "-o", output, *arguments, self.path], capture_output=True,
                             text=True, timeout=600)
        assert run.returncode == self.status, run.stderr
        return output

    def sums(self, value, *keys, resources=("cpu", "cpu+gpu")):
        """The breakdown's figures by these columns, without zeros."""
        sums = collections.Counter()
        for row in self.model["breakdown"]:
            if row["resource"] in resources:
                sums[tuple(row[key] for key in keys)] += row[value]
        return {key: figure for key, figure in sums.items() if figure}

    def warnings(self):
        assert bool(self.model["warnings"]) == (self.status == 3)
        return self.model["warnings"]
