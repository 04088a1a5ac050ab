"""Enters so many operations of different names: the number is each line of stdin."""

import argparse
import ctypes
import os
import sys

import rlscope

parser = argparse.ArgumentParser()
parser.add_argument("--modules")
parser.add_argument("--libraries")
library = ctypes.CDLL(os.path.join(parser.parse_args().libraries, "libtruthc.so"))
print('{"ready"}', flush=True)
for line in sys.stdin:
    for i in range(int(line)):
        with rlscope.operation("name %d" % i):
            library.truthc_spin(0)
    print("[]", flush=True)
