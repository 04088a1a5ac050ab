#!/bin/sh
# strip.sh LIBRARY FOLDER: copies of a library, stripped, their names kept in each of the ways
# that distributions use. Needs objcopy and xz; OBJCOPY may name another one.
set -eu
objcopy=${OBJCOPY:-objcopy}
mkdir -p "$2/.debug"
cd "$2"
"$objcopy" --only-keep-debug "$1" whole.debug

"$objcopy" --strip-all "$1" stripped.so

# .gnu_debugdata: as Fedora's find-debuginfo makes it.
"$objcopy" --strip-all --remove-section .comment --keep-symbol named_static \
	--keep-symbol named_hidden whole.debug mini
xz -f -k mini
"$objcopy" --add-section .gnu_debugdata=mini.xz stripped.so packed.so

# .gnu_debuglink, beside the library and in .debug; without an identity the checksum decides.
"$objcopy" --remove-section .note.gnu.build-id whole.debug beside.debug
"$objcopy" --remove-section .note.gnu.build-id --add-gnu-debuglink=beside.debug stripped.so beside.so
cp whole.debug .debug/below.debug
cp whole.debug below.debug
"$objcopy" --add-gnu-debuglink=below.debug stripped.so below.so
rm below.debug

# A link to a file that is another's by now.
cp whole.debug other.debug
"$objcopy" --remove-section .note.gnu.build-id --add-gnu-debuglink=other.debug stripped.so other.so
"$objcopy" --remove-section .note.gnu.build-id --remove-section .comment whole.debug other.debug
