"""The profile in speedscope itself, in Chromium: the same threads, frames and totals."""
import base64
import html
import json
import pathlib
import re
import subprocess
import sys

import common

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "browser"))
import chromium  # noqa: E402

UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def show(page, profile, folder):
    """The document after speedscope has shown the profile's table of frames."""
    script = pathlib.Path(folder, "profile.js")
    content = base64.b64encode(profile.read_bytes()).decode()
    script.write_text(f"speedscope.loadFileFromBase64('trace.json', '{content}')")
    run = subprocess.run([chromium.find(), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000",
                          f"--user-data-dir={folder}/browser", "--dump-dom",
                          f"file://{page}#view=sandwich&localProfilePath={script}"], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return run.stdout


def duration_ns(text):
    number, unit = re.match(r"([\d.]+)(ns|µs|ms|s)", text).groups()
    return float(number) * UNITS[unit]


def close(shown, exact):
    """As near as two decimals can be."""
    return abs(duration_ns(shown) - exact) <= 0.0051 * UNITS[re.search(r"[^\d.]+", shown)[0].split()[0].split("(")[0]]


def cells(document):
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", document, re.S):
        yield [html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]


def check_profiles(trace, document):
    """The list of profiles: one for each thread, as long as its life."""
    for thread in trace.model["threads"]:
        process = next(process for process in trace.model["processes"] if process["pid"] == thread["pid"])
        name = f"{process['name']} ({thread['pid']}), thread {thread['name']} ({thread['tid']})"
        row = next(row for row in cells(document) if len(row) == 3 and row[1] == name)
        assert close(row[2], thread["wall_ns"]), (row, thread)


def check_frames(trace, document, pid, tid):
    """The frames of the profile shown: a category's own time is that of the thread's rows."""
    own = {category: ns for (p, t, category), ns in trace.sums("wall_ns", "pid", "tid", "category").items() if (p, t) == (pid, tid)}
    rows = {row[-1]: row for row in cells(document) if len(row) >= 3 and "%" in row[0]}
    seen = [category for category in own if category in rows]
    assert len(seen) >= 3, rows
    for category in seen:
        # The first column is the total, the second the frame's own.
        assert close(rows[category][1], own[category]), (rows[category], own)


def check_samples(page, folder):
    """The sampled profile, alone in its file so that speedscope shows it: the same total, every frame."""
    events = pathlib.Path(__file__).parents[1] / "golden" / "samples" / "events.jsonl"
    rows = json.loads(subprocess.check_output([common.BIN, "report", "--format", "json", events]))["samples"]
    content = json.loads(subprocess.check_output([common.BIN, "report", "--format", "speedscope", events]))
    content["profiles"] = [profile for profile in content["profiles"] if profile["type"] == "sampled"]
    profile, = content["profiles"]
    assert sum(profile["weights"]) == profile["endValue"] == sum(row["ns"] for row in rows)
    only = pathlib.Path(folder, "sampled.speedscope")
    only.write_text(json.dumps(content))
    names = ("python3 (1), sampled", "Agent.act", "addmm", "[sleep]")
    # The browser's own clock may end before the page is complete.
    for _ in range(5):
        document = html.unescape(show(page, only, folder))
        if all(name in document for name in names):
            break
    for name in names:
        assert name in document, name


def main():
    page = common.CACHE / "node" / "node_modules" / "speedscope" / "dist" / "release" / "index.html"
    if not page.exists():
        common.skip("there is no speedscope; `scripts/setup clients` installs it")
    if not chromium.find():
        common.skip("there is no Chromium")
    trace = common.Trace()
    profile = trace.report("speedscope")
    content = json.loads(profile.read_text())
    first = content["profiles"][0]["name"]
    tid = int(re.search(r"\((\d+)\)$", first)[1])
    document = show(page, profile, trace.folder.name)
    assert first in html.unescape(document)
    check_profiles(trace, document)
    check_frames(trace, document, next(t["pid"] for t in trace.model["threads"] if t["tid"] == tid), tid)

    check_samples(page, trace.folder.name)

    cut_short = common.Trace(complete=False)
    profile = cut_short.report("speedscope")
    assert json.loads(profile.read_text())["warnings"] == cut_short.warnings()
    assert "with warnings" in show(page, profile, cut_short.folder.name)
    print(len(content["profiles"]), "profiles")


main()
