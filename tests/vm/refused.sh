#!/bin/bash
# refused.sh BUILD CONDITION...: in a machine: attach and run say in one sentence why they
# cannot, end with 1 and start nothing; check says no to the same thing.
# shellcheck disable=SC2317 # conditions are functions, called by their names
set -u
profiler="$1/rlscope-bpf"
shift
failed=0
folder=$(mktemp -d)

that() {
	local sentence=$1
	shift
	if "$@"; then echo "ok    $sentence"; else
		echo "FAIL  $sentence" && failed=1
		cat "$folder/out" "$folder/err"
	fi
}

# says NAME WORDS COMMAND...: status 1, one line on stderr, with these words, no output.
says() {
	local name=$1 words=$2 result
	shift 2
	"$@" >"$folder/out" 2>"$folder/err" </dev/null
	result=$?
	that "$name: status $result" [ "$result" = 1 ]
	that "$name: $(cat "$folder/err")" grep -q -- "$words" "$folder/err"
	that "$name: one line and no output" [ "$(wc -l <"$folder/err")$(wc -c <"$folder/out")" = 10 ]
}

# refuses_attach NAME WORDS CHECK [PREFIX...]: attach does, and check tells in its last line.
refuses_attach() {
	local name=$1 words=$2 check=$3 target status
	shift 3
	/usr/bin/python3 -c 'import time; time.sleep(100)' &
	target=$!
	sleep 0.5
	says "$name, attach" "$words" "$@" "$profiler" attach --pid "$target" --duration 0.2 \
		-o "$folder/trace"
	kill "$target"
	that "$name: no trace is left" [ ! -e "$folder/trace" ]
	"$@" "$profiler" check >"$folder/out" 2>"$folder/err"
	status=$?
	that "$name, check: status $status" [ "$status" = 1 ]
	that "$name, check says no to $check" grep -qE "^NO +$check " "$folder/out"
	that "$name, check: $(tail -n 1 "$folder/out")" grep -q "^This host cannot profile: .*$words" "$folder/out"
	that "$name, check: nothing on stderr" [ ! -s "$folder/err" ]
}

# refuses NAME WORDS CHECK [PREFIX...]: run does too, and does not run its command.
refuses() {
	local name=$1 words=$2
	refuses_attach "$@"
	shift 3
	says "$name, run" "$words" "$@" "$profiler" run -o "$folder/trace" -- /usr/bin/python3 -c 'print("ran")'
	that "$name, run: no trace is left" [ ! -e "$folder/trace" ]
}

old() {
	refuses "kernel $(uname -r)" "too old" uprobe
}

lockdown() {
	refuses "lockdown" "lockdown" lockdown
}

capabilities() {
	refuses "no capabilities" "not permitted\|lacks CAP_BPF CAP_PERFMON" privileges \
		setpriv --bounding-set -bpf,-perfmon,-sys_admin --inh-caps -bpf,-perfmon,-sys_admin
}

# May load programs, and not look at the processes of another who may more.
ptrace() {
	refuses_attach "no CAP_SYS_PTRACE" "CAP_SYS_PTRACE" privileges \
		setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace
}

btf() {
	mount -t tmpfs none /sys/kernel/btf
	refuses "no BTF" "no BTF" btf
}

for condition in "$@"; do
	[ "$(type -t "$condition")" = function ] || exit 2
	$condition
done
rm -rf "$folder"
exit $failed
