#!/bin/bash
# check-wheel.sh OUTPUT: the wheel on bare Debian 12 and 13, with their own Python and with every CPython
# that pyenv or scripts/setup-python314 has here. Nothing else is installed. It records a job that imports
# rlscope; uninstalled, it leaves no file.
# shellcheck disable=SC2317 # functions are called by `holds`
set -u -o pipefail
# shellcheck source=scripts/packages/roots.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/roots.sh"
output=${1:?usage: check-wheel.sh OUTPUT}
wheel=$(echo "$output"/rlscope_bpf-*.whl)
file=/root/$(basename "$wheel")

# Interpreters of the host that a bare system may run from where they are: FOLDER PYTHON, a line each.
interpreters() {
	local python
	for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 \
		"${XDG_CACHE_HOME:-$HOME/.cache}"/rlscope-bpf/python3.14/usr/bin/python3.14; do
		[ ! -x "$python" ] || printf '%s %s\n' "$(dirname "$(dirname "$python")")" "$python"
	done
}

# Too old for the wheel, or too new for this system's C library.
is_supported() {
	inside "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 8))' 2>/dev/null
}

# Its own pip, if it has one: each version reads tags in its own way.
installs() {
	local python=$1 pip=/root/venv/bin/pip
	inside rm -rf /root/venv
	if ! inside "$python" -m venv /root/venv >/dev/null 2>&1; then
		inside "$python" -m venv --without-pip --clear /root/venv || return
		pip="/root/pip/bin/pip --python /root/venv/bin/python"
	fi
	(cd "$bare/root/venv" && find . ! -path '*__pycache__*' ! -type d | sort) >"$bare/tmp/before"
	# shellcheck disable=SC2086 # a command and its arguments
	inside $pip --disable-pip-version-check -q install --no-index "$file"
}

records() {
	if ! inside /root/venv/bin/rlscope-bpf run --report /root/report -o /root/trace -- \
		/root/venv/bin/python /root/train.py 3 >"$bare/root/log" 2>&1; then
		cat "$bare/root/log"
		return 1
	fi
	names_operations "$bare/root/report"
}

uninstalls() {
	inside /root/venv/bin/pip -q uninstall -y rlscope-bpf || return
	(cd "$bare/root/venv" && find . ! -path '*__pycache__*' ! -type d | sort) >"$bare/tmp/after"
	! comm -13 "$bare/tmp/before" "$bare/tmp/after" | grep .
}

refuses_users() {
	chmod 755 "$bare/root" && inside setpriv --reuid 65534 --regid 65534 --clear-groups \
		/root/venv/bin/rlscope-bpf run -o /tmp/trace -- /bin/true >"$bare/tmp/refused" 2>&1
	[ "$(wc -l <"$bare/tmp/refused")" = 1 ] && grep -q 'run as root' "$bare/tmp/refused"
}

runs_as_module() {
	inside /root/venv/bin/python -m rlscope_bpf --version >/dev/null
}

# check_python NAME PYTHON
check_python() {
	holds "$1: installed" installs "$2"
	holds "$1: run records a job that imports rlscope" records
	holds "$1: python -m rlscope_bpf is the same" runs_as_module
}

for suite in bookworm trixie; do
	enter_bare $suite || exit 1
	# ensurepip and venv of Debian's Python are a package of their own.
	install_inside python3-venv || exit 1
	cp "$wheel" "$bare/root/"
	train_inside
	check_python "$suite, its Python" /usr/bin/python3
	holds "$suite: without root one sentence says what is needed" refuses_users
	holds "$suite: uninstalled, it leaves no file" uninstalls
	inside /usr/bin/python3 -m venv /root/pip
	while read -r folder python; do
		mkdir -p "$bare$folder"
		mount --bind -o ro "$folder" "$bare$folder"
		! is_supported "$python" || check_python "$suite, $(inside "$python" --version)" "$python"
		umount "$bare$folder"
	done < <(interpreters)
	leave_bare
done
exit $status
