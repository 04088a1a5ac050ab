#!/usr/bin/env python3
"""library_symbols.py NM LIBRARY: the analysis library needs nothing of BPF, CUDA or sockets.

It runs without root on any machine that has a trace, so what it leaves undefined comes from the C
library, libm, zlib, jansson, protobuf-c and SQLite alone.
"""
import re
import subprocess
import sys

BANNED = re.compile(
    r"^(bpf_|libbpf|btf__|perf_|ring_buffer__|cu[A-Z]|cuda[A-Z]|cupti|nvtx|"
    r"(socket|bind|listen|accept4?|connect|send(to|msg)?|recv(from|msg)?|getaddrinfo|setsockopt)$|"
    r"MHD_|ptrace$|process_vm_|fork$|exec[vl]|posix_spawn|system$|popen$|exit$|_exit$|abort$|"
    r"rls_kernel_|rls_recorder_|rls_log|rls_error_r$)")


def main():
    nm, library = sys.argv[1:]
    listing = subprocess.run([nm, "--undefined-only", "--format=just-symbols", library],
                             capture_output=True, text=True, check=False)
    if listing.returncode:
        listing = subprocess.run([nm, "-u", library], capture_output=True, text=True, check=True)
    symbols = {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines()
               if line.split() and not line.endswith(":")}
    if "malloc" not in symbols:
        print("%s lists no undefined malloc: this is no list of the library's symbols" % nm)
        return 1
    found = sorted(filter(BANNED.match, symbols))
    for symbol in found:
        print("the analysis library uses %s" % symbol)
    print("%d undefined symbols, %d that it may not use" % (len(symbols), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
