"""Layers of every kind of object, and what each is called: address, path, raw path, class."""
import sys


class Module:
    def __init__(self, **layers):
        self._modules = dict(layers)
        self.training = True

    def __call__(self, *values):
        return values


class Mixin:
    pass


class Linear(Module):
    pass


class Mixed(Mixin, Module):
    pass


class Slotted(Module):
    __slots__ = ("extra",)


class Many(Module):
    """More attributes than keys that are shared."""

    def __init__(self, **layers):
        for i in range(40):
            setattr(self, "attribute%d" % i, i)
        super().__init__(**layers)


class OrderedChildren(Module):
    def __init__(self, **layers):
        super().__init__()
        import collections

        self._modules = collections.OrderedDict(layers)


class DistributedDataParallel(Module):
    pass


class OptimizedModule(Module):
    pass


class Schicht层(Module):
    pass


class Callable:
    def __call__(self):
        pass


def named(layer, path, raw, seen, wrapped=False):
    if id(layer) in seen:
        return
    name = type(layer).__name__
    seen[id(layer)] = (path or name, raw or name, name)
    for part, child in layer._modules.items():
        if not isinstance(child, Module):
            continue
        wraps = part == "_orig_mod" or (part == "module" and name == "DistributedDataParallel")
        named(child, path if wraps else join(path, part), join(raw, part), seen)


def join(path, part):
    return path + "." + part if path else part


def chain(depth):
    layer = Linear()
    for _ in range(depth):
        layer = Linear(next=layer)
    return layer


def main():
    shared = Linear()
    deleted = Linear(a=Linear(), b=Linear(), c=Linear())
    del deleted._modules["b"]
    deleted._modules["d"] = Linear()
    late = Linear()
    late._modules["später"] = Schicht层()
    many = {"layer%d" % i: Linear() for i in range(300)}
    dynamic = type("Dynamic", (Mixed,), {})()
    inner = Many(
        first=shared, second=shared, deleted=deleted, late=late, mixed=Mixed(x=Slotted(y=Linear())),
        ordered=OrderedChildren(z=Linear(), w=None), none=None, other=Callable(), dynamic=dynamic,
        many=Linear(**many), chain=chain(20),
    )
    root = DistributedDataParallel(module=inner, compiled=OptimizedModule(_orig_mod=Linear(k=Linear())))
    materialized = Linear(k=Linear())
    materialized.__dict__
    inner._modules["materialized"] = materialized
    cyclic = Linear()
    cyclic._modules["self"] = cyclic
    inner._modules["cyclic"] = cyclic

    parts, whole = {}, {}
    named(late, "", "", parts)
    named(root, "", "", whole)
    sys.stdout.reconfigure(encoding="utf-8")
    print("ready", flush=True)
    print("%d %d" % (id(late), id(root)))
    for names in (parts, whole):
        for address, name in names.items():
            print("\t".join((str(address),) + name))
        print("end", flush=True)
    sys.stdin.readline()


main()
