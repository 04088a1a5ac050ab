# Bare systems to install packages in: bare Debian, made once and copied for each check.
# Sourced by the check-*.sh beside it, never run.
# shellcheck shell=bash

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=scripts/lib.sh
. "$here/../lib.sh"
roots=${XDG_CACHE_HOME:-$HOME/.cache}/rlscope-bpf/roots
bare="" # the copy that a check works in

# bare_base SUITE: prints the folder of that suite's bare system.
bare_base() {
	local suite=$1 base=$roots/$1 mirror
	if [ ! -e "$base/.complete" ]; then
		command -v debootstrap >/dev/null || die "not installed here: debootstrap"
		mirror=$(debian_mirror)
		rm -rf "$base"
		mkdir -p "$roots"
		step "making a bare $suite" "debootstrap-$suite.log" \
			debootstrap --variant=minbase "$suite" "$base" "$mirror" || return
		rm -f "$base"/var/cache/apt/archives/*.deb
		touch "$base/.complete"
	fi
	printf '%s\n' "$base"
}

# enter_bare SUITE: a fresh copy in $bare, with what the profiler needs of the kernel mounted.
enter_bare() {
	local base
	base=$(bare_base "$1") || return
	leave_bare
	bare=$(mktemp -d "$roots/check-XXXXXX")
	trap leave_bare EXIT
	cp -a "$base/." "$bare/"
	cp -L /etc/resolv.conf "$bare/etc/resolv.conf" 2>/dev/null || true
	# The host's proxies and certificates, if apt or pip have any.
	apt-config dump Acquire::http::Proxy >"$bare/etc/apt/apt.conf.d/99host"
	printf '#!/bin/sh\nexit 101\n' >"$bare/usr/sbin/policy-rc.d"
	chmod +x "$bare/usr/sbin/policy-rc.d"
	mount -t proc proc "$bare/proc"
	mount --rbind --make-rslave /sys "$bare/sys"
	mount -t tmpfs tmpfs "$bare/run"
}

leave_bare() {
	[ -n "$bare" ] || return 0
	umount "$bare/proc" "$bare/run"
	umount -R "$bare/sys"
	# Nothing of the host may be below it when it is removed.
	if ! grep -q " $bare/" /proc/self/mounts; then
		rm -rf --one-file-system "$bare"
	fi
	bare=""
}

# For a job in the background, which is then the process that $! names.
exec_inside() {
	exec chroot "$bare" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive "$@"
}

inside() {
	(exec_inside "$@")
}

# install_inside PACKAGE...: Debian's packages, or files inside. Its output only where it fails.
install_inside() {
	local log=$bare/tmp/apt.log
	[ -e "$bare/var/lib/apt/lists/lock" ] || inside apt-get -qq update || return
	if ! inside apt-get -y --no-install-recommends install "$@" >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		return 1
	fi
}

# train_inside: a job that names operations and calls into a library.
train_inside() {
	cat >"$bare/root/train.py" <<-'END'
		import hashlib, sys, time
		import rlscope
		end = time.monotonic() + float(sys.argv[1])
		while time.monotonic() < end:
		    with rlscope.operation("backpropagation"):
		        for _ in range(200):
		            hashlib.sha256(b"x" * 4096).digest()
		    with rlscope.operation("simulation"):
		        sum(i * i for i in range(20000))
	END
}

status=0
# holds WHAT COMMAND...: one line on whether COMMAND succeeds.
holds() {
	local what=$1
	shift
	if "$@"; then
		printf 'ok    %s\n' "$what"
	else
		printf 'FAIL  %s\n' "$what"
		status=1
	fi
}

# names_operations REPORT: the text report has the job's two operations. Else it is shown.
names_operations() {
	if ! grep -q backpropagation "$1" || ! grep -q simulation "$1"; then
		cat "$1"
		return 1
	fi
}
