"""Every way across the boundary, and how many transitions one pass of it is worth.

A kind is a statement, like timeit's: `setup` runs once on another thread, then the
statement runs n times on a thread of its own. Truth is by construction: one entry from
Python into the simulator is python->simulator once and simulator->python once; one call
back into Python from there is simulator->python once and python->simulator once.
README.md gives the reasons case by case.
"""

import sys
from collections import namedtuple

Kind = namedtuple(
    "Kind", "group name setup statement entries callouts jumps other needs since lesser")


def kind(group, name, statement, setup="pass", entries=1, callouts=0, jumps=0, other=None,
         needs=None, since=(3, 8), lesser=None):
    return Kind(group, name, setup, statement, entries, callouts, jumps, other or {}, needs, since,
                lesser)


def truth_of(chosen, count):
    """{"from->to": n} of `count` passes of the kind, without the zeroes."""
    there = count * (chosen.entries + chosen.callouts)
    truth = {"python->simulator": there, "simulator->python": there}
    for flow, each in chosen.other.items():
        truth[flow] = truth.get(flow, 0) + each * count
    return {flow: n for flow, n in truth.items() if n}


def lesser_of(chosen, count):
    """What a profiler may report instead that leaves out, as documented, Python code behind an
    operator; None where the truth alone will do."""
    if chosen.lesser is None:
        return None
    return {"python->simulator": count * chosen.lesser, "simulator->python": count * chosen.lesser}


METHODS = [
    kind("methods", "noargs", "sim.noargs()"),
    kind("methods", "o", "sim.o(None)"),
    kind("methods", "varargs", "sim.varargs(1, 2)"),
    kind("methods", "keywords", "sim.keywords(3, b=4)"),
    kind("methods", "fastcall", "sim.fastcall(1, 2, 3)"),
    kind("methods", "fastcall_keywords", "sim.fastcall_keywords(1, x=2)"),
    kind("methods", "argument_unpacking", "sim.fastcall(*args)", "args = (1, 2)"),
    kind("methods", "raises", "try: sim.raises()\n            except ValueError: pass"),
    kind("methods", "spin_nogil", "sim.spin_nogil(1000)"),
    kind("methods", "heap_noargs", "sim.heap_noargs()"),
    kind("methods", "heap_o", "sim.heap_o(None)"),
    kind("methods", "heap_varargs", "sim.heap_varargs(1, 2)"),
    kind("methods", "heap_fastcall", "sim.heap_fastcall(1)"),
    # Seen from within the function, at its call and at the jump behind it, both ways.
    kind("methods", "brief", "sim.brief(True); sim.brief(False)", entries=2),
    kind("methods", "brief_nested", "sim.brief(inner)", "def inner(): return sim.brief(True)",
         entries=2, callouts=1),
    kind("methods", "brief_50", "rec(50)",
         "def rec(depth): return sim.brief(lambda: rec(depth - 1)) if depth else True",
         entries=50, callouts=50),
    kind("methods", "from_map", "list(map(sim.o, range(10)))", entries=10),
    kind("methods", "from_sort", "sorted(items, key=sim.o)", "items = list(range(10))", entries=10),
]


def type_kinds(type_name):
    """The slots, methods and getters of one of the two types that have them all."""
    setup = "x = sim.%s(); y = sim.%s()" % (type_name, type_name)
    rows = [
        ("init", "sim.%s()" % type_name), ("len", "len(x)"), ("getitem", "x[1]"),
        ("setitem", "x[1] = 2"), ("delitem", "del x[1]"), ("contains", "None in x"),
        ("add", "x + y"), ("bool", "not x"), ("call", "x(1, 2)"), ("iter", "iter(x)"),
        ("iternext", "next(x)"), ("equal", "x == y"), ("less", "x < y"), ("hash", "hash(x)"),
        ("repr", "repr(x)"), ("str", "str(x)"), ("get", "x.value"), ("set", "x.value = -1"),
        ("wrapped_len", "x.__len__()"), ("method_noargs", "x.noargs()"), ("method_o", "x.o(y)"),
        ("method_fastcall", "x.fastcall(1, 2)"), ("method_class", "x.klass()"),
        ("method_static", "x.static(y)"),
    ]
    kinds = [kind("slots", "%s_%s" % (type_name.lower(), name), statement,
                  setup + "; x.value = -1") for name, statement in rows]
    # One tp_init, the setter, one tp_iter, ten items and the end: 14.
    kinds.append(kind("slots", "%s_for" % type_name.lower(),
                      "z = sim.%s(); z.value = 10\n            for _i in z: pass" % type_name,
                      entries=14))
    return kinds


SLOTS = type_kinds("Static") + type_kinds("Heap") + [
    kind("slots", "heap_method_method", "x.method(1, k=2)", "x = sim.Heap()", since=(3, 9)),
    kind("slots", "subclass_len", "len(x)", "class Sub(sim.Heap): pass\n    x = Sub()"),
    kind("slots", "seq_item", "x[3]", "x = sim.Seq()"),
    kind("slots", "seq_ass_item", "x[3] = 1", "x = sim.Seq()"),
    kind("slots", "getattro", "x.anything", "x = sim.Attr()"),
    kind("slots", "setattro", "x.anything = 1", "x = sim.Attr()"),
    # tp_new and, at once, tp_dealloc.
    kind("lifetime", "new_and_dealloc", "sim.Lifetime()", entries=2),
]

TARGET = ("class Target:\n        def step(self): return None\n"
          "    x = Target()\n    def function(*unused): return None")


def way(name, target, since=(3, 8), group="callbacks"):
    return kind(group, name, "sim.callback(%r, %s, 5)" % (name, target), TARGET, callouts=5,
                since=since)


CALLBACKS = [
    way("call_object", "function"), way("jump_object", "function"),
    way("call_function", "function"), way("call_function_objargs", "function"),
    way("call_method", "x"), way("call_method_objargs", "x"), way("call_keywords", "function"),
    way("vectorcall", "function"), way("call_no_args", "function", (3, 9)),
    way("call_one_arg", "function", (3, 9)), way("vectorcall_method", "x", (3, 9)),
    kind("callbacks", "raises_in_callback",
         "try: sim.callback('call_object', fail, 1)\n            except ValueError: pass",
         "def fail(): raise ValueError('asked for')", callouts=1),
    # In and out by a jump: nothing of the simulator runs after it.
    kind("callbacks", "tail", "sim.tail(function)", TARGET, jumps=1),
    kind("callbacks", "nested_callback", "sim.callback('call_object', inner, 3)",
         "def inner(): sim.noargs()", entries=4, callouts=3),
    # rec(100) makes 100 entries with one call out each; the last call out ends it.
    kind("recursion", "depth_100", "rec(100)",
         "def rec(depth): return sim.recurse(rec, depth - 1) if depth else 0",
         entries=100, callouts=100),
]

# By an address loaded before. What may be another function too is left out (lesser).
LOADED = [way("loaded_" + name, "function", group="loaded") for name in (
    "either", "picked", "either_jump", "kept", "frame", "variable", "structure", "table")] + [
    way("loaded_perhaps", "function", group="loaded")._replace(lesser=1),
    kind("loaded", "raises_in_loaded",
         "try: sim.callback('loaded_either', fail, 1)\n            except ValueError: pass",
         "def fail(): raise ValueError('asked for')", callouts=1),
    kind("loaded", "thrice", "ld.thrice(function)", TARGET, callouts=6, needs="ld"),
    kind("loaded", "failing", "ld.failing(fail)", "def fail(): raise ValueError('asked for')", callouts=6,
         needs="ld"),
    # The third call of six, by either way, throws through what called it.
    kind("loaded", "thrown", "try: ld.thrice(fail_third)\n            except ValueError: pass",
         "calls = iter(range(1 << 60))\n    def fail_third():\n"
         "        if next(calls) % 3 == 2: raise ValueError('asked for')", callouts=3, needs="ld"),
]

PROTOCOL_TARGET = (
    "class Target:\n        @property\n        def attribute(self): return None\n"
    "        @attribute.setter\n        def attribute(self, value): pass\n"
    "        def __getitem__(self, key): return None\n"
    "        def __add__(self, other): return None\n"
    "        def __lt__(self, other): return True\n"
    "        def __repr__(self): return 'x'\n        def __str__(self): return 'x'\n"
    "        def __len__(self): return 3\n        def __bool__(self): return True\n"
    "    class Dying:\n        def __del__(self): pass\n"
    "    def generate():\n        while True: yield None\n"
    "    x = Target(); generator = generate()")


def protocol(name, target="x"):
    return way(name, target, group="protocol")._replace(setup=PROTOCOL_TARGET, lesser=1)


PROTOCOL = [
    protocol("iter_next", "generator")._replace(lesser=None), protocol("get_attr"), protocol("set_attr"),
    protocol("get_item"), protocol("number_add"), protocol("rich_compare"),
    protocol("object_repr"), protocol("object_str"), protocol("object_size"),
    protocol("is_true"), protocol("drop_last", "[Dying() for _i in range(5)]"),
]

CROSS = [
    kind("cross", "backend_noargs", "back.noargs()", entries=0,
         other={"python->backend": 1, "backend->python": 1}),
    # From C to an exported function of the other library, five times.
    kind("cross", "simulator_to_backend", "sim.cross(5)",
         other={"simulator->backend": 5, "backend->simulator": 5}),
    kind("cross", "backend_python_simulator", "back.call(inner, 2)", "def inner(): sim.noargs()",
         entries=2, other={"python->backend": 3, "backend->python": 3}),
]

# ctypes calls what the library exports.
CTYPES = [
    kind("ctypes", "noop", "c.truthc_noop(1)", needs="c"),
    kind("ctypes", "doubles", "c.truthc_add(1.0, 2.0)", needs="c"),
    kind("ctypes", "gil_kept", "cpy.truthc_noop(1)", needs="c"),
    # Inner calls within the library change nothing.
    kind("ctypes", "outer", "c.truthc_outer(3)", needs="c"),
    kind("ctypes", "callback", "c.truthc_callback(cfunction, 4)",
         "cfunction = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(abs)", callouts=4, needs="c"),
    kind("ctypes", "callback_nested", "c.truthc_callback(cfunction, 2)",
         "cfunction = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(lambda i: c.truthc_noop(i))",
         entries=3, callouts=2, needs="c"),
    kind("ctypes", "nest_70", "c.truthc_nest(cfunction, 70)",
         "cfunction = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(lambda i: i)", callouts=1,
         needs="c"),
    kind("cxx", "value", "cxx.truthcxx_value(1)", needs="cxx"),
    kind("cxx", "catch_inside", "cxx.truthcxx_catch_inside(2)", needs="cxx"),
]


def bound_kinds(group, needs):
    """What pybind11 and nanobind modules of the same contents do."""
    body = "x = %s.Body()" % needs
    raises = "try: %s.raises()\n            except RuntimeError: pass" % needs
    return [
        kind(group, "add", needs + ".add(1, 2)", needs=needs),
        kind(group, "method", "x.step(1)", body, needs=needs),
        kind(group, "property_get", "x.mass", body, needs=needs),
        kind(group, "property_set", "x.mass = 3", body, needs=needs),
        kind(group, "translated", raises, needs=needs),
        kind(group, "callback", needs + ".callback(function, 5)", TARGET, callouts=5, needs=needs),
    ]


GENERATED = bound_kinds("pybind11", "pb") + bound_kinds("nanobind", "nb") + [
    kind("cython", "noargs", "cy.noargs()", needs="cy"),
    kind("cython", "add", "cy.add(1, 2)", needs="cy"),
    kind("cython", "method", "x.step(1)", "x = cy.Body()", needs="cy"),
    kind("cython", "len", "len(x)", "x = cy.Body()", needs="cy"),
    kind("cython", "property", "x.weight", "x = cy.Body()", needs="cy"),
    kind("cython", "callback", "cy.callback(function, 5)", TARGET, callouts=5, needs="cy"),
]

ALL = METHODS + SLOTS + CALLBACKS + LOADED + PROTOCOL + CROSS + CTYPES + GENERATED

# What eight threads do at once: a bit of each sort.
MIX = ["noargs", "brief", "fastcall", "heap_o", "static_len", "heap_getitem", "heap_get", "call_object",
       "vectorcall", "loaded_either", "nested_callback", "simulator_to_backend", "depth_100"]


def usable(env):
    """The kinds that this interpreter and these modules can do."""
    return [k for k in ALL
            if sys.version_info >= k.since and (k.needs is None or env.get(k.needs) is not None)]


def build(chosen, env):
    """run(n) of a kind; its setup has been done on the calling thread."""
    source = ("def make({names}):\n    {setup}\n    def run(n):\n        for _ in range(n):\n"
              "            {statement}\n    return run\n").format(
                  names=", ".join(env), setup=chosen.setup, statement=chosen.statement)
    space = {}
    exec(compile(source, "<%s>" % chosen.name, "exec"), space)
    return space["make"](**env)
