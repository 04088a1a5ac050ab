#!/usr/bin/env python3
"""The check of layers finds what it is for: made trees, each with one fault."""
import os
import tempfile
import unittest

import layers


class Faults(unittest.TestCase):
    def tree(self, files):
        folder = self.enterContext(tempfile.TemporaryDirectory()) if hasattr(
            self, "enterContext") else tempfile.mkdtemp()
        for path, text in files.items():
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        faults, _, _ = layers.check(folder)
        return [fault for fault in faults if not fault.startswith("layers.txt names")]

    def test_an_arrow_down_is_none(self):
        self.assertEqual(self.tree({
            "analysis/event/a.c": '#include "analysis/base/b.h"\n', "analysis/base/b.h": ""}), [])

    def test_an_arrow_up(self):
        faults = self.tree({
            "analysis/base/a.c": '#include "userspace/record/b.h"\n', "userspace/record/b.h": ""})
        self.assertEqual(len(faults), 1)
        self.assertIn("above its own", faults[0])

    def test_a_circle(self):
        faults = self.tree({
            "bpf/a.h": "", "bpf/a.bpf.c": '#include "bpf/b.h"\n',
            "bpf/b.h": '#include "bpf/a.h"\n'})
        self.assertEqual(len(faults), 1)
        self.assertIn("circle", faults[0])

    def test_a_room_that_is_not_listed(self):
        self.assertIn("not in layers.txt", self.tree({"userspace/attic/a.c": ""})[0])

    def test_a_full_room(self):
        faults = self.tree({"userspace/top/f%d.c" % i: "" for i in range(26)})
        self.assertIn("more than 25", faults[0])

    def test_an_include_without_its_path(self):
        faults = self.tree({"bpf/a.h": "", "bpf/b.h": '#include "a.h"\n'})
        self.assertIn("no path from the root", faults[0])


if __name__ == "__main__":
    unittest.main()
