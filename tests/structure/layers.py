#!/usr/bin/env python3
"""layers.py SOURCES: the structure of the product, read off its #include lines.

Fails, with a line for each fault, when
  - a file includes a header of a room that lies above its own (layers.txt);
  - files include each other in a circle (a .c file and its header count as one);
  - a room holds more than 25 source files, or is missing in layers.txt;
  - an include does not name its header by the path from the root.
"""
import os
import re
import sys

FILES_MAX = 25
ROOTS = ("analysis", "bpf", "userspace", "cupti_bridge")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def sources(top):
    for root in ROOTS:
        for folder, _, names in os.walk(os.path.join(top, root)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), top)


def includes(top, path):
    with open(os.path.join(top, path), encoding="utf-8") as file:
        return INCLUDE.findall(file.read())


def unit(path):
    return re.sub(r"(\.bpf)?\.[ch]$", "", path)


def read_layers():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers.txt")
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return {room: floor for floor, room in
            enumerate(line for line in lines if line and not line.startswith("#"))}


def circles(arrows):
    """Tarjan's strongly connected components of more than one node."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def check(top):
    layers, faults, arrows, rooms = read_layers(), [], {}, {}
    files = sorted(sources(top))
    known = set(files)
    for path in files:
        room = os.path.dirname(path)
        rooms[room] = rooms.get(room, 0) + 1
        for header in includes(top, path):
            if header not in known:
                if os.path.exists(os.path.join(top, room, header)):
                    faults.append("%s includes %s by no path from the root" % (path, header))
                continue        # generated, or a system's
            if unit(header) != unit(path):
                arrows.setdefault(unit(path), set()).add(unit(header))
            other = os.path.dirname(header)
            if layers.get(other, 0) > layers.get(room, 0):
                faults.append("%s includes %s, of a room above its own" % (path, header))
    faults += ["%s is not in layers.txt" % room for room in sorted(rooms) if room not in layers]
    faults += ["layers.txt names %s, which has no source file" % room
               for room in layers if room not in rooms]
    faults += ["%s holds %d source files, more than %d" % (room, count, FILES_MAX)
               for room, count in sorted(rooms.items()) if count > FILES_MAX]
    faults += ["these include each other in a circle: %s" % ", ".join(circle)
               for circle in circles(arrows)]
    return faults, len(files), len(rooms)


def main():
    sys.setrecursionlimit(10000)
    faults, files, rooms = check(sys.argv[1])
    for fault in faults:
        print(fault)
    print("%d files in %d rooms, %d faults" % (files, rooms, len(faults)))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
