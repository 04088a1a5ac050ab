#!/usr/bin/python3
"""Calls NVIDIA's own libcuda and libcudart, without a GPU: every call fails, as it must.

Each line read is a number of rounds, answered by [rounds].
"""

import ctypes
import json
import sys

cuda = ctypes.CDLL("libcuda.so.1")
cudart = ctypes.CDLL("libcudart.so.12")
POINTER, SIZE = ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(8)

print(json.dumps([cuda.cuInit(0)]), flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        cuda.cuMemAlloc_v2(POINTER, SIZE)
        cuda.cuStreamSynchronize(None)
        cudart.cudaMalloc(POINTER, SIZE)
    print(json.dumps([int(line)]), flush=True)
