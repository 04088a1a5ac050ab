"""bpftrace on some of the functions that rlscope-bpf probes, as its users would time them.

It puts probes on one by one (0.1 s each to take off again), so only on the functions that
training loops call most. Every one is timed by entry and return, per thread.
"""

import json
import os
import shutil
import subprocess
import tempfile

import pairs

BUSIEST = {"linear", "relu", "mse_loss", "add_", "mul_", "lerp_", "addcmul_", "addcdiv_", "sqrt",
           "div_", "zero_", "run_backward", "_foreach_add_", "_foreach_lerp_", "_foreach_mul_",
           "_foreach_addcmul_", "_foreach_addcdiv_", "_foreach_sqrt", "_foreach_div_", "dim",
           "detach", "to", "numpy", "is_floating_point", "grad", "shape", "requires_grad"}
FUNCTIONS_MAX = 60


def segments(path):
    """[(file offset, bytes, address less offset)] of what of the file is executed."""
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                          check=False).stdout
    found = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in "".join(words[6:8]):
            offset, address, size = (int(words[i], 16) for i in (1, 2, 4))
            found.append((offset, size, address - offset))
    return found


def functions(pid):
    """[(path, address)] of the busiest functions that are entered."""
    probes = subprocess.run([pairs.BINARY, "probes", "--pid", str(pid), "--format", "json"],
                            capture_output=True, text=True, check=False)
    if probes.returncode:
        raise pairs.Failed(probes.stderr.strip()[-100:])
    found = []
    for library in json.loads(probes.stdout)["libraries"]:
        parts = segments(library["path"]) if library["sites"] else []
        for site in library["sites"]:
            if site["kind"] != "enter" or site["name"].rpartition(".")[2] not in BUSIEST:
                continue
            found += [(library["path"], site["offset"] + shift) for offset, size, shift in parts
                      if offset <= site["offset"] < offset + size]
    return found[:FUNCTIONS_MAX]


class Bpftrace:
    """A profiler for pairs.turn_about."""

    def begin(self, pid):
        if not shutil.which("bpftrace"):
            raise pairs.Failed("it is not installed")
        found = functions(pid)
        if not found:
            raise pairs.Failed("none of the busiest functions is there")
        self.count = len(found)
        self.script = tempfile.NamedTemporaryFile("w", suffix=".bt")
        for path, address in found:
            self.script.write("uprobe:%s:0x%x { @entered[tid] = nsecs; }\n"
                              "uretprobe:%s:0x%x { @spent = sum(nsecs - @entered[tid]); }\n"
                              % (path, address, path, address))
        # Heard of once everything is attached.
        self.script.write('interval:ms:100 { printf("live\\n"); }\n')
        self.script.flush()
        self.process = pairs.start(["bpftrace", "--unsafe", "-p", str(pid), self.script.name],
                                   env=dict(os.environ, BPFTRACE_MAX_PROBES="10000"))
        self.out, self.err = pairs.Lines(self.process.stdout), pairs.Lines(self.process.stderr)
        try:
            self.out.wait("live")
        except pairs.Failed as error:
            self.process.kill()
            self.process.wait()
            raise pairs.Failed("%s %s" % (error, "".join(self.err.seen[-2:]).strip()[-200:])) from None

    def end(self):
        self.process.kill()
        self.process.wait(pairs.PATIENCE_SECONDS)
        return {"more": {"functions": self.count}}
