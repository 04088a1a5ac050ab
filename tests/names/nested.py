"""A stack of every kind of frame, printed to stdout, that stays as it is until a line comes on stdin."""
import functools
import sys


def report_frame(frame):
    while frame:
        code = frame.f_code
        print(frame.f_lineno, getattr(code, "co_qualname", code.co_name), code.co_filename,
              sep="\t")
        frame = frame.f_back


def wait():
    (report_frame(sys._getframe()), print("ready", flush=True), sys.stdin.readline())


class Größe:
    def método(self):
        return [wait() for _ in range(1)]

    def __len__(self):
        self.método()
        return 1


def deep(depth):
    if depth:
        return deep(depth - 1)
    return len(Größe())


def generator():
    yield deep(20)


def decorated(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner


@decorated
def outer(_):
    return sorted(
        generator(),
        key=lambda x: x
    )


exec(compile("\n\ndef made():\n    return list(map(outer, [1]))\nmade()", "<string ☃>", "exec"))
