"""A job that hangs: hang_job.py SHAPE…, each in a thread of its own, the first one in the main thread.
Prints {"ready": …, shape: its thread}; each shape hangs in the line with its name in a comment. The
shapes that can go on do so at "go" on stdin, which a thread of its own reads: then "gone" is printed."""

import ctypes
import json
import multiprocessing
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

GO = threading.Event()
near, far = socket.socketpair()
read_end, write_end = os.pipe()
first, second = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
tids = {}


def lock():
    held = threading.Lock()
    held.acquire()
    held.acquire()  # lock


def rlock():
    held = threading.RLock()
    other = threading.Thread(target=lambda: (held.acquire(), time.sleep(1e6)), daemon=True)
    other.start()
    while held.acquire(blocking=False):
        held.release()
        time.sleep(0.001)
    held.acquire()  # rlock


def join():
    other = threading.Thread(target=time.sleep, args=(1e6,), daemon=True)
    other.start()
    other.join()  # join


def get():
    queue.Queue().get()  # get


def recv():
    near.recv(1)  # recv


def accept():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.accept()  # accept


def pipe():
    os.read(read_end, 1)  # pipe


def child():
    subprocess.Popen(["sleep", "1000000"]).wait()  # child


def worker():
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1e6,), daemon=True)
    process.start()
    tids["in worker"] = process.pid
    process.join()  # worker


def selected():
    select.select([near], [], [])  # selected


def polled():
    poll = select.epoll()
    poll.register(near.fileno(), select.EPOLLIN)
    poll.poll()  # polled


def futex():
    word = ctypes.c_int(0)
    ctypes.CDLL(None).syscall(202, ctypes.byref(word), 128, 0, None)  # futex


def paused():
    time.sleep(1e6)  # paused


def signalled():
    signal.sigtimedwait([signal.SIGUSR2], 1e6)  # signalled


def spawned():
    """With the GIL, in the kernel until its child has begun its program, which waits for a writer: state D."""
    path = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(path)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0)])  # spawned


def dead():
    with first:
        both.wait()
        with second:  # dead
            pass


def locked():
    with second:
        both.wait()
        with first:  # locked
            pass


def spinning():
    while True:  # spinning
        pass


def ending():
    while not GO.is_set():
        GO.wait()  # ending
    print("gone", flush=True)
    after()


def after():
    time.sleep(1e6)  # after


def hang(shape):
    tids[shape] = threading.get_native_id()
    globals()[shape]()


def main(shapes):
    for shape in shapes[1:]:
        threading.Thread(target=hang, args=(shape,), daemon=True).start()
    while not all(shape in tids for shape in shapes[1:]) or ("worker" in shapes and "in worker" not in tids):
        time.sleep(0.01)
    print(json.dumps({"ready": os.getpid(), **tids, shapes[0]: os.getpid()}), flush=True)
    if shapes[0] != "spawned":
        threading.Thread(target=listen, daemon=True).start()
    hang(shapes[0])


def listen():
    sys.stdin.readline()
    GO.set()


main(sys.argv[1:])
