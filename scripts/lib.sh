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

# configure_release OPTION...: takes a few seconds when nothing has changed.
configure_release() {
	local python="$workload_venv/bin/python" nanobind
	nanobind=$(echo "$workload_venv"/lib/python3*/site-packages/nanobind)
	step "configuring" configure.log \
		cmake -S "$root" -B "$build" --preset release "-DRLS_WORKLOAD_PYTHON:FILEPATH=$python" \
		"-DNANOBIND_ROOT:PATH=$nanobind" "$@"
}

# Everything, tests included. CMake looks each time for what the tests need, some of which
# (interpreters, a C++ compiler) may not have been there the last time.
build_release() {
	cd "$root" || die "cannot enter $root"
	configure_release -DBUILD_TESTING=ON || return
	step "building" build.log cmake --build "$build"
}

# The program and its libraries only: less than half of the objects. A tree that has tests keeps them.
build_product() {
	cd "$root" || die "cannot enter $root"
	[ -e "$build/build.ninja" ] || configure_release -DBUILD_TESTING=OFF || return
	step "building" build.log cmake --build "$build" --target product
}

# private_apt FOLDER SUITE COMPONENT: from here on apt uses that part of Debian alone, with lists
# and a configuration of its own in FOLDER: this system's are neither used nor changed. Its
# signatures are apt's to check.
private_apt() {
	local folder=$1 suite=$2 component=$3 mirror
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' \
		'Origin: Debian' 'Component: main' 2>/dev/null | grep -v security | head -n 1)
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	: >"$folder/status"
	printf 'deb [signed-by=%s] %s %s %s\n' "$keyring" \
		"${mirror:-http://deb.debian.org/debian}" "$suite" "$component" >"$folder/sources.list"
	cat >"$folder/apt.conf" <<-END
		Dir::Etc::sourcelist "$folder/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$folder";
		Dir::State::status "$folder/status";
		Dir::Cache "$folder/cache";
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		APT::Sandbox::User "root";
		APT::Update::Error-Mode "any";
		Acquire::Languages "none";
	END
	export APT_CONFIG="$folder/apt.conf"
	apt-get -qq update
}
