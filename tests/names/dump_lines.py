"""Writes code objects of this interpreter's standard library to stdout, for test_line_table:
each as its line table and, from Python's own decoder, the line of every instruction.

usage: dump_lines.py SHARE   (of the files: 1 for all, 8 for every eighth)

First the interpreter's minor version. Then code objects, each: first line, bytes of the table, the table, number of ranges, and each
range as start, end, line (0 for none); 32-bit little-endian numbers.
"""
import dis
import marshal
import os
import struct
import sys
import sysconfig
import types

SHARE = int(sys.argv[1])
OUT = sys.stdout.buffer


def ranges_of(code):
    if hasattr(code, "co_lines"):
        return [(start, end, line or 0) for start, end, line in code.co_lines()]
    starts = list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    return [(start, end, line) for (start, line), end in zip(starts, ends)]


def write(code):
    table = code.co_linetable if hasattr(code, "co_lines") else code.co_lnotab
    ranges = [r for r in ranges_of(code) if r[0] < r[1]]
    OUT.write(struct.pack("<iI", code.co_firstlineno, len(table)) + table)
    OUT.write(struct.pack("<I", len(ranges)))
    for entry in ranges:
        OUT.write(struct.pack("<IIi", *entry))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            write(constant)


def sources():
    for folder, folders, files in os.walk(sysconfig.get_path("stdlib")):
        folders[:] = sorted(f for f in folders if f not in ("site-packages", "dist-packages"))
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def compiled(path):
    cached = os.path.join(os.path.dirname(path), "__pycache__",
                          f"{os.path.basename(path)[:-3]}.{sys.implementation.cache_tag}.pyc")
    try:
        with open(cached, "rb") as file:
            return marshal.loads(file.read()[16:])
    except (OSError, ValueError, EOFError):
        with open(path, "rb") as file:
            return compile(file.read(), path, "exec", dont_inherit=True)


OUT.write(struct.pack("<I", sys.version_info[1]))
for number, path in enumerate(sources()):
    if number % SHARE == 0:
        try:
            write(compiled(path))
        except (SyntaxError, ValueError, UnicodeDecodeError, FileNotFoundError):
            pass  # kept broken on purpose, for the library's own tests; or a link to nowhere
