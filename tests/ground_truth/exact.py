#!/usr/bin/env python3
"""A process that makes a known number of boundary calls on request.

Lines of JSON on stdin are commands, each answered by one line on stdout:
  {"do": "kinds", "count": n}             every kind n times, each on a thread of its own
  {"do": "kinds", "count": n, "names": […]}
  {"do": "mix", "threads": 8, "count": n} the kinds of kinds.MIX on 8 threads at once
  {"do": "import", "modules": DIR}        import truthsim and truthback now (--late)
  {"do": "quit"}
An answer is a list of {"pid", "tid", "kind", "truth": {"python->simulator": n, …}}.

--self-check proves the truth by the modules' own counters, without a profiler.
"""

import argparse
import ctypes
import gc
import importlib
import json
import os
import sys
import threading

import kinds


def library_open(opener, folder, name):
    path = os.path.join(folder, name)
    return opener(path) if folder and os.path.exists(path) else None


def ctypes_declare(library):
    if library is None:
        return None
    library.truthc_add.restype = ctypes.c_double
    library.truthc_add.argtypes = [ctypes.c_double, ctypes.c_double]
    for name in ("truthc_callback", "truthc_nest"):
        getattr(library, name).restype = ctypes.c_long
        getattr(library, name).argtypes = [
            ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long), ctypes.c_long]
    return library


def module_optional(options, name):
    if name in getattr(options, "without", []):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def env_load(options):
    """The names that kinds' statements use."""
    sys.path.insert(0, options.modules)
    sim = importlib.import_module("truthsim")
    back = importlib.import_module("truthback")
    sim.bind(back._step)
    env = {"sim": sim, "back": back, "ctypes": ctypes,
           "c": ctypes_declare(library_open(ctypes.CDLL, options.libraries, "libtruthc.so")),
           "cpy": ctypes_declare(library_open(ctypes.PyDLL, options.libraries, "libtruthc.so")),
           "cxx": library_open(ctypes.CDLL, options.libraries, "libtruthcxx.so"),
           "pb": module_optional(options, "truthpb"), "nb": module_optional(options, "truthnb"),
           "cy": module_optional(options, "truthcy"), "ld": module_optional(options, "truthload")}
    return env


def row(names, truth):
    return {"pid": os.getpid(), "tid": threading.get_native_id(), "kind": names, "truth": truth}


def flows_add(total, more):
    for flow, count in more.items():
        total[flow] = total.get(flow, 0) + count
    return total


def on_thread(work):
    """Runs work() on a new thread and returns what it returns, or raises what it raises."""
    box = {}

    def body():
        try:
            box["answer"] = work()
        except BaseException as error:  # handed to the caller, who prints it
            box["error"] = error
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if "error" in box:
        raise box["error"]
    return box["answer"]


def do_kinds(env, command):
    wanted = command.get("names")
    rows = []
    for chosen in kinds.usable(env):
        if wanted and chosen.group + "." + chosen.name not in wanted:
            continue
        run = kinds.build(chosen, env)
        count = command["count"]

        def work():
            truth = kinds.truth_of(chosen, count)
            if chosen.needs in ("c", "cxx"):
                # Who calls an exported function is unknown at a thread's first event; of a
                # method it is always Python.
                env["sim"].noargs()
                flows_add(truth, {"python->simulator": 1, "simulator->python": 1})
            run(count)
            return dict(row(chosen.group + "." + chosen.name, truth),
                        lesser=kinds.lesser_of(chosen, count))
        rows.append(on_thread(work))
    return rows


def do_mix(env, command):
    mixed = [k for k in kinds.usable(env) if k.name in kinds.MIX and k.group != "cython"]
    start = threading.Barrier(command["threads"])
    rows = []

    def body(runs):
        start.wait()
        truth = {}
        for chosen, run in runs:
            run(command["count"])
            flows_add(truth, kinds.truth_of(chosen, command["count"]))
        rows.append(row("mix", truth))
    threads = [threading.Thread(target=body, args=([(k, kinds.build(k, env)) for k in mixed],))
               for _ in range(command["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rows


def self_check(env):
    """Counts of the modules' own against the truth claimed; the list of differences."""
    wrong = []
    for chosen in kinds.usable(env):
        if chosen.needs:
            continue  # these libraries count nothing themselves
        run = kinds.build(chosen, env)

        def work():
            run(10)
            return env["sim"].counts(), env["back"].counts()
        (entries, callouts, crossings), (back_in, back_out, _) = on_thread(work)
        jumps = 10 * chosen.jumps
        counted = {"python->simulator": entries - 1 + callouts - jumps,
                   "simulator->python": entries - 1 + callouts - jumps,
                   "python->backend": back_in - 1 + back_out,
                   "backend->python": back_in - 1 + back_out,
                   "simulator->backend": crossings, "backend->simulator": crossings}
        counted = {flow: n for flow, n in counted.items() if n}
        if counted != kinds.truth_of(chosen, 10):
            wrong.append("%s: counted %s, claimed %s" % (
                chosen.name, counted, kinds.truth_of(chosen, 10)))
    return wrong


def answer(env, options, command):
    if command["do"] == "import":
        options.modules = command["modules"]
        env.update(env_load(options))
        return []
    if command["do"] == "mix":
        return do_mix(env, command)
    return do_kinds(env, command)


def serve(env, options):
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in iter(sys.stdin.readline, ""):
        command = json.loads(line)
        if command["do"] == "quit":
            break
        print(json.dumps(answer(env, options, command)), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True)
    parser.add_argument("--libraries", default="")
    parser.add_argument("--without", action="append", default=[], help="a module not to import")
    parser.add_argument("--late", action="store_true", help="import nothing before the request")
    parser.add_argument("--self-check", action="store_true")
    options = parser.parse_args()
    gc.disable()
    env = {} if options.late else env_load(options)
    if not options.self_check:
        serve(env, options)
        return 0
    wrong = self_check(env)
    for sentence in wrong:
        print(sentence)
    print("%d kinds checked, %d wrong" % (len(kinds.usable(env)), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
