#!/usr/bin/python3
"""run -- CMD: the command's own status, its streams, and the report after it."""

import json
import os
import signal
import subprocess
import tempfile
import time

import harness

CALLS = ("import sys; sys.path.insert(0, %r)\n"
         "import truthsim\n"
         "for _ in range(300): truthsim.noargs()\n")


def run(folder, command, *arguments, **options):
    return harness.run("run", *harness.EXACT, *harness.ROLES, "-o", os.path.join(folder, "trace"),
                       *arguments, "--", *command, **options)


def statuses(checks, folder, python):
    for status in (0, 7, 255):
        done = run(folder, [python, "-c", "import os; os._exit(%d)" % status])
        checks.that(done.returncode == status, "exit %d: status %d" % (status, done.returncode))
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL):
        done = run(folder, [python, "-c", "import os; os.kill(os.getpid(), %d)" % number])
        checks.that(done.returncode == 128 + number, "killed by %d: status %d" % (
            number, done.returncode))


def not_executed(checks, folder):
    """What only the kernel finds out: a program whose loader is not there. tests/commands/run.py has the rest."""
    with open("/bin/true", "rb") as stream:
        program = stream.read().replace(b"/lib64/ld-linux-x86-64.so.2\0", b"/lib64/no-such-loader.so.2\0\0")
    path, report = os.path.join(folder, "no-loader"), os.path.join(folder, "not-written")
    with open(path, "wb") as stream:
        stream.write(program)
    os.chmod(path, 0o755)
    done = run(folder, [path], "--report", report)
    checks.that(done.returncode == 127 and "cannot run " + path in done.stderr and not done.stdout,
                "no loader: status %d, %r, %r" % (done.returncode, done.stderr, done.stdout))
    left = sorted(set(os.listdir(folder)) - {"no-loader"})
    checks.that(not left, "neither a trace nor a report is left: %s" % left)


def short_words(checks, folder):
    """What has ended before anyone could look has the words that it was started with."""
    for _ in range(5):
        report = json.loads(run(folder, ["/bin/true", "at once"], "--format", "json").stdout)
        words = report["processes"][0]["cmdline"]
        if not checks.that(words == ["/bin/true", "at once"], "the words of a short command: %s" % words):
            break


def streams(checks, folder, python):
    path = os.path.join(folder, "report.json")
    script = ("import sys; sys.stdout.write(sys.stdin.read().upper()); "
              "sys.stderr.write('to stderr\\n')")
    done = run(folder, [python, "-c", script], "--format", "json", "--report", path,
               input="a line\nanother\n")
    checks.that(done.returncode == 0 and done.stdout == "A LINE\nANOTHER\n",
                "stdin and stdout are the command's: %r" % done.stdout)
    checks.that("to stderr" in done.stderr, "so is stderr")
    with open(path) as stream:
        checks.that(json.load(stream)["version"] == 1, "--report FILE has the report")


def report_follows(checks, folder, python):
    script = CALLS % harness.modules() + "print('the command is done', flush=True)\n"
    done = run(folder, [python, "-c", script], "--format", "json")
    first, _, rest = done.stdout.partition("\n")
    report = json.loads(rest)
    checks.that(done.returncode == 0 and first == "the command is done",
                "the report follows the command's output on stdout")
    pid = report["processes"][0]["pid"]
    found = {flow: n for flow, n in harness.flows(report, of_process=True)[pid].items() if n}
    checks.saw("300 calls at once after the import: %s" % found)
    checks.that(found.get("simulator->python", 0) <= 301, "no more transitions than calls")
    harness.check_sums(checks, report)


def counts_after_import(checks, folder, python):
    """Calls made after the import, once its library has been seen, are all counted."""
    script = (CALLS % harness.modules()).replace("for _", "print('imported', flush=True)\ninput()\nfor _")
    path = os.path.join(folder, "report.json")
    command = [harness.BINARY, "run", "-v", *harness.EXACT, *harness.ROLES, "-o", os.path.join(folder, "trace"),
               "--format", "json", "--report", path, "--", python, "-c", script]
    with harness.Process(command) as process:
        process.out.wait("imported", harness.PATIENCE_SECONDS)
        seen = harness.eventually(lambda: any("truthsim" in line and line.endswith(" is probed\n")
                                              for line in process.err.seen))
        process.say("")
        status = process.wait()
    with open(path) as stream:
        report = json.load(stream)
    found = {flow: n for process in harness.flows(report, of_process=True).values()
             for flow, n in process.items() if n}
    checks.that(seen and status == 0 and found == {"python->simulator": 300, "simulator->python": 300},
                "300 calls after the import: %s" % found)


def asleep(checks, folder, python):
    """What sleeps is off the CPU from its first instant, also where no probe is ever hit."""
    late = "import time; time.sleep(1)\n" + CALLS % harness.modules()
    for name, command in (("a program with late calls", [python, "-c", late]),
                          ("a child without any", ["sh", "-c", "sleep 1; true"])):
        done = run(folder, command, "--format", "json")
        threads = json.loads(done.stdout)["threads"]
        slept_ns = [thread["wall_ns"] - thread["on_cpu_ns"] for thread in threads]
        checks.that(slept_ns and min(slept_ns) > 0.9e9, "%s: off the CPU for %s" % (name, slept_ns))


def interrupted(checks, folder, python):
    """Ctrl-C reaches both; the command's way of ending is what counts."""
    path = os.path.join(folder, "report.json")
    script = ("import signal, sys, time\n"
              "signal.signal(signal.SIGINT, lambda *_: sys.exit(5))\n"
              "print('ready', flush=True)\n"
              "for _ in range(60000): time.sleep(0.01)\n")
    command = [harness.BINARY, "run", *harness.EXACT, *harness.ROLES, "-o",
               os.path.join(folder, "trace"), "--report", path, "--", python, "-c", script]
    with harness.Process(command, start_new_session=True) as process:
        checks.that(process.out.wait("ready", harness.PATIENCE_SECONDS) is not None, "the command began")
        os.killpg(process.pid, signal.SIGINT)
        try:
            status = process.wait(harness.PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        checks.that(status == 5, "Ctrl-C: status %s" % status)
        checks.that(os.path.exists(path) and os.path.getsize(path) > 0, "Ctrl-C: a report is there")


def passed_on(checks, folder, python):
    """Every signal reaches the command once, whoever it is sent to and however many came before."""
    script = ("import signal, sys, time\n"
              "seen = []\n"
              "def see(number, _):\n    seen.append(number)\n    print('seen', flush=True)\n"
              "for number in (signal.SIGINT, signal.SIGHUP):\n    signal.signal(number, see)\n"
              "signal.signal(signal.SIGTERM, lambda *_: sys.exit(len(seen)))\n"
              "print('ready', flush=True)\n"
              "for _ in range(60000): time.sleep(0.01)\n")
    command = [harness.BINARY, "run", *harness.EXACT, *harness.ROLES, "-o", os.path.join(folder, "trace"),
               "--report", os.path.join(folder, "report"), "--", python, "-c", script]
    with harness.Process(command, start_new_session=True) as process:
        checks.that(process.out.wait("ready", harness.PATIENCE_SECONDS) is not None, "the command began")
        for send, number in ((os.killpg, signal.SIGINT), (os.killpg, signal.SIGINT), (os.kill, signal.SIGINT),
                             (os.kill, signal.SIGHUP), (os.killpg, signal.SIGHUP), (os.kill, signal.SIGTERM)):
            send(process.pid, number)
            if number != signal.SIGTERM:
                process.out.wait("seen", harness.PATIENCE_SECONDS)
                time.sleep(0.2)     # for another of the same, which there must not be
        try:
            status = process.wait(harness.PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = None
        checks.that(status == 5, "of five signals the command saw %s before SIGTERM" % status)


def children_ignored(checks, folder, python):
    """An ignored SIGCHLD is inherited: the command still is, and its status is not lost."""
    script = "import signal, sys; sys.exit(7 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 8)"
    done = run(folder, [python, "-c", script], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    checks.that(done.returncode == 7, "SIGCHLD ignored: status %d" % done.returncode)
    done = run(folder, [python, "-c", script])
    checks.that(done.returncode == 8, "SIGCHLD not ignored: status %d" % done.returncode)


def main():
    harness.need_root_and_profiler()
    python = harness.interpreter()
    checks = harness.Checks()
    with tempfile.TemporaryDirectory(prefix="rls-") as folder:
        not_executed(checks, folder)
        statuses(checks, folder, python)
        short_words(checks, folder)
        streams(checks, folder, python)
        report_follows(checks, folder, python)
        counts_after_import(checks, folder, python)
        asleep(checks, folder, python)
        interrupted(checks, folder, python)
        passed_on(checks, folder, python)
        children_ignored(checks, folder, python)
    checks.finish()


if __name__ == "__main__":
    main()
