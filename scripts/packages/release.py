"""What a release is called: read from CHANGES, and nowhere else."""
import calendar
import os
import re
import time

NAME = "rlscope-bpf"
SUMMARY = "shows where a training job's time goes, by attaching from the kernel"
# Who builds packages for others sets Debian's usual two variables.
MAINTAINER = "%s <%s>" % (os.environ.get("DEBFULLNAME", "rlscope-bpf maintainers"),
                          os.environ.get("DEBEMAIL", "maintainers@users.noreply.a-seed-e3a0a91e.example"))
SECTIONS = ("Added", "Changed", "Fixed")


class Release:
    """The newest release that CHANGES describes: version, date; `history` has all, newest first, as
    (version, date, {section: [line]})."""

    def __init__(self, sources):
        with open(os.path.join(sources, "CHANGES"), encoding="utf-8") as file:
            text = file.read()
        heads = list(re.finditer(r"^(\d+\.\d+\.\d+)(?: \((\d{4}-\d\d-\d\d)\))?$", text, re.M))
        if not heads or not heads[0].group(2):
            raise ValueError("CHANGES names no release as in '0.2.0 (2026-11-28)'")
        ends = [head.start() for head in heads[1:]] + [len(text)]
        self.history = [head.groups() + (entries_of(text[head.end():end]),)
                        for head, end in zip(heads, ends) if head.group(2)]
        self.version, self.date, _ = self.history[0]
        self.sources = sources
        # Of all files in all packages: two runs give the same bytes.
        self.epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or seconds_of(self.date))
        check_version(sources, self.version)


def seconds_of(date):
    return calendar.timegm(time.strptime(date, "%Y-%m-%d"))


def entries_of(text):
    entries, section = {}, None
    for line in text.splitlines():
        if line in SECTIONS:
            section = entries.setdefault(line, [])
        elif line.startswith("  ") and section is not None:
            section.append(line.strip())
    return entries


def check_version(sources, version):
    with open(os.path.join(sources, "CMakeLists.txt"), encoding="utf-8") as file:
        built = re.search(r"project\(\S+ VERSION (\S+)", file.read()).group(1)
    if built != version:
        raise ValueError("CHANGES describes %s, CMakeLists.txt builds %s" % (version, built))
