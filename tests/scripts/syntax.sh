#!/bin/bash
# syntax.sh SCRIPT...: every script parses.
for script in "$@"; do
	bash -n "$script" || exit 1
done
