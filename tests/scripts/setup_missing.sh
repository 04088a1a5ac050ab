#!/bin/bash
# On a system that lacks things, setup names them and says what to do, and does not touch
# the system: first where there is no apt-get, then where nobody may be root.
set -u
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
for tool in bash basename cat cut dirname grep head sed sort tr uname; do
	ln -s "$(command -v "$tool")" "$tools/$tool"
done
printf '#!/bin/bash\necho 1000\n' >"$tools/id"
chmod +x "$tools/id"

# expect_refusal WORDS: setup fails and one of its lines has all of WORDS.
expect_refusal() {
	local said
	said=$(PATH=$tools bash ./setup build 2>&1) && {
		echo "setup succeeded without any tool"
		exit 1
	}
	for word in "$@"; do
		grep -q -- "$word" <<<"$said" || {
			printf 'setup did not say "%s" but:\n%s\n' "$word" "$said"
			exit 1
		}
	done
}

expect_refusal "missing here" "cmake" "libbpf-dev" "package manager"
printf '#!/bin/bash\necho "apt-get was run" >&2\nexit 1\n' >"$tools/apt-get"
chmod +x "$tools/apt-get"
expect_refusal "missing here" "cmake" "needs root" "apt-get install"
if PATH=$tools bash ./setup build 2>&1 | grep -q "apt-get was run"; then
	echo "setup ran apt-get without being root"
	exit 1
fi
