#!/bin/bash
# usage: lanes.sh TITLE LANE...
#
# Runs "make LANE" for one lane after the other, and prints the time of each when the last
# one has ended or one has failed, so that growth is seen. The first lane that fails ends
# the run.
#
# ONE+TWO are two lanes that run at the same time, because one of them waits more than it
# computes. The output of the second is shown when both have ended.
set -uo pipefail
cd "$(dirname "$0")/.."

title=${1:?usage: lanes.sh TITLE LANE...}
shift
[ $# -gt 0 ] || { echo "usage: lanes.sh TITLE LANE..." >&2; exit 64; }
SEED=${SEED:-0}
times=()
begun=$SECONDS

dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
beside= # the process group of the second of two lanes
trap '[ -z "$beside" ] || kill -INT -- "-$beside"; wait; exit 130' INT TERM HUP

report() {
    echo
    echo "$title: SEED=$SEED, $(nproc) processors"
    printf '    %-12s %5d s\n' "${times[@]}"
    echo "    $1 after $((SECONDS - begun)) s"
}

# lane NAME FILE: runs it, and writes its time into the file.
lane() {
    local from=$SECONDS status
    echo
    echo "== $title: $1"
    make --no-print-directory "$1"
    status=$?
    echo $((SECONDS - from)) >"$2"
    return $status
}

echo "$title: SEED=$SEED, SPECTRUM_TESTS=${SPECTRUM_TESTS:-sample}, lanes $*"
for pair in "$@"; do
    failed=
    IFS=+ read -r one two <<<"$pair"
    if [ -n "$two" ]; then
        set -m # else it could not be interrupted
        lane "$two" "$dir/two" >"$dir/output" 2>&1 &
        set +m
        beside=$!
    fi
    lane "$one" "$dir/one" || failed=$one
    times+=("$one" "$(cat "$dir/one")")
    if [ -n "$two" ]; then
        wait "$beside" || failed=${failed:-$two}
        beside=
        cat "$dir/output"
        times+=("$two" "$(cat "$dir/two")")
    fi
    if [ -n "$failed" ]; then
        report "lane $failed failed"
        echo "    repeat it with: make $failed SEED=$SEED${SPECTRUM_TESTS:+ SPECTRUM_TESTS=$SPECTRUM_TESTS}"
        exit 1
    fi
done
report passed
