"""file_job.py LIBRARY: calls a function of the library as often as stdin says, a number a line."""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        library.sim_step()
    print("done", flush=True)
