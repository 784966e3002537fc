#!/bin/bash
# usage: vulncheck.sh GOVULNCHECK
#
# Runs govulncheck over the project. Where its database cannot be reached it says so and
# passes: a gate that needs the network must not fail without one.
set -uo pipefail
cd "$(dirname "$0")/.."

out=$(timeout 180 "$1" ./... 2>&1)
status=$?
if [ $status != 0 ] && { [ $status = 124 ] || grep -q 'fetching vulnerabilities:' <<<"$out"; }; then
    echo "vulncheck: skipped, the database cannot be reached: ${out##*$'\n'}"
    exit 0
fi
echo "$out"
exit $status
