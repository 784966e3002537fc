#!/bin/bash
# usage: fuzz.sh FUZZTIME
#
# Finds every fuzz target of the module and runs each for FUZZTIME ("5s", "1000x").
# Finding none is a failure: then this script no longer finds them.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:?usage: fuzz.sh FUZZTIME}
count=0

run() { go test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" -parallel 2 "$1"; }

# go test sometimes reports the end of its own time as a failure (golang/go#75804): a
# failure that names nothing but that is tried once more.
target() {
    local out
    out=$(run "$1" "$2" 2>&1) && { echo "fuzz: $1 $2: ok"; return; }
    if grep -q 'context deadline exceeded' <<<"$out" && ! grep -q 'Failing input' <<<"$out"; then
        out=$(run "$1" "$2" 2>&1) && { echo "fuzz: $1 $2: ok, second try"; return; }
    fi
    echo "$out" >&2
    echo "fuzz: $1 $2: failed" >&2
    return 1
}

# go test -list prints the names of a package, then "ok <package> <time>".
list=$(go test -list '^Fuzz' ./...)
while read -r package name; do
    target "$package" "$name"
    count=$((count + 1))
done < <(awk '/^Fuzz/ { names[++n] = $1 }
    $1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }' <<<"$list")

[ "$count" -gt 0 ] || { echo "fuzz: found no fuzz target" >&2; exit 1; }
