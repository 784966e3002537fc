#!/bin/bash
# usage: stamp.sh version|epoch
#
# Prints the version of what is released, or the time that all of it is of, in seconds:
# what VERSION and SOURCE_DATE_EPOCH say, else what git knows of the commit. A version is
#
#   1.2.3                          of the tag v1.2.3
#   1.2.3+4.g0123456789ab          four commits after it
#   0.0.0+20260131.g0123456789ab   where there is no tag
#
# and ends with ".dirty" where a file is other than in the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() {
    echo "stamp: there is no git repository here; set $1" >&2
    exit 1
}

# in_git reports whether this directory is the top of a git repository, not inside another one.
in_git() { [ "$(git rev-parse --show-prefix 2>/dev/null && echo here)" = $'\nhere' ]; }

version() {
    local described dirty=
    in_git || missing VERSION
    [ -z "$(git status --porcelain)" ] || dirty=.dirty
    if described=$(git describe --tags --long --abbrev=12 --match 'v[0-9]*' 2>/dev/null); then
        described=$(sed -E 's/^v(.*)-0-g[0-9a-f]+$/\1/; s/^v(.*)-([0-9]+)-(g[0-9a-f]+)$/\1+\2.\3/' <<<"$described")
    else
        described=0.0.0+$(TZ=UTC git log -1 --format=%cd.g%h --date=format-local:%Y%m%d --abbrev=12)
    fi
    echo "$described$dirty"
}

epoch() {
    in_git || missing SOURCE_DATE_EPOCH
    git log -1 --format=%ct
}

case ${1:-} in
version) [ -n "${VERSION:-}" ] && echo "$VERSION" || version ;;
epoch) [ -n "${SOURCE_DATE_EPOCH:-}" ] && echo "$SOURCE_DATE_EPOCH" || epoch ;;
*) echo "usage: stamp.sh version|epoch" >&2; exit 1 ;;
esac
