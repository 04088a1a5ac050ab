# One virtual machine for vmtest, from its start to the status of its command.
# Sourced, never run. $run: this run's folder; $here: scripts/vm; ${qemu[@]}: the emulator.

memory_mib=2048
processors=2

# Serves / from a mount namespace of its own in which / is read-only, so that not even root
# in the guest, mounting it again for writing, can change the host. Files that change here
# while the machine runs may look cut off there: it keeps what it has seen.
serve_root() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	unshare --mount --propagation private sh -c '
		mount -t tmpfs run /run && mount --bind "$1" "$1" && mount -o remount,bind,ro / || exit 1
		exec "$2" --socket-path="$1/host.sock" -o source=/ -o cache=always -o sandbox=chroot \
			-o xattr --thread-pool-size=1' sh "$run" "$(find_virtiofsd)" \
		>"$run/virtiofsd.log" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		[ ! -S "$run/host.sock" ] || return 0
		sleep 0.05
	done
	cat "$run/virtiofsd.log" >&2
	return 1
}

# The command as a script of the guest's, behind the kernel's own initramfs.
pack_command() {
	local kernel=$1 tree="$run/command.d"
	shift
	mkdir -p "$tree"
	cp "$here/guest-run" "$tree/guest-run"
	cp "$here/guest-init" "$tree/init"
	chmod 755 "$tree/init"
	{
		printf 'cd %q\nexport PATH=%q HOME=%q LANG=C.UTF-8 VMTEST=1\n' "$PWD" "$PATH" "$HOME"
		printf 'exec'
		printf ' %q' "$@"
		printf '\n'
	} >"$tree/command"
	{ cat "$cache/$kernel/initramfs" && pack_cpio "$tree"; } >"$run/initramfs"
}

# Hardware help where there is some; a /dev/kvm without vmx or svm is a paravirtual one, which
# boots no kernel of Debian's.
acceleration() {
	if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
		echo "-accel kvm -cpu host"
	else
		echo "-accel tcg,thread=multi,tb-size=256 -cpu max,la57=off"
	fi
}

boot() {
	local more=$1 seconds=$2 options
	options="console=ttyS0 loglevel=4 panic=-1 mitigations=off nokaslr no_timer_check tsc=reliable"
	options="$options random.trust_cpu=on cryptomgr.notests audit=0 net.ifnames=0"
	# Each perf-event probe waits for RCU when it goes.
	options="$options rcupdate.rcu_expedited=1 $more"
	# No interval timer (PIT): on a busy host the kernel measures its clock wrongly against an
	# emulated one, and seconds then pass several times too fast. It has the HPET instead.
	# shellcheck disable=SC2046 # words on purpose
	timeout --kill-after=5 "$seconds" "${qemu[@]}" \
		-nodefaults -no-user-config -display none -no-reboot \
		-machine pc,memory-backend=memory,pit=off $(acceleration) \
		-smp $processors -m $memory_mib \
		-object memory-backend-memfd,id=memory,size=${memory_mib}M,share=on \
		-kernel "$image" -initrd "$run/initramfs" -append "$options" \
		-chardev "socket,id=host,path=$run/host.sock" \
		-device vhost-user-fs-pci,queue-size=1024,chardev=host,tag=host \
		-serial "file:$run/console" -serial "file:$run/output" -serial "file:$run/status" \
		</dev/null >"$run/qemu.log" 2>&1
}

explain_death() {
	grep -m 3 -E 'Kernel panic|BUG:|Oops' "$run/console" >&2
	tail -n 8 "$run/console" "$run/qemu.log" >&2
}

# run_in_machine KERNEL APPEND SECONDS COMMAND...: prints what the command prints; its
# status, 124 when the time ran out, 125 when the machine never finished it.
run_in_machine() {
	local kernel=$1 append=$2 seconds=$3 server machine version modules image status=125
	shift 3
	run=$(mktemp -d "${TMPDIR:-/tmp}/vmtest.XXXXXX")
	locate_kernel "$cache/$kernel"
	pack_command "$kernel" "$@"
	touch "$run/output" "$run/status"
	if serve_root; then
		boot "$append" "$seconds" &
		machine=$!
		running="$machine $server"
		tail --quiet -n +1 -s 0.2 --pid=$machine -f "$run/output"
		wait $machine
		[ $? != 124 ] || status=124
	fi
	running=
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	read -r _ status < <(grep '^status ' "$run/status" || echo "status $status")
	if [ "$status" = 125 ] || [ "$status" = 124 ]; then
		explain_death
	fi
	rm -rf "$run"
	run=
	return "$status"
}
