# Which kernels the tests of this folder take. Sourced, never run.
# RLS_KERNELS: a list of them, "all" or "none"; without it those of `default_kernels`.

default_kernels="5.10 6.1 6.12" # what is refused, and both sides of 6.6, where uprobe_multi came
vmtest="$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../../scripts/vmtest"

skip() {
	echo "SKIP: $*"
	exit 77
}

need_kernels() {
	local wanted=" ${RLS_KERNELS:-$default_kernels} " kernel
	[ "$(id -u)" = 0 ] || skip "needs root: machines see this system's files"
	for kernel in "$@"; do
		[ "$wanted" = " all " ] || [[ $wanted = *" $kernel "* ]] ||
			skip "kernel $kernel is not asked for; RLS_KERNELS=all takes every one"
		[ "$("$vmtest" --list | awk -v k="$kernel" '$1 == k { print $3 }')" = fetched ] ||
			skip "kernel $kernel is not here: sudo scripts/vmtest --fetch --kernel $kernel"
	done
}
