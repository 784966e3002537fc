#!/bin/bash
# usage: lanes.sh TITLE LANE...
#
# Runs "make LANE" for one lane after the other, and prints the time of each when the last
# one has ended or one has failed, so that growth is seen. The first lane that fails ends
# the run.
set -uo pipefail
cd "$(dirname "$0")/.."

title=${1:?usage: lanes.sh TITLE LANE...}
shift
[ $# -gt 0 ] || { echo "usage: lanes.sh TITLE LANE..." >&2; exit 64; }
SEED=${SEED:-0}
times=()
begun=$SECONDS

report() {
    echo
    echo "$title: SEED=$SEED, $(nproc) processors"
    printf '    %-12s %5d s\n' "${times[@]}"
    echo "    $1 after $((SECONDS - begun)) s"
}

echo "$title: SEED=$SEED, SPECTRUM_TESTS=${SPECTRUM_TESTS:-sample}, lanes $*"
for lane in "$@"; do
    echo
    echo "== $title: $lane"
    from=$SECONDS
    make --no-print-directory "$lane"
    status=$?
    times+=("$lane" $((SECONDS - from)))
    if [ $status -ne 0 ]; then
        report "lane $lane failed"
        echo "    repeat it with: make $lane SEED=$SEED${SPECTRUM_TESTS:+ SPECTRUM_TESTS=$SPECTRUM_TESTS}"
        exit 1
    fi
done
report passed
