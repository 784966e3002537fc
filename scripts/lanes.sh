#!/bin/bash
# usage: lanes.sh TITLE LANE... -- LANE...
#
# Runs "make LANE" for each lane: those before -- one after the other, the others in their
# order two at a time, since a lane waits more than it computes. It prints the time of each
# when the last one has ended or one has failed, so that growth is seen. The first lane that
# fails ends the run.
#
# The lines of lanes that run at the same time begin with the name of their lane. The last
# lines of a run that failed name the tests that failed and what they said.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() { echo "usage: lanes.sh TITLE LANE... -- LANE..." >&2; exit 64; }
title=${1:?usage: lanes.sh TITLE LANE... -- LANE...}
shift
first=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do first+=("$1"); shift; done
[ $# -gt 1 ] || usage
shift
SEED=${SEED:-0}
times=()
begun=$SECONDS

printed=$(mktemp -d) || exit 1
trap 'rm -rf "$printed"' EXIT

declare -A running=() began=() # by process id: the name of a lane, and when it began
trap 'stop; exit 130' INT TERM HUP

# stop interrupts the lanes that are running, and waits for them.
stop() {
    for pid in "${!running[@]}"; do kill -INT -- "-$pid" 2>/dev/null; done
    wait
}

report() {
    echo
    echo "$title: SEED=$SEED, $(nproc) processors"
    printf '    %-12s %5d s\n' "${times[@]}"
    echo "    $1 after $((SECONDS - begun)) s"
}

failed() {
    stop
    report "lane $1 failed"
    grep -e '--- FAIL: ' "$printed/$1" | head -n 8
    grep -E 'FAIL: testdata|_test\.go:[0-9]+: |^panic: |^leftovers: |^(file|process|mount): ' "$printed/$1" |
        cut -c1-300 | tail -n 10
    echo "    repeat it with: make $1 SEED=$SEED${SPECTRUM_TESTS:+ SPECTRUM_TESTS=$SPECTRUM_TESTS}"
    exit 1
}

# finish waits until one of the lanes that are running has ended.
finish() {
    local pid= status
    wait -n -p pid "${!running[@]}"
    status=$?
    local name=${running[$pid]}
    times+=("$name" $((SECONDS - began[$pid])))
    unset "running[$pid]" "began[$pid]"
    [ $status -eq 0 ] || failed "$name"
    echo "== $title: $name passed after ${times[-1]} s"
}

echo "$title: SEED=$SEED, SPECTRUM_TESTS=${SPECTRUM_TESTS:-sample}, lanes ${first[*]} $*"
for name in "${first[@]}"; do
    echo
    echo "== $title: $name"
    from=$SECONDS
    make --no-print-directory "$name" 2>&1 | tee "$printed/$name" || status=$?
    times+=("$name" $((SECONDS - from)))
    [ "${status:-0}" -eq 0 ] || failed "$name"
done
echo
for name in "$@"; do
    [ ${#running[@]} -lt 2 ] || finish
    echo "== $title: $name"
    set -m # a process group of its own, which stop interrupts
    { make --no-print-directory "$name" 2>&1 | tee "$printed/$name" | sed -u "s/^/$name: /"; } &
    set +m
    running[$!]=$name
    began[$!]=$SECONDS
done
while [ ${#running[@]} -gt 0 ]; do finish; done
report passed
