#!/bin/bash
# usage: coverage.sh [PACKAGE...]
#
# Measures each package by its own tests, and prints package, percent of statements,
# and every function with blocks that no test runs. It fails when a package is below
# 90 %, when such a function is not in docs/coverage.md, and when one that is there is
# covered whole. A package is a directory, such as verify/bundle; default: all of them.
#
# PROFILES=DIR keeps the profiles there, and takes those that are there already.
# The tests that only repeat what others have run (TestDeterminism...) are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

least=90
listed=docs/coverage.md
packages=("$@")
[ $# -gt 0 ] || packages=(verify verify/canonjson verify/blockhash verify/ignore verify/bundle pathsafe restore restore/preview restore/glob restore/scope restore/statement restore/privacy restore/quarantine restore/standing restore/savepoint restore/trust restore/audit restore/action staging)

profiles=${PROFILES:-}
if [ -z "$profiles" ]; then
    profiles=$(mktemp -d)
    trap 'rm -rf "$profiles"' EXIT
fi
mkdir -p "$profiles"

# uncovered FILE: "package/file.go function blocks", a line for each function that has
# blocks which no test ran. The functions are where "go tool cover" says they begin.
uncovered() {
    go tool cover -func="$1" | awk -v module="$module" '
        FNR == NR {
            if ($1 == "total:") next
            split($1, at, ":")
            n[at[1]]++; line[at[1], n[at[1]]] = at[2] + 0; name[at[1], n[at[1]]] = $2
            next
        }
        FNR > 1 && $3 == 0 && $2 > 0 {
            split($1, at, ":"); split(at[2], from, ".")
            for (i = n[at[1]]; i > 1 && line[at[1], i] > from[1] + 0; i--) {}
            blocks[at[1] " " name[at[1], i]]++
        }
        END { for (f in blocks) print substr(f, length(module) + 2), blocks[f] }
    ' - "$1" | sort
}

# known PACKAGE: "package/file.go function" of each row of the document.
known() {
    awk -F'[|`]' -v package="$1" '
        /^\| `[^`]*\.go` `/ { path = $3; sub("/[^/]*$", "", path); if (path == package) print $3, $5 }
    ' "$listed" | sort
}

module=$(go list -m)
failed=0
complain() {
    echo "coverage: $*" >&2
    failed=1
}

for package in "${packages[@]}"; do
    profile=$profiles/${package//\//_}.out
    if [ ! -s "$profile" ] || ! grep -q " [1-9]" <(tail -n +2 "$profile"); then
        go test -count=1 -timeout 30m -skip '^TestDeterminism' -coverpkg="./$package" -coverprofile="$profile" "./$package" > "$profile.log" 2>&1 ||
            { cat "$profile.log" >&2; complain "the tests of $package failed"; continue; }
    fi
    percent=$(awk 'FNR > 1 { all += $2; if ($3 > 0) run += $2 } END { printf "%.1f", all ? 100 * run / all : 0 }' "$profile")
    printf '%-20s %5s %%\n' "$package" "$percent"
    blocks=$(uncovered "$profile")
    functions=$(cut -d' ' -f1,2 <<<"$blocks" | sort -u)
    awk 'NF { printf "%29s %s: %d\n", "", $1 " " $2, $3 }' <<<"$blocks"
    awk -v p="$percent" -v least="$least" 'BEGIN { exit !(p < least) }' && complain "$package is below $least %"

    while read -r function; do complain "$function has blocks that no test runs, and is not in $listed"
    done < <(comm -23 <(grep . <<<"$functions") <(known "$package"))
    while read -r function; do complain "$function is in $listed, and every block of it is run (or there is no such function)"
    done < <(comm -13 <(grep . <<<"$functions") <(known "$package"))
done
exit "$failed"
