#!/bin/bash
# usage: demo.sh SPECTRUM
#
# Writes the sample project of "SPECTRUM demo" to a temporary directory and runs the
# commands that it prints, from the verification to the savepoint of a commit, each with
# its output, of which the middle is left out when it is long. Only the copy in which one digit was changed must be rejected; any other
# failure ends the demo. The state directory is in the temporary directory too, and all of
# it is removed at the end.
#
# Where no file system can be mounted (exit status 69), the commands on the view are left
# out, and said so.
set -uo pipefail

spectrum=${1:?usage: demo.sh SPECTRUM}
dir=$(mktemp -d "${TMPDIR:-/tmp}/spectrum-demo.XXXXXX") || exit 1
export XDG_STATE_HOME=$dir/state
unset SPECTRUM_STATE_DIR SPECTRUM_PROJECT_ROOT

cleanup() {
    mountpoint -q "$dir/demo/view" && "$spectrum" umount -q "$dir/demo/view"
    rm -rf --one-file-system "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# shown FILE: a long output without its middle.
shown() {
    local lines
    lines=$(wc -l <"$1")
    if [ "$lines" -le 24 ]; then
        cat "$1"
    else
        head -n 12 "$1"
        echo "    ... $((lines - 20)) more lines ..."
        tail -n 8 "$1"
    fi
}

steps=$("$spectrum" demo -q "$dir/demo") || exit 1
view=yes
while IFS= read -r step; do
    case $step in
        '#'*) printf '\n%s\n' "$step"; continue ;;
        *"$dir/demo/view"*) [ $view = yes ] || { echo "left out, no view: $step"; continue; } ;;
    esac
    echo "\$ $step"
    eval "$step" >"$dir/output" 2>&1
    status=$?
    shown "$dir/output"
    want=0
    case $step in *"$dir/demo/tampered"*)
        want=1
        [ $status -ne 1 ] || echo "demo: rejected, as it should be"
        ;;
    esac
    if [ $status -eq 69 ] && [[ $step == *' mount '* ]]; then
        view=no
    elif [ $status -ne $want ]; then
        echo "demo: exit status $status, not $want: $step" >&2
        exit 1
    fi
done <<<"$steps"

# A program that prints no steps has shown nothing.
for word in verify mount commit "savepoint verify"; do
    if [[ $steps != *"$spectrum $word "* ]]; then
        echo "demo: \"$spectrum demo\" prints no command $word" >&2
        exit 1
    fi
done

echo
echo "demo: done. To try it yourself: $spectrum demo /tmp/demo"
