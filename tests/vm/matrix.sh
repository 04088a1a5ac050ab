#!/bin/bash
# matrix.sh KERNEL: root tests under it; more of them when all kernels are asked for.
set -u
# shellcheck source=tests/vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_kernels "$1"
more=()
[ "${RLS_KERNELS:-}" != all ] || more=(--thorough)
"$vmtest" --build "$RLS_BUILD" --kernel "$1" --timeout 1000 "${more[@]}"
status=$?
[ $status != 126 ] || skip "the machine or the kernel is not to be had (see above)"
exit $status
