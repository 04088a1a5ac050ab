#!/bin/bash
# The closing summary counts right, gives the reason of a skip, and fails on a failure.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/good.xml" <<'END'
<testsuite><testcase name="a" status="run"/>
<testcase name="b" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>noise
no torch here
</system-out></testcase></testsuite>
END
cat >"$folder/bad.xml" <<'END'
<testsuite><testcase name="c" status="fail"><failure message="1"/></testcase></testsuite>
END
echo '<testsuite/>' >"$folder/none.xml"

expect() {
	local wanted_status=$1 wanted=$2 got status=0
	shift 2
	got=$(./summarise-tests "$@") || status=$?
	if [ "$got" != "$wanted" ] || [ "$status" != "$wanted_status" ]; then
		printf 'status %s, and:\n%s\n' "$status" "$got"
		exit 1
	fi
}
expect 0 $'skipped: b: no torch here\n1 passed, 0 failed, 1 skipped' "$folder/good.xml"
expect 1 $'skipped: b: no torch here\nFAILED:  c\n1 passed, 1 failed, 1 skipped' \
	"$folder/good.xml" "$folder/bad.xml"
expect 1 '0 passed, 0 failed, 0 skipped' "$folder/none.xml"
