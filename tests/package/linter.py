#!/usr/bin/python3
"""linter.py KIND: what others' checkers of packages find, if they are installed."""
import re
import subprocess
import sys

import packages

KIND = sys.argv[1]


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


if KIND == "deb":
    packages.need("lintian")
    found = output("lintian", "--allow-root", packages.path_of(KIND))
    found = re.sub(r"^running with root privileges.*\n", "", found, flags=re.M)
    assert not found, found
else:
    packages.need("auditwheel")
    package = packages.path_of(KIND)
    found = " ".join(output("auditwheel", "show", package).split())
    assert '"%s"' % re.search(r"manylinux_\d+_\d+_x86_64", package).group() in found, found
