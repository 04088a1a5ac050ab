#!/usr/bin/env python3
"""tags.py SOURCES: what a name means, it means everywhere.

Fails when a struct, union or enum tag of a header is defined in two headers, when two headers have
one include guard, or when a header's guard does not name the header.
"""
import os
import re
import sys

from layers import sources

TAG = re.compile(r"^(struct|union|enum) (\w+) \{", re.M)
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1\b", re.M)


def main():
    top, faults, tags, guards = sys.argv[1], [], {}, {}
    headers = [path for path in sorted(sources(top)) if path.endswith(".h")]
    for path in headers:
        with open(os.path.join(top, path), encoding="utf-8") as file:
            text = file.read()
        for kind, name in TAG.findall(text):
            tags.setdefault((kind, name), []).append(path)
        guard = GUARD.search(text)
        stem = re.sub(r"\W", "_", re.sub(r"(\.bpf)?\.h$", "", os.path.basename(path))).upper()
        if not guard:
            faults.append("%s has no include guard" % path)
        elif stem not in guard.group(1):
            faults.append("%s has the guard %s, which does not name it" % (path, guard.group(1)))
        else:
            guards.setdefault(guard.group(1), []).append(path)
    faults += ["%s %s is defined in %s" % (kind, name, " and ".join(paths))
               for (kind, name), paths in sorted(tags.items()) if len(paths) > 1]
    faults += ["the guard %s is that of %s" % (guard, " and ".join(paths))
               for guard, paths in sorted(guards.items()) if len(paths) > 1]
    for fault in faults:
        print(fault)
    print("%d headers, %d tags, %d faults" % (len(headers), len(tags), len(faults)))
    return 1 if faults or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
