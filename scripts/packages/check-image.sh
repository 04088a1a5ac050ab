#!/bin/bash
# check-image.sh OUTPUT: the image, started by runc with the capabilities that doc/install.md names and no
# others, sees a job outside of it: monitor, attach and report.
# shellcheck disable=SC2317 # functions are called by `holds`
set -u -o pipefail
# shellcheck source=scripts/packages/roots.sh
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/roots.sh"
output=${1:?usage: check-image.sh OUTPUT}
image=$(echo "$output"/rlscope-bpf-*.oci.tar)
runtime=$(command -v runc || command -v crun) || die "not installed here: runc or crun"
port=${RLS_CHECK_PORT:-19435}
folder=$(mktemp -d)
job=""

clean() {
	[ -z "$job" ] || kill "$job" 2>/dev/null
	rm -rf --one-file-system "$folder"
}
trap clean EXIT

# start NAME ARGUMENT...: a container in the background, $! is its runtime.
start() {
	local bundle=$folder/$1
	mkdir -p "$bundle"
	python3 "$here/image/bundle.py" "$image" "$bundle" "${@:2}" || return
	"$runtime" run --bundle "$bundle" "rlscope-check-$$-$1" >"$folder/$1.out" 2>"$folder/$1.err" &
}

is_small() {
	[ "$(du -sm "$folder/check/rootfs" | cut -f 1)" -le 80 ]
}

can_profile() {
	start check check && wait $! && grep -q 'This host can profile' "$folder/check.out"
}

attaches() {
	start attach attach --pid "$job" --duration 5 -o /tmp/trace && wait $! && names_operations "$folder/attach.out"
}

monitors() {
	local pages=0 container
	start monitor monitor --listen "127.0.0.1:$port" --backend '_hashlib*'
	container=$!
	for _ in $(seq 120); do
		kill -0 "$container" "$job" 2>/dev/null || break
		if python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:$port/metrics').read().decode())" \
			2>/dev/null | grep -q 'operation="backpropagation"'; then
			pages=1
			break
		fi
		sleep 0.5
	done
	"$runtime" kill "rlscope-check-$$-monitor" INT
	wait "$container"
	[ "$pages" = 1 ]
}

bare=$folder/host
mkdir -p "$bare/root"
train_inside
bare=""
holds "the host can profile, says the image" can_profile
holds "it takes at most 80 MB" is_small
PYTHONPATH=$folder/check/rootfs/usr/lib/rlscope-bpf/python /usr/bin/python3 "$folder/host/root/train.py" 300 &
job=$!
holds "attach reports a job outside the image" attaches
holds "the monitor is scraped, with a job outside the image" monitors
exit $status
