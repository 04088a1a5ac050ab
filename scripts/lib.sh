# Shared by the scripts of this folder: messages, quiet long steps, root, the build.
# Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build="$root/build"
# Outside the build tree, so that a fresh clone need not download it again.
workload_venv=${RLSCOPE_WORKLOAD_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/rlscope-bpf/workload-venv}

say() {
	printf '%s\n' "== $*" >&2
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

can_be_root() {
	[ "$(id -u)" = 0 ] || command -v sudo >/dev/null
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# step TITLE LOG COMMAND...: runs COMMAND with its output in build/LOG and a line every
# ten seconds, so that a long step is seen to live; on failure shows the log's end.
step() {
	local title=$1 log="$build/$2" began=$SECONDS ticker status=0
	shift 2
	mkdir -p "$build"
	say "$title (log: build/${log##*/})"
	while sleep 10 >/dev/null 2>&1; do
		say "  still at it after $((SECONDS - began)) s: $(tail -n 1 "$log" | cut -c 1-90)"
	done &
	ticker=$!
	"$@" >"$log" 2>&1 </dev/null || status=$?
	kill "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null || true
	if [ "$status" != 0 ]; then
		tail -n 30 "$log" >&2
		printf '%s: %s failed with status %s; the whole log is build/%s\n' \
			"$(basename "$0")" "$title" "$status" "${log##*/}" >&2
	fi
	return "$status"
}

# Configures once (CMake itself notices later changes) and builds what has changed.
build_release() {
	local python="$workload_venv/bin/python" nanobind
	nanobind=$(echo "$workload_venv"/lib/python3*/site-packages/nanobind)
	cd "$root" || die "cannot enter $root"
	if [ ! -e "$build/build.ninja" ] ||
		! grep -qsxF "RLS_WORKLOAD_PYTHON:FILEPATH=$python" "$build/CMakeCache.txt"; then
		step "configuring" configure.log \
			cmake --preset release "-DRLS_WORKLOAD_PYTHON:FILEPATH=$python" \
			"-DNANOBIND_ROOT:PATH=$nanobind" || return
	fi
	step "building" build.log cmake --build --preset release
}
