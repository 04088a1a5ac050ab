# Shared by the scripts of this folder: messages, quiet long steps, root, the build.
# Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# RLSCOPE_LATEST: today's releases instead of scripts/pins, as `scripts/test --latest` has it.
build="$root/build${RLSCOPE_LATEST:+-latest}"
pins_file="$root/scripts/pins"
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

# step TITLE LOG COMMAND...: runs COMMAND with its output in $build/LOG and a line every
# ten seconds, so that a long step is seen to live; on failure shows the log's end.
step() {
	local title=$1 log="$build/$2" began=$SECONDS ticker status=0
	shift 2
	mkdir -p "$build"
	say "$title (log: ${log#"$root/"})"
	while sleep 10 >/dev/null 2>&1; do
		say "  still at it after $((SECONDS - began)) s: $(tail -n 1 "$log" | cut -c 1-90)"
	done &
	ticker=$!
	"$@" >"$log" 2>&1 </dev/null || status=$?
	kill "$ticker" 2>/dev/null
	wait "$ticker" 2>/dev/null || true
	if [ "$status" != 0 ]; then
		tail -n 30 "$log" >&2
		printf '%s: %s failed with status %s; the whole log is %s\n' \
			"$(basename "$0")" "$title" "$status" "${log#"$root/"}" >&2
	fi
	return "$status"
}

latest() {
	[ -n "${RLSCOPE_LATEST:-}" ]
}

# pinned SECTION: its lines of scripts/pins, without comments.
pinned() {
	awk -v section="[$1]" '/^\[/ { inside = $0 == section; next } inside && NF && !/^#/' "$pins_file"
}

# pin_wants SECTION: the names that its pins come from; of today's releases without bounds.
pin_wants() {
	awk -v section="[$1]" '/^\[/ { inside = $0 == section } inside && /^# wants / { $1 = $2 = ""; print }' \
		"$pins_file" | if latest; then sed 's/[<>=][^ ]*//g'; else cat; fi
}

# pins_stamp SECTION...: changes when these must be fetched again.
pins_stamp() {
	local section
	if latest; then
		date '+latest %F'
	else
		for section in "$@"; do pinned "$section"; done | cksum
	fi
}

# Pins are of Python 3.11 and later.
has_pins() {
	! latest && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'
}

# pip_get VENV SECTION install|download [OPTION...]: the section's packages, as pinned.
pip_get() {
	local venv=$1 section=$2 verb=$3
	local -a wants
	shift 3
	if has_pins "$venv/bin/python"; then
		"$venv/bin/pip" "$verb" --no-deps --require-hashes --only-binary=:all: "$@" -r <(pinned "$section")
	else
		latest || printf 'scripts/pins has none for this Python: taking releases of today\n'
		read -ra wants <<<"$(pin_wants "$section")"
		"$venv/bin/pip" "$verb" "$@" "${wants[@]}"
	fi
}

# make_venv PYTHON VENV SECTION [OPTION...]: a virtual environment of the section's packages, made
# anew when its pins change. What it has is listed in its .versions.
make_venv() {
	local python=$1 venv=$2 section=$3 stamp
	shift 3
	stamp=$(pins_stamp "$section")
	[ "$(cat "$venv/.complete" 2>/dev/null)" != "$stamp" ] || [ ! -x "$venv/bin/python" ] || return 0
	rm -rf "$venv"
	mkdir -p "$(dirname "$venv")"
	step "making $venv" "$section-venv.log" "$python" -m venv "$@" "$venv" &&
		step "downloading the packages of [$section] in scripts/pins" "$section-pip.log" \
			pip_get "$venv" "$section" install || return
	"$venv/bin/pip" list --local --format=freeze 2>/dev/null | grep -vE '^(pip|setuptools)==' >"$venv/.versions"
	printf '%s\n' "$stamp" >"$venv/.complete"
}

# Of the names of kernel packages the newest one, of the kind that vmtest boots.
newest_kernel() {
	grep -E -- '-cloud-amd64$' | sort -V | tail -n 1
}

# download_debs SUITE VERSIONS PACKAGE...: packages of Debian into the working directory, with
# private_apt's configuration: as pinned while the archive has that, else the suite's own. VERSIONS: a file
# that which ones they were is added to.
download_debs() {
	local suite=$1 record=$2 package version
	shift 2
	for package in "$@"; do
		version=$(pinned debian | awk -v s="$suite" -v p="$package" '$1 == s && $2 == p { print $3 }')
		if latest || ! apt-cache show "$package=$version" >/dev/null 2>&1; then
			version=$(apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
		fi
		apt-get -qq download "$package=$version" || return
		printf '%s %s %s\n' "$suite" "$package" "$version" >>"$record"
	done
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

# The mirror that apt already uses for Debian itself; its proxies are kept too.
debian_mirror() {
	local mirror
	mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' \
		'Origin: Debian' 'Component: main' 2>/dev/null | grep -v security | head -n 1)
	echo "${mirror:-http://deb.debian.org/debian}"
}

# write_apt_config FOLDER SUITE COMPONENT: FOLDER/apt.conf is a configuration of apt for that part of
# Debian alone, with lists in FOLDER: this system's are neither used nor changed. apt checks the
# signatures by Debian's keyring.
write_apt_config() {
	local folder=$1 suite=$2 component=$3 keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	if [ ! -e "$keyring" ]; then
		say "Debian's keyring is not here: install debian-archive-keyring"
		return 1
	fi
	mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	: >"$folder/status"
	printf 'deb [signed-by=%s] %s %s %s\n' "$keyring" "$(debian_mirror)" "$suite" "$component" \
		>"$folder/sources.list"
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
		Acquire::Retries "3";
	END
}

# private_apt FOLDER SUITE COMPONENT: from here on apt uses that part of Debian alone.
private_apt() {
	write_apt_config "$@" || return
	export APT_CONFIG="$1/apt.conf"
	apt-get -qq update
}
