#!/bin/sh
# Stands for spectrum in the tests of the benchmark: does the same visible work, checks
# nothing. $STUB_LOOPBACK is the binary of bench/loopback, $STUB_FAIL a command to fail.
set -eu
command=$1; shift
[ "$command" != "${STUB_FAIL-}" ] || { echo "spectrum: stub fails" >&2; exit 1; }

state= out= root= run_dir= id= first= second=
while [ $# -gt 0 ]; do
    case $1 in
    --state-dir) state=$2; shift ;;
    --out) out=$2; shift ;;
    --restore-root) root=$2; shift ;;
    --run-dir) run_dir=$2; shift ;;
    --preview) id=$2; shift ;;
    --json | --replace | --lazy) ;;
    --html) : >"$2"; shift ;;
    --key | --project-root | --approve | --base) shift ;;
    --*) echo "spectrum: unknown flag $1" >&2; exit 64 ;;
    *) if [ -z "$first" ]; then first=$1; else second=$1; fi ;;
    esac
    shift
done
project=${first%/CONTRACTS/_runs/*}

case $command in
keygen) : >"$out" ;;
seal) [ -d "$first" ] && mkdir "$run_dir" ;;
verify) [ -d "$first" ] && cd "$project" && find data -type f -exec sha256sum {} + >/dev/null ;;
preview) mkdir -p "$state" && printf '%s\n' "$project" "$root" >"$state/id-1" && echo id-1 ;;
commit) { read -r project && read -r root; } <"$state/$id" && cp -a "$project/data" "$root" ;;
savepoint) echo "1 $second" ;;
rollback) rm -r "$first/data" ;;
snapshot)
    case $first in
    take) rm -rf "$state/kept" && cp -a "$second" "$state/kept" && echo "$second" >"$state/root" && echo "OK kept" ;;
    restore) read -r root <"$state/root" && cp -a "$state/$second/data" "$root" ;;
    esac ;;
mount) exec "$STUB_LOOPBACK" -name spectrum "$second" "$project" ;;
*) exit 64 ;;
esac
