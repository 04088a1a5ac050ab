#!/bin/bash
# check-deb.sh OUTPUT: the Debian package on bare Debian 12 and 13. Installed, it records; the monitor runs
# by its unit's ExecStart and is scraped; purged, it leaves no file.
# shellcheck disable=SC2317 # functions are called by `holds`
set -u -o pipefail
# shellcheck source=scripts/packages/roots.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/roots.sh"
output=${1:?usage: check-deb.sh OUTPUT}
package=$(echo "$output"/rlscope-bpf_*_amd64.deb)

# All files but those that apt, dpkg and Python write for any package.
list_files() {
	(cd "$bare" && find . \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
		-o -path ./tmp -o -path ./root -o -path ./proc -o -path ./sys \) -prune -o -print |
		grep -v '/usr/lib/python3\.[0-9]*/.*__pycache__\|ld\.so\.cache' | sort)
}

records() {
	if ! inside rlscope-bpf run --report /root/report -o /root/trace -- /usr/bin/python3 /root/train.py 3 \
		>"$bare/root/log" 2>&1; then
		cat "$bare/root/log"
		return 1
	fi
	names_operations "$bare/root/report"
}

scrape() {
	inside /usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9435/metrics").read().decode())'
}

# The unit's own command, as systemd is not to be had in a folder; the configuration gives a library a role.
monitors() {
	local command job monitor pages=0
	command=$(sed -n 's/^ExecStart=//p' "$bare/usr/lib/systemd/system/rlscope-bpf-monitor.service")
	echo 'backend _hashlib*.so' >>"$bare/etc/rlscope-bpf/monitor.conf"
	# shellcheck disable=SC2086 # a command and its arguments
	exec_inside $command >"$bare/root/monitor.log" 2>&1 &
	monitor=$!
	exec_inside /usr/bin/python3 /root/train.py 60 &
	job=$!
	for _ in $(seq 120); do
		kill -0 "$job" "$monitor" 2>/dev/null || break
		if scrape 2>/dev/null | grep -q 'operation="backpropagation"'; then
			pages=1
			break
		fi
		sleep 0.5
	done
	kill "$job" "$monitor"
	wait "$job" "$monitor" 2>/dev/null
	[ "$pages" = 1 ]
}

is_off() {
	[ -z "$(find "$bare/etc/systemd" -name 'rlscope*')" ]
}

completes() {
	# shellcheck disable=SC2016 # for the shell inside
	inside bash -c '. /usr/share/bash-completion/completions/rlscope-bpf
		COMP_WORDS=(rlscope-bpf attach --pi) COMP_CWORD=2 && _rlscope_bpf && [ "${COMPREPLY[*]}" = --pid ]'
}

leaves_nothing() {
	inside dpkg --purge rlscope-bpf >"$bare/tmp/purge.log" 2>&1 || return
	list_files >"$bare/tmp/after"
	! diff "$bare/tmp/before" "$bare/tmp/after" | grep '^>'
}

for suite in bookworm trixie; do
	enter_bare $suite || exit 1
	# Its dependencies first: what they leave is theirs.
	cp "$package" "$bare/tmp/package.deb"
	install_inside python3 /tmp/package.deb && inside dpkg --purge rlscope-bpf >/dev/null 2>&1
	list_files >"$bare/tmp/before"
	train_inside
	holds "$suite: installed" install_inside /tmp/package.deb
	holds "$suite: the unit is off" is_off
	holds "$suite: run records a job that imports rlscope" records
	holds "$suite: the monitor runs by its unit's command and is scraped" monitors
	holds "$suite: options are completed" completes
	holds "$suite: purged, it leaves no file" leaves_nothing
	leave_bare
done
exit $status
