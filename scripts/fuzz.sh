#!/bin/bash
# usage: fuzz.sh FUZZTIME [PACKAGE [TARGET]]
#
# Finds every fuzz target of the module and runs each for FUZZTIME ("5s", "1000x"). PACKAGE
# ("./verify/...") and TARGET (a regular expression) narrow it, and so do FUZZPKG and
# FUZZTARGET: make fuzz FUZZTIME=10m FUZZPKG=./verify FUZZTARGET=FuzzBundle. Finding none is
# a failure: then this script no longer finds them.
#
# For each target one line says how often it was executed, and the last line says how often
# all were. A target that fails does not end the run; what made it fail is kept in
# testdata/fuzz of its package, from where every later "go test" takes it up.
#
# FUZZPARALLEL is the number of workers (2). A directory in memory as TMPDIR makes those
# targets faster that write files; FuzzJournal sees more on a file system that uses inode
# numbers again at once, as ext4 does.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:?usage: fuzz.sh FUZZTIME [PACKAGE [TARGET]]}
packages=${2:-${FUZZPKG:-./...}}
pattern=${3:-${FUZZTARGET:-^Fuzz}}
targets=0
total=0
failed=()

# Making an input that is new as short as it can be takes a minute each unless one says
# otherwise, and meanwhile nothing is tried.
run() {
    go test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" -fuzzminimizetime 100x \
        -parallel "${FUZZPARALLEL:-2}" "$1" >"$log" 2>&1
}

# What the last line of progress says: "fuzz: elapsed: 5s, execs: 12345 (2469/sec), ...".
executions() { sed -n 's/^fuzz: elapsed: .* execs: \([0-9]*\) .*/\1/p' "$log" | tail -n 1; }

# go test sometimes reports the end of its own time as a failure (golang/go#75804): a
# failure that names nothing but that is tried once more.
target() {
    local word=ok execs
    if ! run "$1" "$2"; then
        word=failed
        if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
            run "$1" "$2" && word="ok, second try"
        fi
    fi
    execs=$(executions)
    targets=$((targets + 1))
    total=$((total + ${execs:-0}))
    echo "fuzz: $1 $2: $word, ${execs:-0} executions"
    [ "$word" = failed ] || return 0
    failed+=("$2")
    cat "$log" >&2
    input=$(sed -n 's/.*Failing input written to \(testdata[^ ]*\).*/\1/p' "$log" | tail -n 1)
    [ -z "$input" ] || echo "fuzz: $1 $2: keep $(go list -f '{{.Dir}}' "$1")/$input" >&2
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# go test -list prints the names of a package, then "ok <package> <time>".
list=$(go test -list "$pattern" "$packages")
while read -r package name; do
    target "$package" "$name" </dev/null
done < <(awk '/^Fuzz/ { names[++n] = $1 }
    $1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }' <<<"$list")

[ "$targets" -gt 0 ] || { echo "fuzz: found no fuzz target" >&2; exit 1; }
echo "fuzz: $targets targets for $fuzztime each: $total executions, ${#failed[@]} failed${failed[*]:+: ${failed[*]}}"
[ "${#failed[@]}" -eq 0 ]
