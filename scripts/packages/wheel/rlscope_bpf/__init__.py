"""The program rlscope-bpf, and the libraries that recorded processes load."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rlscope-bpf")


def main():
    """Becomes the program: signals and the exit status are its own."""
    try:
        os.getxattr(PROGRAM, "security.capability")
    except OSError:
        pass
    else:
        # The loader ignores libraries beside a program that has capabilities of its own.
        sys.exit("rlscope-bpf: its capabilities keep it from the libraries beside it: "
                 "take them away (setcap -r %s) and run it with sudo" % PROGRAM)
    try:
        os.execv(PROGRAM, [PROGRAM] + sys.argv[1:])
    except OSError as error:
        sys.exit("rlscope-bpf: cannot execute %s: %s" % (PROGRAM, os.strerror(error.errno)))
