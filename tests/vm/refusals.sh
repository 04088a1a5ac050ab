#!/bin/bash
# What kernels cannot or may not do for us: one sentence each. Boots three machines.
set -u
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=tests/vm/lib.sh
. "$here/lib.sh"
status=0

refused() {
	"$vmtest" --timeout 200 "$@" || status=$?
}

need_kernels 5.10 6.1 6.12
refused --kernel 5.10 -- "$here/refused.sh" "$RLS_BUILD" old
refused --kernel 6.12 --append lockdown=confidentiality -- "$here/refused.sh" "$RLS_BUILD" lockdown
refused --kernel 6.1 -- "$here/refused.sh" "$RLS_BUILD" capabilities ptrace btf
[ $status != 126 ] || skip "the machine or a kernel is not to be had (see above)"
exit $status
