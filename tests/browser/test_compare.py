#!/usr/bin/python3
"""The page of `compare` in Chromium: its bars are the JSON form's, and names of the target stay text."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import chromium

BIN = os.environ["RLS_BIN"]
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def make_trace(path, simulator_ns):
    at, lines = 0, [{"event": "thread", "time_ns": 0, "pid": 1, "tid": 1, "name": "main"}]
    for _ in range(50):
        for operation, category, ns in (("simulation", "simulator", simulator_ns), (EVIL, "backend", 70_000)):
            lines.append({"event": "operation", "time_ns": at, "pid": 1, "tid": 1, "stack": [operation]})
            lines.append({"event": "category", "time_ns": at + 1000, "pid": 1, "tid": 1, "category": category})
            at += 1000 + ns
    lines.append({"event": "end", "time_ns": at, "complete": True})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def main():
    if not chromium.find():
        print("skipped: no Chromium here")
        return 77
    with tempfile.TemporaryDirectory(prefix="rlscope-compare-") as name, chromium.Chromium() as browser:
        folder = pathlib.Path(name)
        traces = [make_trace(folder / "a.jsonl", 100_000), make_trace(folder / "b.jsonl", 150_000)]
        path = folder / "page.html"
        subprocess.run([BIN, "compare", "--format", "html", "-o", str(path), *traces], check=True)
        model = json.loads(subprocess.run([BIN, "compare", "--format", "json", *traces], check=True, capture_output=True).stdout)
        page = browser.open(path)
        shown = page.evaluate("""[...document.querySelectorAll('.pair')].flatMap((pair) =>
            [...pair.querySelectorAll('rect[data-ns]')].map((piece) => [pair.dataset.operation,
            Number(piece.dataset.side), piece.dataset.category, Number(piece.dataset.ns)]))""")
        meant = [[row["operation"], side, row["category"], row[key]["ns"]] for row in model["comparisons"][0]["rows"]
                 for side, key in enumerate("ab") if row["category"] != "total" and row[key]]
        assert shown and sorted(shown) == sorted(meant), (shown, meant)
        assert any(piece[0] == EVIL for piece in shown)
        assert page.evaluate("document.querySelectorAll('.compared tbody tr').length") == len(model["comparisons"][0]["rows"])
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert page.evaluate("document.getElementById('failure').hidden")
        assert not page.problems and not page.requests, (page.problems, page.requests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
