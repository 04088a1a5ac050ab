"""A job that calls layers: layers_job.py [torch].

Each line of stdin is the name of a function here. How often it calls which layer is known: each layer counts its
calls. The answer is "did" and the name; that to "truth" is what was counted: calls by path, and times of layers that
spin, as seen within and around their calls."""

import json
import os
import sys
import threading
import time

if sys.argv[1:] == ["torch"]:
    from torch.nn import Module as Base
else:
    class Base(object):
        def __init__(self):
            self._modules = {}

        def __setattr__(self, name, value):
            if isinstance(value, Base):
                self._modules[name] = value
            object.__setattr__(self, name, value)

        def __call__(self, *values):
            return self.forward(*values)

    Base.__name__ = "Module"

counts = {}
lock = threading.Lock()
within = around = 0


class Counted(Base):
    """Counts by its path, which it is given."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            setattr(self, name, layer)

    def count(self):
        with lock:
            counts[self.path] = counts.get(self.path, 0) + 1


class Leaf(Counted):
    def forward(self, value):
        self.count()
        return value


class Chain(Counted):
    def forward(self, value):
        self.count()
        for layer in list(self._modules.values()):
            value = layer(value)
        return value


class Raising(Counted):
    def forward(self, value):
        self.count()
        raise ValueError(value)


class Catching(Chain):
    def forward(self, value):
        try:
            return super().forward(value)
        except ValueError:
            return value


class Recursive(Counted):
    def forward(self, value):
        self.count()
        return self(value - 1) if value else value


class Generating(Counted):
    def forward(self, value):
        self.count()
        return (i for i in range(value))


class Spinning(Counted):
    def forward(self, value):
        global within
        self.count()
        begin = now = time.monotonic_ns()
        while now < begin + 3000000:
            now = time.monotonic_ns()
        within += now - begin
        return value


class Callable:
    def __call__(self, value):
        return leaf(value)


def give_paths(layer, path=""):
    if not hasattr(layer, "path"):
        object.__setattr__(layer, "path", path or type(layer).__name__)
    for name, child in layer._modules.items():
        give_paths(child, path + "." + name if path else name)
    return layer


def make_net():
    shared = Leaf()
    return give_paths(Chain(fc=Chain(a=Leaf(), b=Leaf()), shared=shared, again=shared,
                            caught=Catching(chain=Chain(bad=Raising(), never=Leaf())), last=Leaf()))


class Deep(Counted):
    def __init__(self, depth):
        super().__init__(**({"next": Deep(depth - 1)} if depth > 1 else {}))

    def forward(self, value):
        self.count()
        return self.next(value) if hasattr(self, "next") else value


net, other = make_net(), make_net()
leaf, recursive, generating = (give_paths(layer()) for layer in (Leaf, Recursive, Generating))
spinning = give_paths(Spinning())
escaping = give_paths(Chain(bad=Raising()))
deep = give_paths(Deep(80))
callable_object = Callable()


def nested():
    for i in range(100):
        net(i)


def escapes():
    for i in range(50):
        try:
            escaping(i)
        except ValueError:
            leaf(i)


def recurses():
    for i in range(10):
        recursive(i)


def generates():
    for i in range(20):
        for _ in generating(3):
            leaf(i)


def no_layers():
    for i in range(200):
        callable_object(i)
        leaf.forward(i)
    counts["Leaf"] -= 200  # those were no calls


def deepens():
    deep(1)


def threads():
    def run(layer):
        for i in range(200):
            layer(i)
    all_threads = [threading.Thread(target=run, args=(layer,)) for layer in (net, other, other, leaf)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()


def spins():
    global around
    for i in range(20):
        begin = time.monotonic_ns()
        spinning(i)
        around += time.monotonic_ns() - begin


def forks():
    pid = os.fork()
    if not pid:
        for i in range(30):
            net(i)
        os._exit(0)
    os.waitpid(pid, 0)
    with lock:
        counts["forked"] = 30


def truth():
    return json.dumps({"counts": counts, "within": within, "around": around, "pid": os.getpid()})


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        answer = globals()[name]()
        print("did %s %s" % (name, answer or ""), flush=True)


main()
