#!/bin/bash
# usage: stress.sh COUNT PACKAGE...
#
# Runs the tests of each package COUNT times, each time with another SEED, while as many
# busy loops as there are processors run beside them (BUSY=n sets their number). A test
# that fails by its own fault does so here. Every failure is shown with its seed; the last
# line counts them.
#
# GOTESTBUILD are flags of go test -c, such as "-race"; GOTESTFLAGS those of the test
# binary, such as "-test.run ^TestLoop$". To run no test is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

count=${1:?usage: stress.sh COUNT PACKAGE...}
shift
[ "$count" -gt 0 ] && [ $# -gt 0 ] || { echo "usage: stress.sh COUNT PACKAGE..." >&2; exit 64; }

dir=$(mktemp -d)
busy=()
cleanup() {
    [ ${#busy[@]} -eq 0 ] || kill "${busy[@]}"
    rm -rf "$dir"
}
trap cleanup EXIT
for _ in $(seq "${BUSY:-$(nproc)}"); do
    while :; do :; done &
    busy+=($!)
done

runs=0 failures=0
for package in "$@"; do
    # One build a package; it runs in the package's directory, as go test does.
    read -r import source < <(go list -f '{{.ImportPath}} {{.Dir}}' "$package")
    # shellcheck disable=SC2086 # the flags are words
    go test -c -o "$dir/test" ${GOTESTBUILD:-} "$package" || exit 1
    [ -e "$dir/test" ] || continue # it has no tests
    failed=0
    for seed in $(seq "$count"); do
        runs=$((runs + 1))
        # shellcheck disable=SC2086
        if ! (cd "$source" && SEED=$seed "$dir/test" -test.timeout 20m -test.failfast ${GOTESTFLAGS:-}) >"$dir/out" 2>&1 || grep -q 'warning: no tests to run' "$dir/out"; then
            failed=$((failed + 1))
            echo "stress: $import failed with SEED=$seed:"
            grep -vE '^(=== |--- PASS|PASS|ok )' "$dir/out" | tail -n 40
        fi
    done
    echo "stress: $import: $count runs, $failed failed"
    failures=$((failures + failed))
    rm -f "$dir/test"
done
echo "stress: $runs runs beside ${#busy[@]} busy loops, $failures failed"
[ "$failures" -eq 0 ]
