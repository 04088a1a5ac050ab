#!/bin/bash
# Runs every script through the linter (the word at a comment's start would be a directive).
if ! command -v shellcheck >/dev/null; then
	echo "shellcheck is not installed"
	exit 77
fi
exec shellcheck --shell=bash --external-sources --source-path=.. "$@"
