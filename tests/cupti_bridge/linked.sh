#!/bin/sh
# linked.sh LIBRARY: the bridge wants nothing but a C library, of 2.34 or newer, and shows nothing but
# the function that libcuda calls.
set -eu
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
newest=$(readelf -V "$1" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
shown=$(readelf --dyn-syms -W "$1" | awk '$5 == "GLOBAL" && $7 != "UND" { print $8 }')
echo "needed: $needed; newest: $newest; shown: $shown"
[ "$needed" = libc.so.6 ]
[ "$(printf '%s\n' "$newest" GLIBC_2.34 | sort -V | tail -n 1)" = GLIBC_2.34 ]
[ "$shown" = InitializeInjection ]
