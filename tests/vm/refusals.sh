#!/bin/bash
# What kernels cannot or may not do for us: one sentence each. Boots three machines.
set -u
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
status=0

refused() {
	"$VMTEST_SCRIPT" --timeout 200 "$@" || status=1
}

refused --kernel 5.10 -- "$here/refused.sh" "$RLS_BUILD" old
refused --kernel 6.12 --append lockdown=confidentiality -- "$here/refused.sh" "$RLS_BUILD" lockdown
refused --kernel 6.1 -- "$here/refused.sh" "$RLS_BUILD" capabilities btf
exit $status
