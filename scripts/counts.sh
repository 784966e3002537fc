#!/bin/bash
# usage: counts.sh COMMAND...
#
# Runs "go test -v" and shows which packages passed, what the tests counted, and all of
# those that failed; not when each began, which part of a sweep was chosen, nor the syncs
# that were taken out of a trace one by one. The last lines name the tests that failed.
set -uo pipefail

failed=$(mktemp)
trap 'rm -f "$failed"' EXIT
"$@" 2>&1 | tee >(grep -E '^--- FAIL: ' >"$failed") |
    grep --line-buffered -vE '^=== |: missed: |^ok .*no test files|^\?|: (SEED=|every [0-9]+ cases from )|^PASS$|^--- PASS: .*\(0\.[0-9]*s\)$'
status=${PIPESTATUS[0]}
[ ! -s "$failed" ] || { echo "failed:"; sed 's/^--- FAIL: /    /' "$failed"; } >&2
exit "$status"
