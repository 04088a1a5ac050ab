"""test_tables.py jq|pandas|duckdb|sqlite: the client reads JSON, JSON Lines, every CSV, SQLite, and sums alike."""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import common

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
TABLES = ["breakdown", "transitions", "operations", "threads", "processes", "gpu", "gpu_operations", "libraries", "calibration",
          "losses", "warnings", "recording"]


def wall_ns(trace):
    return sum(row["wall_ns"] for row in trace.model["breakdown"])


def check_jq(trace):
    def jq(expression, path, *arguments):
        return json.loads(subprocess.run(["jq", *arguments, expression, path], capture_output=True, text=True, check=True).stdout)

    assert jq("[.breakdown[].wall_ns] | add", trace.report("json")) == wall_ns(trace)
    lines = trace.report("jsonl")
    assert jq('[.[] | select(.table == "breakdown").wall_ns] | add', lines, "-s") == wall_ns(trace)
    assert jq('[.[] | select(.table == "warnings").warning]', lines, "-s") == trace.warnings()
    assert jq("length", trace.report("jsonl", "--table=threads"), "-s") == len(trace.model["threads"])
    assert jq("[.traceEvents[] | select(.ph == \"B\")] | length", trace.report("chrome")) == \
        jq("[.traceEvents[] | select(.ph == \"E\")] | length", trace.report("chrome"))


def check_pandas(trace):
    import pandas
    for table in TABLES:
        frame = pandas.read_csv(trace.report("csv", f"--table={table}"), keep_default_na=False)
        if table in trace.model and table != "warnings":
            assert len(frame) == len(trace.model[table]), table
    frame = pandas.read_csv(trace.report("csv"), keep_default_na=False)
    sums = frame[frame.resource != "gpu"].groupby(["operation", "category"]).wall_ns.sum().to_dict()
    assert sums == trace.sums("wall_ns", "operation", "category")
    lines = pandas.read_json(trace.report("jsonl"), lines=True)
    assert int(lines[lines.table == "breakdown"].wall_ns.sum()) == wall_ns(trace)
    assert list(pandas.read_csv(trace.report("csv", "--table=warnings")).warning) == trace.warnings()


# What JSON holds elsewhere than in an array of its own at the top.
NESTED = {"libraries": ("processes", "libraries", ["pid"]), "gpu_operations": ("gpu", "by_launching_operation", ["pid", "device"])}
FORMER = {("transitions", "error")}


def rows_of(model, table):
    """A table's rows as the JSON form has them, or None where it has them in another shape."""
    if table in NESTED:
        outer, key, columns = NESTED[table]
        return [{**{column: row[column] for column in columns}, **inner} for row in model[outer] for inner in row[key]]
    if table == "warnings":
        return [{"warning": text} for text in model["warnings"]]
    if table == "calibration":
        return [{"name": name, "value_ns": entry["ns"], "error_ns": entry["error_ns"]}
                for name, entry in sorted(model["overhead"]["calibration"].items())]
    return None if table == "recording" else model.get(table, [])


def as_json(value):
    """JSON's numbers have 15 digits."""
    return float(f"{value:.15g}") if isinstance(value, float) else value


def check_tables(path, models):
    """Every table has the rows of each trace's own report, nulls and numbers as they are."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    base.row_factory = sqlite3.Row
    assert base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert base.execute("PRAGMA application_id").fetchone()[0] == int.from_bytes(b"RLSc", "big")
    tables = [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    arrays = {key for model in models.values() for key, value in model.items() if isinstance(value, list)}
    assert arrays <= set(tables), arrays - set(tables)
    for table in tables:
        columns = {row["name"]: row["type"] for row in base.execute(f'PRAGMA table_info("{table}")')}
        assert list(columns)[0] == "trace" and set(columns.values()) <= {"TEXT", "INTEGER", "REAL"}, columns
        for name, model in models.items():
            found = [dict(row) for row in base.execute(f'SELECT * FROM "{table}" WHERE trace = ? ORDER BY rowid', (name,))]
            expected = rows_of(model, table)
            if expected is None:
                assert len(found) == 1 and found[0]["tool"] == model["tool"]
                continue
            assert len(found) == len(expected), (table, name, len(found), len(expected))
            for row, wanted in zip(found, expected):
                wanted = {key: json.dumps(value) if isinstance(value, list) else value for key, value in wanted.items()
                          if (table, key) not in FORMER and (table, key) not in {(t, k) for t, k, _ in NESTED.values()}}
                assert {key: as_json(row[key]) for key in wanted} == wanted, (table, row, wanted)
                assert all(row[key] is None for key in set(row) - set(wanted) - {"trace"}), (table, row, wanted)
        odd = [column for column, kind in columns.items() if base.execute(
            f'SELECT count(*) FROM "{table}" WHERE typeof("{column}") NOT IN (?, \'null\')', (kind.lower(),)).fetchone()[0]]
        assert not odd, (table, odd)
    base.close()


def run_report(status, *arguments):
    run = subprocess.run([common.BIN, "report", *arguments], capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == status and (status in (0, 3) or run.stderr.count("\n") == 1), (arguments, run)
    return run.stderr


def check_golden(path):
    """Traces that have something of every table."""
    models = {}
    for golden in sorted(GOLDEN.glob("*/events.jsonl")):
        answer = subprocess.run([common.BIN, "report", "--json", golden], capture_output=True, text=True, timeout=600, check=False)
        models[str(golden)] = json.loads(answer.stdout)
    assert all(any(model.get(table) for model in models.values()) for table in ("cuda_calls", "samples", "gpu_clocks", "losses"))
    run_report(3, "--format=sqlite", "-o", str(path), *models)
    check_tables(path, models)


def check_sqlite(trace):
    path = trace.report("sqlite")
    check_tables(path, {str(trace.path): trace.model})
    if shutil.which("sqlite3"):
        command = subprocess.run(["sqlite3", "-readonly", path, 'SELECT sum(wall_ns) FROM breakdown'], capture_output=True, text=True, check=True)
        assert int(command.stdout) == wall_ns(trace)
    # Replaced, as it is ours; and two traces that have the same processes.
    other = pathlib.Path(trace.folder.name, "other \udcff.jsonl")
    shutil.copy(trace.path, other)
    run_report(trace.status, "--format=sqlite", "-o", str(path), str(trace.path), str(other))
    check_tables(path, {str(trace.path): trace.model, str(other).replace("\udcff", "\ufffd"): trace.model})
    run_report(1, "--format=sqlite", "-o", str(path), str(trace.path), str(trace.path))
    check_golden(path)
    one = trace.report("sqlite", "--table=threads")
    base = sqlite3.connect(one)
    assert [row[0] for row in base.execute("SELECT name FROM sqlite_master")] == ["threads"]
    base.close()
    check_refusals(trace)


def check_refusals(trace):
    """No stdout, nobody else's file, and nothing half done on a full disk or without a folder for temporary files."""
    path = pathlib.Path(trace.folder.name, "foreign")
    assert "-o FILE" in run_report(2, "--format=sqlite", str(trace.path))
    for content in (b"figures of last year", b"SQLite format 3\0" + bytes(84)):
        path.write_bytes(content)
        assert "left alone" in run_report(1, "--format=sqlite", "-o", str(path), str(trace.path))
        assert path.read_bytes() == content
    path.unlink()
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE mine (x)")
    foreign.commit()
    foreign.close()
    assert "left alone" in run_report(1, "--format=sqlite", "-o", str(path), str(trace.path))
    path.write_bytes(b"")
    run_report(trace.status, "--format=sqlite", "-o", str(path), str(trace.path))
    check_tables(path, {str(trace.path): trace.model})
    run_report(1, "--format=sqlite", "-o", "/dev/full", str(trace.path))
    os.environ["TMPDIR"] = str(path) + ".is-not-there"
    assert "No such file" in run_report(1, "--format=sqlite", "-o", str(path), str(trace.path))
    del os.environ["TMPDIR"]


def attach_sqlite(duckdb, path):
    """DuckDB's own reader of SQLite, where it is installed or can be had; else the rows by way of Python's."""
    try:
        duckdb.sql("LOAD sqlite")
    except duckdb.Error:
        print("DuckDB's sqlite extension is not here: its rows come by way of Python's sqlite3")
    else:
        duckdb.sql(f"ATTACH '{path}' AS report (TYPE sqlite)")
        return
    duckdb.sql("ATTACH ':memory:' AS report")
    base = sqlite3.connect(path)
    for table in [row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]:
        columns = [(row[1], {"INTEGER": "BIGINT", "REAL": "DOUBLE"}.get(row[2], "VARCHAR"))
                   for row in base.execute(f'PRAGMA table_info("{table}")')]
        duckdb.sql(f'CREATE TABLE report."{table}" (' + ", ".join(f'"{name}" {kind}' for name, kind in columns) + ")")
        rows = base.execute(f'SELECT * FROM "{table}"').fetchall()
        if rows:
            duckdb.executemany(f'INSERT INTO report."{table}" VALUES (' + ", ".join("?" * len(columns)) + ")", rows)
    base.close()


def check_duckdb(trace):
    import duckdb

    def one(query):
        return duckdb.sql(query).fetchall()[0][0]

    for table in TABLES:
        duckdb.sql(f"SELECT * FROM read_csv('{trace.report('csv', '--table=' + table)}', header=true)").fetchall()
    assert one(f"SELECT sum(wall_ns) FROM read_csv('{trace.report('csv')}')") == wall_ns(trace)
    lines = trace.report("jsonl")
    assert one(f"SELECT sum(wall_ns) FROM read_json('{lines}') WHERE \"table\" = 'breakdown'") == wall_ns(trace)
    assert one(f"SELECT sum(b.wall_ns) FROM (SELECT unnest(breakdown) b FROM read_json('{trace.report('json')}'))") == wall_ns(trace)
    warnings = duckdb.sql(f"SELECT warning FROM read_csv('{trace.report('csv', '--table=warnings')}', header=true, delim=',')")
    assert [row[0] for row in warnings.fetchall()] == trace.warnings()
    attach_sqlite(duckdb, trace.report("sqlite"))
    assert one("SELECT sum(wall_ns) FROM report.breakdown") == wall_ns(trace)
    assert one("SELECT sum(t.wall_ns) FROM report.threads t JOIN report.processes p USING (trace, pid)") == \
        sum(thread["wall_ns"] for thread in trace.model["threads"])
    duckdb.sql("DETACH report")


def main():
    client = sys.argv[1]
    if client == "jq":
        shutil.which("jq") or common.skip("there is no jq")
    elif client != "sqlite":
        common.with_client_packages(client)
    check = {"jq": check_jq, "pandas": check_pandas, "duckdb": check_duckdb, "sqlite": check_sqlite}[client]
    check(common.Trace())
    check(common.Trace(complete=False))


main()
