# QEMU and what else vmtest needs: looked for, installed, and where the system's own QEMU
# will not do, a newer one fetched beside the kernels.
# Sourced, never run. $cache: where everything is kept.

find_virtiofsd() {
	local path
	for path in /usr/libexec/virtiofsd /usr/lib/qemu/virtiofsd; do
		[ ! -x $path ] || { echo $path && return; }
	done
	return 1
}

tools_are_there() {
	local tool
	for tool in qemu-system-x86_64 busybox depmod xz zstd; do
		command -v $tool >/dev/null || return 1
	done
	find_virtiofsd >/dev/null
}

# Up to 7.2 the emulated cmpxchg16b spoils the flags: kernels from 6.12 on, which allocate
# memory with it, die at random; and without it 7.x has no BPF task storage.
qemu_is_sound() {
	local version
	version=$("$@" --version 2>/dev/null | sed -n '1s/.*version \([0-9]*\).*/\1/p')
	[ "${version:-0}" -ge 8 ]
}

# Sets `qemu`: the system's, or ours.
choose_qemu() {
	local tree="$cache/qemu"
	qemu=(qemu-system-x86_64)
	! qemu_is_sound "${qemu[@]}" || return 0
	qemu=(env "LD_LIBRARY_PATH=$tree/usr/lib/x86_64-linux-gnu" "$tree/usr/bin/qemu-system-x86_64"
		-L "$tree/usr/share/qemu" -L "$tree/usr/share/seabios")
	qemu_is_sound "${qemu[@]}"
}

# Debian 12's backports have one that runs on the system's libraries; it is unpacked and not
# installed because it would take virtiofsd away.
fetch_newer_qemu() {
	local suite=bookworm-backports work
	grep -q '^VERSION_CODENAME=bookworm' /etc/os-release ||
		fail_fetch "QEMU 8 or newer is needed: the emulated processor of older ones is unsound"
	read_suite $suite || fail_fetch "the package list of $suite could not be read"
	say "fetching a newer QEMU"
	work=$(mktemp -d "$cache/qemu.XXXXXX")
	(
		cd "$work" || exit
		suite_apt $suite apt-get -qq download qemu-system-x86 qemu-system-common \
			qemu-system-data seabios >&2 || exit
		for package in ./*.deb; do
			dpkg -x "$package" . || exit
		done
	) || fail_fetch "QEMU could not be fetched from $suite"
	rm -rf "$cache/qemu" "$work"/*.deb
	mv "$work" "$cache/qemu"
}

install_tools() {
	local packages="qemu-system-x86 busybox-static kmod xz-utils zstd"
	if ! tools_are_there; then
		command -v apt-get >/dev/null ||
			fail_fetch "please install QEMU (8 or newer), virtiofsd, busybox and kmod"
		# From Debian 13 on it is a package of its own.
		[ -z "$(apt-cache pkgnames virtiofsd)" ] || packages="$packages virtiofsd"
		# shellcheck disable=SC2086 # one argument a package
		step "installing $packages" vm-tools.log env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y --no-install-recommends $packages ||
			fail_fetch "these packages could not be installed: $packages"
		tools_are_there || fail_fetch "installed, yet QEMU, virtiofsd, busybox or kmod cannot be found"
	fi
	choose_qemu || { fetch_newer_qemu && choose_qemu; } ||
		fail_fetch "the QEMU of $cache/qemu does not run here"
}
