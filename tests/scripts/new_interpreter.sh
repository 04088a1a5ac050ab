#!/bin/bash
# A tree that was configured before CPython 3.14 was fetched finds it at the next build.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cat >"$work/CMakeLists.txt" <<-MINIMAL
	cmake_minimum_required(VERSION 3.25)
	project(interpreters NONE)
	set(RLS_CACHE $work/cache)
	include($PWD/../tests/ground_truth/interpreters.cmake)
	truth_pythons_find(found)
	message(STATUS "found: \${found}")
MINIMAL

# build EXPECTED: whether building runs CMake, and finds the interpreter.
build() {
	local said
	said=$(PYENV_ROOT=$work/pyenv cmake --build "$work/build" 2>&1) || { echo "$said" && exit 1; }
	case $1,$said in
	nothing,*found:*) ;;
	nothing,*) return ;;
	3.14,*found:*python3.14*) return ;;
	without,*found:*python3.14*) ;;
	without,*found:*) return ;;
	esac
	printf 'expected %s, but building said:\n%s\n' "$1" "$said"
	exit 1
}

PYENV_ROOT=$work/pyenv cmake -G Ninja -S "$work" -B "$work/build" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
build nothing
mkdir -p "$work/cache/rlscope-bpf/python3.14"
touch "$work/cache/rlscope-bpf/python3.14/.complete"
build 3.14
build nothing
rm "$work/cache/rlscope-bpf/python3.14/.complete"
build without
