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
# FUZZGUIDED=no builds the targets without the counters of coverage: most of the time of a
# short run goes into that. Inputs are changed at random then, and not by what they reach.
#
# FUZZPARALLEL targets run at a time (2), each with FUZZWORKERS workers (1). A directory in
# memory as TMPDIR makes those targets faster that write files; FuzzJournal sees more on a
# file system that uses inode numbers again at once, as ext4 does.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:?usage: fuzz.sh FUZZTIME [PACKAGE [TARGET]]}
packages=${2:-${FUZZPKG:-./...}}
pattern=${3:-${FUZZTARGET:-^Fuzz}}

# run DIR NAME BINARY LOG: one target of a package that is built. Making an input that is new
# as short as it can be takes a minute each unless one says otherwise, and meanwhile nothing
# is tried.
run() {
    (cd "$1" && "$3" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$fuzztime" \
        -test.fuzzminimizetime 100x -test.fuzzcachedir "$cache/$1" \
        -test.parallel "${FUZZWORKERS:-1}") >"$4" 2>&1
}

# What the last line of progress says: "fuzz: elapsed: 5s, execs: 12345 (2469/sec), ...".
executions() { sed -n 's/^fuzz: elapsed: .* execs: \([0-9]*\) .*/\1/p' "$1" | tail -n 1; }

# target N PACKAGE NAME BINARY: one target, and its line. A test binary sometimes reports the
# end of its own time as a failure (golang/go#75804): a failure that names nothing but that
# is tried once more.
target() {
    local number=$1 log=$dir/$1.log word=ok execs input
    shift
    if ! run "$1" "$2" "$3" "$log"; then
        word=failed
        if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
            run "$1" "$2" "$3" "$log" && word="ok, second try"
        fi
    fi
    execs=$(executions "$log")
    # Where all the time went into the known inputs, nothing new was tried: then so many
    # executions, the known inputs among them, in place of a time.
    if [ "$word" != failed ] && [ "${execs:-0}" -eq 0 ]; then
        fuzztime=$(($(sed -n 's|^fuzz: .*: [0-9]*/\([0-9]*\) completed.*|\1|p' "$log" | tail -n 1) + 100))x
        run "$1" "$2" "$3" "$log" && word="ok, second try" || word=failed
        execs=$(executions "$log")
    fi
    [ "${execs:-0}" -gt 0 ] || word=failed
    echo "${execs:-0} $word" >"$dir/$number.result"
    echo "fuzz: $1 $2: $word, ${execs:-0} executions"
    [ "$word" = failed ] || return 0
    cat "$log" >&2
    input=$(sed -n 's/.*Failing input written to \(testdata[^ ]*\).*/\1/p' "$log" | tail -n 1)
    [ -z "$input" ] || echo "fuzz: $1 $2: keep $(go list -f '{{.Dir}}' "$1")/$input" >&2
}

guide=(-fuzz .)
[ "${FUZZGUIDED:-yes}" = yes ] || guide=()
dir=$(mktemp -d)
cache=$(go env GOCACHE)/fuzz/$(go list -m)
trap 'jobs=$(jobs -pr); [ -z "$jobs" ] || kill $jobs; rm -rf "$dir"' EXIT

# go test -list builds every test; the names of the targets are in the source, too.
while IFS=: read -r file name; do
    echo "./$(dirname "$file") $name"
done < <(git ls-files -co --exclude-standard -- '*_test.go' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func /:/') >"$dir/all"

wanted=$(go list -f '{{.Dir}}' "$packages" | sed "s|^$PWD|.|")
while read -r package name; do
    if [[ $name =~ $pattern ]] && grep -qxF -- "$package" <<<"$wanted"; then echo "$package $name"; fi
done <"$dir/all" >"$dir/targets"

# Each package is built once, by all processors, while the targets of the one before run.
number=0 built=
while read -r package name; do
    binary=$dir/${package//\//_}.test
    if [ "$built" != "$package" ]; then
        go test -vet=off -c "${guide[@]}" -o "$binary" "$package" </dev/null
        built=$package
    fi
    while [ "$(jobs -pr | wc -l)" -ge "${FUZZPARALLEL:-2}" ]; do wait -n || true; done
    number=$((number + 1))
    target "$number" "$package" "$name" "$binary" </dev/null &
done <"$dir/targets"
wait

targets=$(wc -l <"$dir/targets")
[ "$targets" -gt 0 ] || {
    echo "fuzz: no fuzz target matches \"$pattern\" in $packages; all of them:" >&2
    sed 's/^/    /' "$dir/all" >&2
    exit 1
}
ran=$(cat "$dir"/*.result | wc -l)
failed=$(cat "$dir"/*.result | grep -c '^[0-9]* failed$' || true)
total=$(cat "$dir"/*.result | awk '{ n += $1 } END { print n + 0 }')
echo "fuzz: $targets targets for $fuzztime each: $total executions, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -eq "$targets" ]
