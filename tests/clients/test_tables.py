"""test_tables.py jq|pandas|duckdb: the client reads JSON, JSON Lines and every CSV, and sums alike."""
import json
import shutil
import subprocess
import sys

import common

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


def main():
    client = sys.argv[1]
    if client == "jq":
        shutil.which("jq") or common.skip("there is no jq")
    else:
        common.with_client_packages(client)
    check = {"jq": check_jq, "pandas": check_pandas, "duckdb": check_duckdb}[client]
    check(common.Trace())
    check(common.Trace(complete=False))


main()
