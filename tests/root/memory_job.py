"""A job that allocates: memory_job.py STANDIN.

Each line of stdin is the name of a function here; what it does with memory is known to the byte. The
answer is "did" and the name. Lines are found by the comment behind them."""

import ctypes
import os
import sys
import threading
import time

try:
    import rlscope
except ImportError:
    rlscope = None
try:
    import numpy
except ImportError:
    numpy = None

standin = ctypes.PyDLL(sys.argv[1])
NEW = standin._ZN3c1025ProfiledCPUMemoryReporter3NewEPvm
NEW.argtypes = [ctypes.c_size_t] * 3
DELETE = standin._ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv
DELETE.argtypes = [ctypes.c_size_t] * 2
DEVICE = standin._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
DEVICE.argtypes = [ctypes.c_size_t, ctypes.c_ssize_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint16]
FULL = standin._ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
FULL.argtypes = [ctypes.c_ssize_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint16]
TRACK = ctypes.pythonapi.PyTraceMalloc_Track
TRACK.argtypes = [ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t]
UNTRACK = ctypes.pythonapi.PyTraceMalloc_Untrack
UNTRACK.argtypes = [ctypes.c_uint, ctypes.c_size_t]
kept = []


def early():
    for i in range(5):
        NEW(0, 0x9000000 + i, 1 << 20)  # early


def free_early():
    for i in range(5):
        DELETE(0, 0x9000000 + i)


def kept_tensors():
    for i in range(100):
        NEW(0, 0x1000000 + i * 64, 1000 + i)  # kept_tensors


def temporary_tensors():
    for i in range(200):
        NEW(0, 0x2000000, 1 << 20)  # temporary_tensors
        DELETE(0, 0x2000000)


def reused():
    for _ in range(10):  # nobody sees the frees
        NEW(0, 0x3000000, 4096)  # reused


def nothing():
    NEW(0, 0, 0)
    DELETE(0, 0)
    UNTRACK(3, 0x123450)


def arrays():
    for i in range(60):
        TRACK(3, 0x1000000 + i, 1 << 33)  # arrays
    for i in range(20):
        UNTRACK(3, 0x1000000 + i)
    for i in range(20):
        UNTRACK(4, 0x1000030 + i)  # another domain: not these


def two_places():
    TRACK(3, 0x5000000, 1000), TRACK(3, 0x5000001, 500)  # two_places
    UNTRACK(3, 0x5000000)


CUDA = 1


def devices():
    for i in range(8):
        DEVICE(0x7000000 + i * 512, 512, (i + 1) * 512, 1 << 21, CUDA | 3 << 8)  # devices
    for i in range(3):
        DEVICE(0x7000000 + i * 512, -512, (7 - i) * 512, 1 << 21, CUDA | 3 << 8)
    DEVICE(0x7000000, 512, 512, 1 << 21, 0)  # the CPU, which has a reporter of its own
    FULL(1 << 40, 5 * 512, 1 << 21, CUDA | 3 << 8)


def allocate(base, count):
    for i in range(count):
        TRACK(3, base + i, 10)  # allocate


def operations():
    rlscope.set_phase("first")
    allocate(0x10000, 10)
    with rlscope.operation("outer"):
        allocate(0x20000, 20)
        with rlscope.operation("inner"):
            allocate(0x30000, 30)
            helper = threading.Thread(target=allocate, args=(0x40000, 40))
            helper.start()
            helper.join()
        allocate(0x50000, 50)
    allocate(0x60000, 60)


def end_of(pid):
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("a child failed")


def forked():
    NEW(0, 0x8000000, 7000)  # forked by the parent
    pid = os.fork()
    if not pid:
        DELETE(0, 0x8000000)  # its copy of a block that was not born in it
        NEW(0, 0x8000000, 70)  # forked
        NEW(0, 0x8000100, 700)  # forked again
        DELETE(0, 0x8000000)
        time.sleep(0.5)
        os._exit(0)
    end_of(pid)


def executed():
    pid = os.fork()
    if not pid:
        NEW(0, 0xa000000, 100)  # executed
        time.sleep(0.5)
        os.execv(sys.executable, [sys.executable, __file__, sys.argv[1], "after_exec"])
    end_of(pid)


def after_exec():
    NEW(0, 0xa000000, 200)  # after_exec
    DELETE(0, 0xa000000)
    time.sleep(0.5)


def threads():
    def work(number):
        for i in range(2000):
            NEW(0, 0xb000000 + number * 0x100000, 16)  # threads
            DELETE(0, 0xb000000 + number * 0x100000)
    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def numpy_arrays():
    for _ in range(50):
        kept.append(numpy.empty(1 << 17, numpy.uint8))  # numpy_arrays
    for _ in range(50):
        numpy.zeros(1 << 18, numpy.uint8)  # numpy_temporaries
    del kept[:20]


def torch_tensors():
    for _ in range(50):
        kept.append(torch.empty(1 << 17, dtype=torch.uint8))  # torch_tensors
    for _ in range(50):
        torch.empty(1 << 18, dtype=torch.uint8)  # torch_temporaries


MIB = 1 << 20


def native_blocks():
    for _ in range(10):
        bytearray(300 << 10)  # no tensor
    for _ in range(10):
        bytes(1500)  # a small block
    for _ in range(10):
        bytes(500)  # too small
    for _ in range(10):
        kept.append(bytes(MIB))  # kept bytes


def native_arrays():
    for _ in range(10):
        numpy.empty(MIB, numpy.uint8)  # an array's block
    for _ in range(10):
        numpy.empty(3000, numpy.uint8)  # a small array's


def native_tensors():
    for _ in range(10):
        torch.empty(MIB, dtype=torch.uint8)  # a tensor's block
    for _ in range(10):
        torch.empty(3000, dtype=torch.uint8)  # a small tensor's


def endless_blocks():
    for _ in range(1 << 40):
        bytes(1500)  # endless blocks


def byte_copies():
    blob, grown = bytes(MIB), bytearray(MIB)
    view = memoryview(grown)
    for _ in range(10):
        blob[1:]  # a slice
    for _ in range(10):
        bytes(view)  # of a view
    for _ in range(10):
        bytearray(blob)  # to an array
    for _ in range(10):
        blob + blob  # a sum
    for _ in range(10):
        view[:] = blob  # into a view
    for _ in range(10):
        blob[1:1001]  # a short one


def numpy_copies():
    source = numpy.arange(MIB // 8, dtype=numpy.float64)
    target = numpy.empty_like(source)
    for _ in range(10):
        source.copy()  # an array
    for _ in range(10):
        target[:] = source  # into another
    for _ in range(10):
        source.tobytes()  # to bytes
    for _ in range(10):
        source.astype(numpy.float32)  # another type


def standin_copies():
    target, source = (ctypes.c_char * (4 * MIB))(), (ctypes.c_char * (4 * MIB))()
    sizes = (ctypes.c_int64 * 7)(2, 1, 4, 8, 16, 2, 16)
    copy = standin.standin_copy
    copy.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                     ctypes.c_size_t, ctypes.c_size_t]
    standin.standin_copy_itself.argtypes = [ctypes.c_int64, ctypes.c_void_p]
    standin.standin_memmove.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    for old in 0, 1:
        for dimensions in range(8):
            copy(old, 0, dimensions, sizes, target, source, 0, 0)  # of 0 to 7 dimensions
    for old in 0, 1:
        copy(old, 0, 7, sizes, target, source, 0, 4 * 32768)  # moves all
        copy(old, 0, 7, sizes, target, source, 65536, 65536)  # moves its end
        copy(old, 0, 7, sizes, target, source, MIB, 65536)  # moves something else
        copy(old, 1, 7, sizes, target, source, 0, 0)  # to a GPU
    standin.standin_copy_itself(MIB, target)  # itself
    for old in 0, 1:
        copy(old, 0, 7, sizes, target, source, 0, 0)  # before a move
        standin.standin_memmove(ctypes.addressof(target) + MIB, source, 65536)  # after it
    standin.standin_copy_unknown()  # not one


def torch_copies():
    source = torch.arange(MIB // 4, dtype=torch.float32)
    square = source.reshape(512, 512)
    target = torch.empty_like(source)
    array = numpy.arange(MIB // 8, dtype=numpy.float64)
    deep = torch.zeros((2, 2, 2, 2, 2, 2, 4096), dtype=torch.float64)
    for _ in range(10):
        source.clone()  # a clone
    for _ in range(10):
        target.copy_(source)  # copy_
    for _ in range(10):
        source.double()  # to double
    for _ in range(10):
        square.t().contiguous()  # a transpose
    for _ in range(10):
        torch.tensor(array)  # of an array
    for _ in range(10):
        torch.as_tensor(array, dtype=torch.float32)  # an array's cast
    for _ in range(10):
        deep.clone()  # of 7 dimensions
    for _ in range(10):
        target.copy_(target)  # onto itself
    for _ in range(10):
        torch.from_numpy(array)  # none
    for _ in range(10):
        target.numpy().copy()  # its memory


def finish():
    TRACK(3, 0xd000000, 1000)  # finish
    kept.append(Kept())
    time.sleep(1)  # code objects are named while they are there


class Kept:
    def __del__(self, untrack=UNTRACK, delete=DELETE):
        untrack(3, 0xd000000)
        delete(0, 0x1000000)


def leave():
    finish()
    sys.exit()


def grow():
    kept.append(bytearray(b"x") * (64 << 20))


def endless():
    for i in range(1 << 40):
        NEW(0, 0xc000000 + i % 1000 * 64, 64)  # endless
        if i % 10000 == 0:
            TRACK(3, 0xe000000 + i, 1000)  # endless kept


if sys.argv[2:]:
    if sys.argv[2] != "torch":
        globals()[sys.argv[2]]()
        sys.exit()
    import torch
early()
print("ready", "numpy" if numpy else "-", "rlscope" if rlscope else "-", flush=True)
for line in sys.stdin:
    globals()[line.strip()]()
    if line.strip() == "finish":
        break
    print("did", line.strip(), flush=True)
