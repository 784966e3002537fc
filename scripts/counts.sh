#!/bin/bash
# usage: counts.sh COMMAND...
#
# Runs "go test -v" and shows what failed, what passed, and what the tests counted; not
# when each began, nor the syncs that were taken out of a trace one by one.
set -uo pipefail
"$@" 2>&1 | grep --line-buffered -vE '^=== |: missed: '
exit "${PIPESTATUS[0]}"
