"""What the tests of packages share."""
import glob
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ["RLS_BUILD"]
FOLDER = os.environ["RLS_PACKAGES"]
VERSION = os.environ["RLS_VERSION"]
NAMES = {"deb": "rlscope-bpf_%s-1_amd64.deb" % VERSION,
         "wheel": "rlscope_bpf-%s-py3-none-manylinux_*_x86_64.whl" % VERSION,
         "image": "rlscope-bpf-%s.oci.tar" % VERSION}

sys.path.insert(0, os.path.join(SOURCES, "scripts", "packages"))


def need(*commands):
    """Skips the test where one of them is not installed."""
    missing = [command for command in commands if not shutil.which(command)]
    if missing:
        print("SKIP: not installed here: " + " ".join(missing))
        sys.exit(77)


def path_of(kind, run="first"):
    """The one package of that kind; its name has the version."""
    found = glob.glob(os.path.join(FOLDER, run, kind, NAMES[kind]))
    if not found:
        print("SKIP: the package was not made, see package_%s_made" % kind)
        sys.exit(77)
    assert len(found) == 1, "packages of kind %s: %s" % (kind, found)
    return found[0]
