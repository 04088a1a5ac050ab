#!/bin/bash
# valgrind.sh BUILD: the bridge's life under Valgrind's memory checker: threads, arming under load, the
# end at three moments. Sizes are small: what is seen counts, not how much. Threads take turns: unfair ones keep the one
# that is to end from its own for up to half a minute.
set -u
build=$1
command -v valgrind >/dev/null || { echo "SKIPPED: there is no valgrind"; exit 77; }
export LD_LIBRARY_PATH=$build/fakes/13 CUDA_INJECTION64_PATH=$build/librlscope_cupti_sink_plain.so
export LAUNCHES=1000 ROUNDS=3
check=(valgrind -q --fair-sched=yes --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite)
failures=0

run() {
	local log
	log=$("$@" 2>&1) || { printf 'FAILED: %s: status %s\n%s\n' "${*: -1}" $? "$log"; failures=$((failures + 1)); }
}

for scenario in every-launch again-and-again under-load exits; do
	run "${check[@]}" "$build/bridge_scenario_plain" "$scenario"
done
for moment in 0 20 60; do # in the midst of things: what is still in use then is no leak
	RLS_SINK_WATCHERS=1 run "${check[@]}" --leak-check=no "$build/fakes/fake_job" --threads=3 \
		--launches=100000000 --exit-at-once --linger-ms "$moment"
done
exit $((failures > 0))
