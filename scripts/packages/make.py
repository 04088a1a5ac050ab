"""make.py BUILD OUTPUT KIND...: packages of what is built in BUILD, written into OUTPUT."""
import os
import sys

import deb
import image
import release as releases
import wheel

KINDS = {"deb": deb.build, "wheel": wheel.build, "image": image.build}


def main(build, output, *kinds):
    release = releases.Release(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    os.makedirs(output, exist_ok=True)
    for kind in kinds:
        print(KINDS[kind](release, os.path.abspath(build), os.path.abspath(output)))


if __name__ == "__main__":
    os.umask(0o022)
    try:
        main(*sys.argv[1:])
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit("package: %s" % error)
