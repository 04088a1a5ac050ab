#!/bin/bash
# with_kernels.sh "KERNEL..." [COMMAND...]: COMMAND, or else vmtest on each kernel, where
# they have been fetched and RLS_KERNELS is set.
set -u
export VMTEST_SCRIPT="${BASH_SOURCE[0]%/*}/../../scripts/vmtest"
read -ra kernels <<<"$1"
shift

[ -n "${RLS_KERNELS:-}" ] || { echo "SKIP: opt-in: RLS_KERNELS=1 (minutes a kernel, emulated)" && exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root: machines see this system's files" && exit 77; }
for kernel in "${kernels[@]}"; do
	[ "$("$VMTEST_SCRIPT" --list | awk -v k="$kernel" '$1 == k { print $3 }')" = fetched ] && continue
	echo "SKIP: kernel $kernel is not here: scripts/vmtest --fetch --kernel $kernel"
	exit 77
done
[ $# = 0 ] || exec "$@"
exec "$VMTEST_SCRIPT" --build "$RLS_BUILD" --timeout 420 "${kernels[@]/#/--kernel=}"
