#!/bin/bash
# real_libraries.sh BUILD PYTHON: the bridge and NVIDIA's own libraries, without a GPU. BUILD is
# the folder of the test programs, PYTHON has PyTorch 2 or is not there. What is not there (see
# scripts/setup-cupti) is skipped, and said.

# shellcheck disable=SC2030,SC2031 # what is set in parentheses is meant for these alone
set -u
build=$1
python=$2
libraries=${RLSCOPE_CUPTI_LIBRARIES:-${XDG_CACHE_HOME:-$HOME/.cache}/rlscope-bpf/cupti}
bridge=$build/librlscope_cupti_sink_plain.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

if [ ! -e "$libraries/.complete" ]; then
	echo "SKIPPED: NVIDIA's libraries are not in $libraries (scripts/setup-cupti fetches them)"
	exit 77
fi

# A process as an ordinary user has it: root's cuInit would make device nodes.
unprivileged() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --bounding-set=-mknod "$@"
	else
		"$@"
	fi
}

# check NAME COMMAND...: succeeds, and, when $expect is set, what the bridge said contains it.
check() {
	local name=$1 status=0
	shift
	rm -f "$work/batches"
	: >"$work/batches"
	RLS_SINK_FILE="$work/batches" unprivileged timeout 120 "$@" >"$work/log" 2>&1 || status=$?
	if [ $status != 0 ]; then
		echo "FAILED: $name: status $status"
		cat "$work/log"
		failures=$((failures + 1))
	elif [ -n "${expect:-}" ] && ! grep -qa "$expect" "$work/batches"; then
		echo "FAILED: $name: the bridge did not say '$expect', but: $(strings "$work/batches")"
		failures=$((failures + 1))
	else
		echo "ok: $name${expect:+: $(strings "$work/batches" | grep -m 1 "$expect")}"
	fi
}

export LD_LIBRARY_PATH=$libraries/driver
for version in 11.8 12 13; do
	program=$build/real_libraries_${version%.*}
	cupti=$libraries/$version/libcupti.so.$version
	check "CUPTI $version walks our records as we decode them" "$program" parse "$cupti"
	check "CUPTI $version has its own clock" "$program" clock "$cupti"
	check "the calls of CUDA $version that launch" "$program" calls "$libraries/$version"
	(
		export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$libraries/$version RLS_SINK_WATCHERS=1
		export CUDA_INJECTION64_PATH=$bridge
		expect="refused a subscriber"
		# The driver is 12's; a CUPTI that is newer than it is not looked for.
		[ $version != 13 ] || expect="no libcupti"
		check "libcuda injects, CUPTI $version" "$program" inject
		unset CUDA_INJECTION64_PATH
		check "preloaded, libcuda injects, CUPTI $version" \
			env LD_PRELOAD="$bridge" "$program" inject
		exit $failures
	)
	failures=$((failures + $?))
done

check "CUPTI 13.2 walks our records as we decode them" "$build/real_libraries_13.2" parse "$libraries/13.2/libcupti.so.13"
check "the calls of CUDA 13.2 that launch" "$build/real_libraries_13.2" calls "$libraries/13.2"

(
	export RLS_SINK_WATCHERS=1 CUDA_INJECTION64_PATH=$bridge
	export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$libraries/12
	expect="refused a subscriber" check "the CUDA runtime 12 initialises, the bridge is injected" \
		"$build/real_libraries_12" runtime libcudart.so.12
	export LD_LIBRARY_PATH=$libraries/driver
	expect="no libcupti" check "no libcupti to be found" "$build/real_libraries_12" inject
	exit $failures
)
failures=$((failures + $?))

# Importing PyTorch is what takes time here: two processes are enough.
torch='
import ctypes, sys, torch
x = torch.randn(64, 64, requires_grad=True)
(x @ x).sum().backward()
assert not torch.cuda.is_available()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    (x @ x).sum().backward()
assert any(event.key == "aten::mm" for event in profile.key_averages())
if "init" in sys.argv:
    print("cuInit:", ctypes.CDLL("libcuda.so.1").cuInit(0))
    (x @ x).sum().backward()
else:
    assert ctypes.CDLL(sys.argv[1]).InitializeInjection() == 1
    import time; time.sleep(0.2)
'
has_torch='import importlib.metadata; assert int(importlib.metadata.version("torch").split(".")[0]) >= 2'
if [ -x "$python" ] && "$python" -c "$has_torch" 2>/dev/null; then
	export RLS_SINK_WATCHERS=1
	expect="refused a subscriber" check "PyTorch with the bridge preloaded, its own libcupti after cuInit" \
		env LD_PRELOAD="$bridge" "$python" -c "$torch" init
	expect="libcuda is not loaded" check "PyTorch's libcupti and no driver: not called" \
		env -u LD_LIBRARY_PATH "$python" -c "$torch" "$bridge"
else
	echo "SKIPPED, in part: no PyTorch 2 at '$python' (scripts/setup-sb3)"
fi
exit $((failures != 0))
