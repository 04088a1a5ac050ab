#!/usr/bin/python3
"""The HTML report in Chromium: test_html.py CASE...

Each case makes a report from a trace in text form, opens it from disk with the network off and
looks at what is on the page: the bars' figures must be those of --format json, the console must
be silent, and all of it must work by keyboard. RLS_BIN names the program, RLS_GOLDEN the traces;
RLS_SHOTS, where set, a folder for screenshots to look at.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import chromium

BIN = os.environ["RLS_BIN"]
GOLDEN = pathlib.Path(os.environ["RLS_GOLDEN"])
SKIP = 77

# Every line of a table of sums: its name, the time it shows, and the pieces of its bar.
READ_SUMS = """[...document.querySelectorAll('#%s tbody tr')].map((line) => ({
  name: [...line.cells[0].childNodes].filter((node) => node.className !== 'badge').map((node) => node.textContent).join('').trim(),
  time: line.cells[2] ? line.cells[2].textContent : '',
  child: line.className.startsWith('child'),
  pieces: [...line.querySelectorAll('rect[data-ns]')].map((piece) => ({category: piece.dataset.category,
    resource: piece.dataset.resource, ns: Number(piece.dataset.ns), width: piece.getAttribute('width')}))}))"""


def report(trace, *options, status=0):
    done = subprocess.run([BIN, "report", *options, trace], capture_output=True, check=False)
    assert done.returncode == status, (done.returncode, done.stderr)
    return done.stdout


def make_page(folder, trace, status=0, name="report.html"):
    """The page of a trace in a folder, and the model it must show."""
    path = pathlib.Path(folder, name)
    report(trace, "--format", "html", "-o", str(path), status=status)
    return path, json.loads(report(trace, "--format", "json", status=status))


def write_trace(folder, events):
    path = pathlib.Path(folder, "events.jsonl")
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def format_ns(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        value = ns / size
        if value >= 1:
            return f"{value:.{3 if value < 10 else 2 if value < 100 else 1}f} {unit}"
    return f"{ns} ns"


def sums_of(model, key="operation", measure="wall_ns"):
    sums = {}
    for row in model["breakdown"]:
        pieces = sums.setdefault(row[key] or f"(no {key})", {})
        place = row["category"], row["resource"]
        pieces[place] = pieces.get(place, 0) + row[measure]
    return sums


def check_sums(page, model, table="where-table", key="operation", measure="wall_ns"):
    """Names, times and every piece of every bar are the JSON's; widths are in proportion."""
    lines = [line for line in page.evaluate(READ_SUMS % table) if not line["child"]]
    expected = sums_of(model, key, measure)
    assert sorted(line["name"] for line in lines) == sorted(expected), (lines, list(expected))
    for line in lines:
        pieces = {(piece["category"], piece["resource"]): piece["ns"] for piece in line["pieces"]}
        assert pieces == {place: ns for place, ns in expected[line["name"]].items() if ns}, (line, expected[line["name"]])
        time = sum(ns for (_, resource), ns in pieces.items() if resource != "gpu")
        assert line["time"] == format_ns(time), (line, time)
    widths = [(piece["ns"], float(piece["width"].rstrip("%"))) for line in lines for piece in line["pieces"]]
    scale = max(width / ns for ns, width in widths)
    assert all(abs(width - ns * scale) < 1e-6 for ns, width in widths), widths
    return lines


def check_overview(page, model):
    """The lanes hold all of the threads' time, and the table below them sums what they show."""
    lanes = page.evaluate("timeline.lanes.map((lane) => [lane.pid, lane.tid, lane.total])")
    lived = [[thread["pid"], thread["tid"], thread["wall_ns"]] for thread in model["threads"] if thread["wall_ns"]]
    assert sorted(lanes) == sorted(lived), (lanes, lived)
    shown = {line["name"]: sum(piece["ns"] for piece in line["pieces"]) for line in page.evaluate(READ_SUMS % "window-table")}
    # Over time there is only what was traced, not what samples divided (a budget's looks are there).
    divided = "budget" not in model["overhead"]
    rows = [dict(row, operation="" if divided and row["method"] == "sampled" else row["operation"])
            for row in model["breakdown"]]
    for name, pieces in sums_of({"breakdown": rows}).items():
        time = sum(ns for (_, resource), ns in pieces.items() if resource != "gpu")
        assert abs(shown.get(name, 0) - time) <= 1e-6 * time, (name, shown, time)


def check_quiet(page):
    assert page.evaluate("document.documentElement.dataset.ready") == "yes", page.problems
    assert not page.problems, page.problems
    assert not page.requests, page.requests


def shoot(page, name):
    if os.environ.get("RLS_SHOTS"):
        page.screenshot(pathlib.Path(os.environ["RLS_SHOTS"], name + ".png"))


# --- the cases ------------------------------------------------------------------------------------


def error_of(rows):
    """Of a sum over all categories: their split is not in it."""
    rest = sum(row["error_shared_ns"] for row in rows) + max(sum(row["error_moved_ns"] for row in rows), 0)
    return min(rest, sum(row["wall_ns"] for row in rows)) + sum(row.get("error_divided_ns", 0) for row in rows)


def case_figures(browser, folder):
    """Every golden trace: what the page shows is what the JSON says."""
    for trace in sorted(GOLDEN.glob("*/events.jsonl")):
        cut = "cut" in trace.parent.name
        path, model = make_page(folder, trace, status=3 if cut else 0)
        page = browser.open(path)
        check_quiet(page)
        page.evaluate("document.querySelector('[name=by][value=operation]').click()")
        check_sums(page, model)
        check_overview(page, model)
        counts = page.evaluate("[...document.querySelectorAll('#transitions-table tbody tr')].map((line) => line.cells[3]?.textContent ?? '')")
        total = sum(int(count.split(" ± ")[0].lstrip("~").replace(",", "")) for count in counts if count and count != "not known")
        assert total == sum(row["count"] or 0 for row in model["transitions"]), counts
        scaled = any(row["method"] == "scaled" and row["count"] is not None for row in model["transitions"])
        assert any(count.startswith("~") and " ± " in count for count in counts) == scaled, counts
        notices = page.evaluate("document.getElementById('notices').innerText")
        for warning in model["warnings"]:
            assert " ".join(warning.split()) in " ".join(notices.split()), (warning, notices)
        assert page.evaluate("document.querySelectorAll('#processes-table tbody tr').length") == len(model["processes"])
        shoot(page, trace.parent.name)


def case_truncated(browser, folder):
    """A trace cut in the middle of a line says so on the page, above the figures."""
    text = (GOLDEN / "two_processes/events.jsonl").read_bytes()
    trace = pathlib.Path(folder, "cut.jsonl")
    trace.write_bytes(text[:len(text) * 2 // 3])
    path, model = make_page(folder, trace, status=3)
    page = browser.open(path)
    check_quiet(page)
    assert not model["complete"] and model["warnings"]
    assert page.evaluate("document.querySelector('#facts .cut').textContent") == "incomplete"
    assert page.evaluate("document.getElementById('notices').offsetHeight") > 0
    items = page.evaluate("[...document.querySelectorAll('#notice-list li')].map((item) => item.textContent)")
    assert all(warning in items for warning in model["warnings"]), items
    assert page.evaluate("document.getElementById('notices').offsetTop < document.getElementById('where').offsetTop")


def case_keyboard(browser, folder):
    """Search, sort, open, switch and zoom without a mouse."""
    path, model = make_page(folder, GOLDEN / "two_processes/events.jsonl")
    page = browser.open(path)
    names = "[...document.querySelectorAll('#where-table tbody tr')].map((line) => line.cells[0].textContent.trim())"

    page.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.type("infer")
    page.wait_for(f"{names}.length === 1")
    assert page.evaluate(names) == ["inference"]
    assert "infer" in page.evaluate("document.getElementById('matches').textContent")
    for _ in "infer":
        page.press("Backspace")
    page.wait_for(f"{names}.length === {len(sums_of(model))}")

    page.focus_by_tab("it.name === 'measure' && it.checked")
    page.press("ArrowRight")
    assert page.evaluate("document.querySelector('[value=corrected]').checked")
    check_sums(page, model, measure="corrected_ns")
    errors = {name: error_of([row for row in model["breakdown"] if (row["operation"] or "(no operation)") == name and
                              row["resource"] != "gpu"]) for name in sums_of(model)}
    shown = page.evaluate("""[...document.querySelectorAll('#where-table tbody tr')].map((line) =>
        [line.cells[0].textContent.trim(), line.cells[line.cells.length - 1].textContent, line.querySelectorAll('.whisker').length])""")
    for name, error, whiskers in shown:
        assert error == format_ns(errors[name]) and whiskers == (errors[name] > 0), (name, error, whiskers)
    page.press("ArrowLeft")
    lines = check_sums(page, model)
    assert [line["time"] for line in lines][0] == "910.0 ms"

    page.focus_by_tab("it.closest('#where-table thead') && it.textContent === 'Operation'")
    page.press("Enter")
    assert page.evaluate(names) == sorted(sums_of(model), key=str.lower)
    page.press("Enter")
    assert page.evaluate(names) == sorted(sums_of(model), key=str.lower, reverse=True)
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "descending"

    page.focus_by_tab("it.className === 'opener' && it.closest('#where-table')")
    page.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert page.evaluate("document.querySelectorAll('#where-table tr.child').length") > 1

    page.focus_by_tab("it.id === 'lanes'")
    before = page.evaluate("document.getElementById('window').textContent")
    page.press("+")
    page.press("ArrowRight")
    after = page.evaluate("document.getElementById('window').textContent")
    assert before.startswith("0 ns to 1.000 s") and after.startswith("375.0 ms to 875.0 ms"), (before, after)
    page.press("0")
    assert page.evaluate("document.getElementById('window').textContent") == before
    check_quiet(page)


def case_readable(browser, folder):
    """What a screen reader gets: names for controls, heads for cells, words for bars."""
    path, _ = make_page(folder, GOLDEN / "two_processes/events.jsonl")
    page = browser.open(path, dark=True)
    nameless = page.evaluate("""[...document.querySelectorAll('button, input, select, [role=img], canvas')].filter((it) =>
        !(it.getAttribute('aria-label') || it.textContent.trim() || it.closest('label')?.textContent.trim())).map((it) => it.outerHTML)""")
    assert not nameless, nameless
    assert page.evaluate("[...document.querySelectorAll('section')].every((it) => it.hasAttribute('aria-label') || document.getElementById(it.getAttribute('aria-labelledby')))")
    assert page.evaluate("[...document.querySelectorAll('table')].every((it) => it.caption.textContent && [...it.tHead.rows[0].cells].every((cell) => cell.scope === 'col'))")
    tree = page.send("Accessibility.getFullAXTree")["nodes"]
    bars = [node for node in tree if node.get("role", {}).get("value") in ("image", "img") and "ML backend" in node.get("name", {}).get("value", "")]
    assert bars, "no bar says what it shows"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.show_as(420, 900)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than a narrow window"
    shoot(page, "narrow")
    page.show_as(1000, 900, media="print")
    assert page.evaluate("getComputedStyle(document.getElementById('controls')).display") == "none"
    page.print(pathlib.Path(folder, "page.pdf"))
    assert pathlib.Path(folder, "page.pdf").read_bytes().startswith(b"%PDF")
    check_quiet(page)


def case_memory(browser, folder):
    """Each use of memory has its curve with the peak, and lines sort by any figure."""
    path, model = make_page(folder, GOLDEN / "memory/events.jsonl")
    page = browser.open(path)
    peaks = page.evaluate("[...document.querySelectorAll('.memory-use')].map((it) => [it.querySelector('p').textContent, it.querySelectorAll('polyline').length, it.querySelector('.peak').dataset.tip])")
    assert len(peaks) == len(model["memory"]) == 3, peaks
    assert peaks[0][1] == 2 and peaks[0][2] == "peak 320.0 MiB after 25.00 s", peaks
    assert "160.0 MiB tracked, -40.00 MiB untracked" in peaks[0][0], peaks
    first = "document.querySelector('#memory-table tbody tr').cells[0].textContent"
    rows = "document.querySelectorAll('#memory-table tbody tr').length"
    assert page.evaluate(rows) == len(model["memory_lines"])
    assert "train.py:41" in page.evaluate(first), page.evaluate(first)
    assert page.evaluate("[...document.querySelectorAll('#memory-table .leak')].map((it) => it.textContent)") == ["0.98"]
    for title, place in (("Temporary", "model.py:7"), ("Growth", "train.py:4"), ("Allocated", "model.py:7")):
        page.focus_by_tab(f"it.closest('#memory-table thead') && it.textContent === '{title}'")
        page.press("Enter")
        assert place in page.evaluate(first), (title, page.evaluate(first))
    check_quiet(page)
    shoot(page, "memory")
    path, _ = make_page(folder, GOLDEN / "figure3/events.jsonl")
    page = browser.open(path)
    assert page.evaluate("document.getElementById('memory').hidden")
    check_quiet(page)


HOSTILE = ["<script>document.title='owned'</script>", "</script><script>document.title='owned'</script>", "<!--<script>", "]]>", "-->",
           "<img src=x onerror=\"document.title='owned'\">", "\"'><svg onload=document.title='owned'>", "&lt;b&gt;", "{{body}}", "{{style}}",
           "\u202egnp.exe\u2066", "\u2028line\u2029", "\x01one\x1b[31m\x7f", "\U0001f40d" * 40, "e\u0301\u0323" * 200, "ﷺ" * 50, "__proto__", "constructor",
           "javascript:alert(1)", "a" * 4000, "\ufeff\ufffe", "${alert(1)}", "\\u003cscript>", "\\"]


def case_hostile(browser, folder):
    """Names that are markup, scripts or worse do nothing, and are shown as they are."""
    events = [{"event": "process", "time_ns": 0, "pid": 1, "ppid": 0, "name": HOSTILE[0], "cmdline": HOSTILE},
              {"event": "thread", "time_ns": 0, "pid": 1, "tid": 1, "name": HOSTILE[5]},
              {"event": "library", "time_ns": 0, "pid": 1, "path": HOSTILE[6], "role": HOSTILE[1], "sites": 3},
              {"event": "host", "time_ns": 0, "kernel": HOSTILE[1], "cpus": 2, "gpus": [HOSTILE[1], {"name": HOSTILE[5]}]},
              {"event": "warning", "time_ns": 0, "text": HOSTILE[1]}, {"event": "loss", "time_ns": 0, "buffer": HOSTILE[5], "dropped": 3}]
    for index, name in enumerate(HOSTILE):
        events += [{"event": "phase", "time_ns": index * 1000, "pid": 1, "phase": name},
                   {"event": "operation", "time_ns": index * 1000, "pid": 1, "tid": 1, "stack": [name]},
                   {"event": "category", "time_ns": index * 1000, "pid": 1, "tid": 1, "category": "python"},
                   {"event": "memory_line", "time_ns": index * 1000, "pid": 1, "file": name, "function": name, "operation": name,
                    "phase": name, "source": "tensor", "allocs": 1, "alloc_bytes": 64, "frees": 0, "freed_bytes": 0},
                   {"event": "category", "time_ns": index * 1000 + 500 + index, "pid": 1, "tid": 1, "category": "backend"}]
    events.append({"event": "end", "time_ns": len(HOSTILE) * 1000, "complete": True})
    path, model = make_page(folder, write_trace(folder, events))
    text = path.read_text(encoding="utf-8")
    assert text.count("<script") == 3 and text.count("</script") == 3 and "<!--" not in text
    page = browser.open(path)
    check_quiet(page)
    assert "owned" not in page.evaluate("document.title") or page.evaluate("document.title").startswith("<script>")
    assert page.evaluate("document.querySelectorAll('main img, main script, body > script:not([type])').length") == 1
    names = page.evaluate("[...document.querySelectorAll('#where-table tbody tr')].map((line) => line.cells[0].textContent)")
    assert sorted(names) == sorted({row["operation"] or "(no operation)" for row in model["breakdown"]}), names
    assert page.evaluate("model.breakdown.length") == len(model["breakdown"])
    page.press("/")
    page.type("<img")
    page.wait_for("document.querySelectorAll('#where-table tbody tr').length === 1")
    check_quiet(page)
    shoot(page, "hostile")


def many_events(threads, operations):
    yield {"event": "process", "time_ns": 0, "pid": 1, "ppid": 0, "name": "python3"}
    time = 0
    for index in range(operations):
        for tid in range(1, threads + 1):
            time += 500
            yield {"event": "operation", "time_ns": time, "pid": 1, "tid": tid, "stack": [f"operation number {index % 700}"]}
            for category in ("python", "backend", "simulator"):
                time += 500
                yield {"event": "category", "time_ns": time, "pid": 1, "tid": tid, "category": category}
    yield {"event": "end", "time_ns": time + 1, "complete": True}


def case_large(browser, folder):
    """A model of more than 10 MB: opened, summed, searched and sorted all the same."""
    path, model = make_page(folder, write_trace(folder, many_events(24, 700)))
    size = len(json.dumps(model))
    assert size > 10_000_000, size
    page = browser.open(path)
    check_quiet(page)
    print(f"model {size / 1e6:.1f} MB, file {path.stat().st_size / 1e6:.1f} MB, opened and drawn in {page.load_seconds:.2f} s")
    lines = page.evaluate(READ_SUMS % "where-table")
    expected = sums_of(model)
    assert 10 < len(lines) < len(expected)
    for line in lines:
        pieces = {(piece["category"], piece["resource"]): piece["ns"] for piece in line["pieces"]}
        assert pieces == expected[line["name"]], line
    page.press("/")
    page.type("number 123")
    page.wait_for("document.querySelectorAll('#where-table tbody tr').length === 1")
    check_quiet(page)


CASES = {name[len("case_"):]: case for name, case in sorted(globals().items()) if name.startswith("case_")}


def main(names):
    if not chromium.find():
        print("skipped: there is no Chromium here (Debian's package: chromium)")
        return SKIP
    with chromium.Chromium() as browser:
        for name in names or CASES:
            with tempfile.TemporaryDirectory(prefix="rlscope-html-") as folder:
                CASES[name](browser, folder)
            print(f"{name}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
