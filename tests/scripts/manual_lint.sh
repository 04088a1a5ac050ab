#!/bin/bash
# Every command of the table has a manual page, and mandoc finds no fault in any page.
set -u
cd ../doc/man || exit 1
while read -r name; do
	[ -e "rlscope-bpf-$name.1" ] || {
		echo "no manual page for the command $name"
		exit 1
	}
done < <(sed -n 's/^\t{ "\([a-z]*\)", rls_command_.*/\1/p' ../../userspace/main.c)
if ! command -v mandoc >/dev/null; then
	echo "mandoc is not installed"
	exit 77
fi
mandoc -T lint -W warning *.1
