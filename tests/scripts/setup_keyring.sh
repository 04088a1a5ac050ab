#!/bin/bash
# setup finds the keyring that apt's configuration names, in both of apt's formats.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Only the function: the script itself would begin to install.
eval "$(sed -n '/^keyring_of() {/,/^}/p' setup)"

cat >"$folder/a.sources" <<'END'
# A comment before the first stanza

Types: deb
# http://example.invalid/snapshot
URIs: http://mirror.invalid/debian
Suites: bookworm
Signed-By: /keys/first.gpg

Types: deb
URIs: http://mirror.invalid/security
Signed-By: /keys/second.gpg
END
cat >"$folder/b.list" <<'END'
# comment
deb [arch=amd64 signed-by=/keys/line.gpg] http://mirror.invalid/debian bookworm main
deb http://mirror.invalid/debian bookworm-updates main
END

expect() {
	local got
	got=$(keyring_of "$1")
	[ "$got" = "$2" ] || {
		printf 'keyring of %s: "%s", not "%s"\n' "$1" "$got" "$2"
		exit 1
	}
}
expect "$folder/a.sources:1" /keys/first.gpg
expect "$folder/a.sources:2" /keys/second.gpg
expect "$folder/b.list:2" /keys/line.gpg
expect "$folder/b.list:3" ""
