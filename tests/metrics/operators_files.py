#!/usr/bin/env python3
"""What operators get: alert rules, dashboard, unit and manual page, against the metrics there are.

operators_files.py SOURCE_FOLDER
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from promtool import MISSING, promtool

SOURCE = sys.argv.pop(1)
NAME = re.compile(r"\brlscope_[a-z_]+")


def read(path):
    with open(os.path.join(SOURCE, path)) as file:
        return file.read()


def metrics():
    """Those of the golden page, which has them all."""
    return set(re.findall(r"^# TYPE (\S+)", read("tests/metrics/expected.prom"), re.M))


def families():
    return set(re.findall(r'^\t\{"(rlscope_[a-z_]+)"', read("userspace/metrics/families.c"), re.M))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


class Files(unittest.TestCase):
    def test_golden_page_has_every_family(self):
        self.assertEqual(metrics(), families())
        self.assertGreater(len(metrics()), 20)

    def test_manual_page_has_every_family(self):
        page = read("doc/man/rlscope-bpf-monitor.1").replace("\\-", "-").replace("\\_", "_")
        self.assertEqual(families() - set(NAME.findall(page)), set())
        self.assertEqual(set(NAME.findall(page)) - families(), set())

    def test_alerts_name_what_there_is(self):
        self.assertEqual(set(NAME.findall(read("scripts/prometheus/rlscope-alerts.yml"))) - families(), set())

    def test_alerts_by_promtool(self):
        if not promtool():
            self.skipTest(MISSING)
        check = run(promtool(), "check", "rules", os.path.join(SOURCE, "scripts/prometheus/rlscope-alerts.yml"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        check = run(promtool(), "test", "rules", os.path.join(SOURCE, "tests/metrics/alerts_test.yml"))
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_dashboard(self):
        board = json.loads(read("scripts/grafana/rlscope-dashboard.json"))
        expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(expressions), 15)
        named = set(NAME.findall(" ".join(expressions) + json.dumps(board["templating"])))
        self.assertEqual(named - families(), set())
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for expression in expressions:
            self.assertEqual(expression.count("("), expression.count(")"), expression)

    def test_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        with tempfile.TemporaryDirectory() as folder:
            unit = os.path.join(folder, "rlscope-bpf-monitor.service")
            with open(unit, "w") as file:
                file.write(read("scripts/systemd/rlscope-bpf-monitor.service.in")
                           .replace("@RLS_BINDIR@/rlscope-bpf", "/bin/true")
                           .replace("@RLS_SYSCONFDIR@", "/etc"))
            check = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
        self.assertEqual([line for line in check.stderr.splitlines() if "rlscope" in line], [])


if __name__ == "__main__":
    unittest.main()
