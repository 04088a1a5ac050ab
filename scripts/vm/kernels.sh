# Debian's kernels for vmtest: found, fetched and unpacked, never installed.
# Sourced, never run. $cache: where everything is kept.

# series  suite
known_kernels() {
	cat <<'END_OF_TABLE'
5.10  bullseye
6.1   bookworm
6.12  bookworm-backports
6.18  trixie-backports
7     trixie-backports
END_OF_TABLE
}

# The series that a package or a series belongs to, or nothing.
series_of() {
	local name=${1#linux-image-} series
	known_kernels | sort -rV | while read -r series _; do
		case $name in "$series" | "$series".*) echo "$series" && break ;; esac
	done
}

suite_of() {
	known_kernels | awk -v series="$1" '$1 == series { print $2 }'
}

# What the kernel in the cache must have been fetched for.
kernel_stamp() {
	if latest; then
		pins_stamp
	else
		pinned kernels | awk -v series="$1" '$2 == series'
	fi
}

kernel_is_cached() {
	[ -e "$cache/$1/initramfs" ] && [ "$(cat "$cache/$1/.complete" 2>/dev/null)" = "$(kernel_stamp "$1")" ]
}

# Runs an apt command that sees one suite and nothing of this system's packages.
suite_apt() {
	local suite=$1 folder="$cache/apt/$1"
	shift
	APT_CONFIG="$folder/apt.conf" "$@"
}

read_suite() {
	write_apt_config "$cache/apt/$1" "$1" main || return
	say "reading the package list of $1"
	suite_apt "$1" apt-get -qq update >&2
}

# Of a series NAME=VERSION: the pinned one while the archive has it, else the newest.
package_of_series() {
	local suite=$1 series=$2 name version
	read -r _ _ name version <<<"$(pinned kernels | awk -v series="$series" '$2 == series')"
	if latest || ! suite_apt "$suite" apt-cache show "$name=$version" >/dev/null 2>&1; then
		name=$(suite_apt "$suite" apt-cache pkgnames "linux-image-$series." | newest_kernel)
		version=$(suite_apt "$suite" apt-cache policy "$name" | sed -n 's/^ *Candidate: //p')
	fi
	[ -z "$name" ] || echo "$name=$version"
}

# One package, and the parts that newer kernels are split into.
unpack_package() {
	local suite=$1 package=$2 folder=$3 deb part
	(cd "$folder" && suite_apt "$suite" apt-get -qq download "$package" >&2) || return 1
	deb=$(echo "$folder/${package%=*}"_*.deb)
	dpkg -x "$deb" "$folder/root" || return 1
	for part in $(dpkg-deb -f "$deb" Depends | tr ',|' '\n' | awk '{ print $1 }' |
		grep -E '^linux-(binary|modules)-[0-9].*-amd64$' | sort -u); do
		ls "$folder/$part"_*.deb >/dev/null 2>&1 ||
			unpack_package "$suite" "$part" "$folder" || return 1
	done
}

# Sets `version`, `modules` and `image` of an unpacked kernel.
locate_kernel() {
	local root="$1/root"
	modules=$(find "$root/lib/modules" "$root/usr/lib/modules" -mindepth 1 -maxdepth 1 \
		-type d 2>/dev/null | head -n 1)
	version=$(basename "$modules")
	image=$(find "$root/boot/vmlinuz-$version" "$modules/vmlinuz" 2>/dev/null | head -n 1)
	[ -n "$modules" ] && [ -n "$image" ]
}

# What the kernel needs to reach its root, and then init.
pack_initramfs() {
	local folder=$1 tree="$1/initramfs.d" applet file
	mkdir -p "$tree"/{bin,modules,proc,sys,dev,host,fresh,root}
	cp "$(command -v busybox)" "$tree/bin/busybox"
	for applet in sh mount mkdir cp insmod switch_root cat poweroff; do
		ln -s busybox "$tree/bin/$applet"
	done
	# modprobe -d wants lib/modules; newer packages unpack to usr/lib/modules.
	[ -e "$folder/root/lib/modules" ] ||
		{ mkdir -p "$folder/root/lib" && ln -s ../usr/lib/modules "$folder/root/lib/modules"; }
	depmod -b "$folder/root" "$version" || return 1
	for file in virtio_pci virtiofs overlay; do
		modprobe -d "$folder/root" -S "$version" --show-depends "$file" 2>/dev/null
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
		case $file in
		*.xz) xz -dc "$file" ;;
		*.zst) zstd -qdc "$file" ;;
		*) cat "$file" ;;
		esac >"$tree/modules/$(basename "${file%.ko*}").ko" || return 1
		basename "${file%.ko*}"
	done >"$tree/modules.order"
	pack_cpio "$tree" >"$folder/initramfs.part" && mv "$folder/initramfs.part" "$folder/initramfs"
}

# init and the guest's script are packed at each run, so that they are never old.
pack_cpio() {
	(cd "$1" && find . | busybox cpio -o -H newc 2>/dev/null)
}

# fetch_kernel SERIES|PACKAGE: afterwards its folder is in the cache.
fetch_kernel() {
	local name=$1 series suite package folder version modules image
	kernel_is_cached "$name" && return
	series=$(series_of "$name")
	suite=$(suite_of "$series")
	[ -n "$suite" ] || fail_fetch "no kernel of ours is called $name; --list names them"
	read_suite "$suite" || fail_fetch "the package list of $suite could not be read"
	package=$name
	[ "$package" != "$series" ] || package=$(package_of_series "$suite" "$series")
	[ -n "$package" ] || fail_fetch "$suite has no kernel $series"
	folder="$cache/$name"
	rm -rf "$folder"
	mkdir -p "$folder"
	say "fetching $package"
	unpack_package "$suite" "$package" "$folder" || fail_fetch "$package could not be fetched"
	locate_kernel "$folder" || fail_fetch "$package holds no kernel"
	pack_initramfs "$folder" || fail_fetch "no initramfs could be made for $package"
	echo "$suite $series ${package/=/ }" >"$folder/.versions"
	kernel_stamp "$name" >"$folder/.complete"
	rm -rf "$folder"/*.deb "$folder/initramfs.d"
}
