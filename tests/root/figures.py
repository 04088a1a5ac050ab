"""What a report says of known calls, without what no two recordings share: times, and numbers of
processes and threads. Two kernels must say the same of the same calls (tests/vm).

RLS_FIGURES_SAVE=FILE keeps it; RLS_FIGURES_LIKE=FILE holds it against what was kept, and keeps
nothing.
"""

import json
import os


def figures_of(report, rows):
    """rows: the truth, which names the threads."""
    names = {(row["pid"], row["tid"]): "%03d %s" % (number, row["kind"])
             for number, row in enumerate(rows)}

    crossed = {(entry["pid"], entry["tid"], entry[side]) for entry in report["transitions"] for side in ("from", "to")}

    def named(entry):
        return names.get((entry["pid"], entry["tid"]), "another thread")
    return {
        "threads": sorted(named(thread) for thread in report["threads"]),
        "transitions": sorted(
            [named(entry), entry["phase"], entry["operation"], entry["from"], entry["to"], entry["count"]]
            for entry in report["transitions"]),
        # What a thread did beside its calls is what samples happened to meet.
        "breakdown": sorted(
            [named(entry), entry["phase"], entry["operation"], entry["category"], entry["resource"]]
            for entry in report["breakdown"] if (entry["pid"], entry["tid"], entry["category"]) in crossed),
        "processes": [[process["name"], process["cmdline"], process["python"], sorted(
            [library["path"], library["role"], library["sites"]] for library in process["libraries"])]
            for process in report["processes"]],
        "hits": report["overhead"]["hits"],
        "losses": report["losses"],
        "complete": report["complete"],
    }


def check_same(checks, report, rows):
    found = json.loads(json.dumps(figures_of(report, rows)))
    save, like = os.environ.get("RLS_FIGURES_SAVE"), os.environ.get("RLS_FIGURES_LIKE")
    if like:
        with open(like) as stream:
            wanted = json.load(stream)
        for name, value in wanted.items():
            checks.that(found[name] == value, "the same %s as under the other kernel%s" % (
                name, "" if found[name] == value else ": %s, there %s" % (found[name], value)))
    elif save:
        with open(save, "w") as stream:
            json.dump(found, stream)
