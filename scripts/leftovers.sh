#!/bin/bash
# usage: leftovers.sh COMMAND...
#
# Runs COMMAND with a TMPDIR of its own and fails when it fails, or when it leaves behind
#   - a file or directory in that TMPDIR,
#   - a process that was started with that TMPDIR in its environment,
#   - a mount beneath that TMPDIR, or a new dead spectrum view.
# What is left is given ten seconds to go, then shown.
#
# Root runs COMMAND with mounts of its own, without the views of other processes: neither
# disturbs the other, and no mount outlives the command. When it is interrupted, its TMPDIR
# is removed.
#
# COMMAND gets the default SIGINT and SIGQUIT: a shell without job control starts what runs in
# the background with both ignored.
#
# The user's own state directory is out of the command's reach: a test that forgets
# --state-dir writes into the TMPDIR, and is found.
set -uo pipefail

if [ "$(id -u)" = 0 ] && [ -z "${LEFTOVERS_MOUNTS:-}" ]; then
    LEFTOVERS_MOUNTS=own exec unshare --mount --propagation private "$0" "$@"
fi
[ "${LEFTOVERS_MOUNTS:-}" != own ] ||
    awk '/ - fuse\.spectrum / { print $5 }' /proc/self/mountinfo | while read -r mountpoint; do
        umount --lazy --internal-only "$(printf %b "$mountpoint")" 2>/dev/null
    done

tmp=$(mktemp -d "${TMPDIR:-/tmp}/spectrum-test.XXXXXX") || exit 1
chmod 755 "$tmp" # tests that act as another user must get through

files() { find "$tmp" -xdev -mindepth 1 -printf 'file: %p\n' 2>&1; }

processes() {
    grep -lsF "$tmp" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ pid _; do
        echo "process: $pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
    done
}

# Fields 1 and 5 of mountinfo: id and mountpoint (white space is escaped as \040). The
# kernel answers for a dead view with ENOTCONN.
views() { awk '/ - fuse\.spectrum / { print $1, $5 }' /proc/self/mountinfo | sort; }
dead() { [[ $(LC_ALL=C timeout 5 stat -f -- "$(printf %b "$1")" 2>&1) == *'not connected'* ]]; }

mounts() {
    awk -v tmp="$tmp/" 'index($5 "/", tmp) == 1 { print "mount: " $5 }' /proc/self/mountinfo
    comm -13 <(echo "$views_before") <(views) | while read -r _ mountpoint; do
        ! dead "$mountpoint" || echo "dead view: $mountpoint"
    done
}

left() { processes; mounts; files; }

interrupted=
trap 'interrupted=yes' INT TERM HUP
views_before=$(views)
env --default-signal=INT,QUIT -u SPECTRUM_PROJECT_ROOT -u SPECTRUM_STATE_DIR -u LEFTOVERS_MOUNTS \
    TMPDIR="$tmp" XDG_STATE_HOME="$tmp/state" "$@"
status=$?

for _ in {1..20}; do
    rest=$(left)
    [ -n "$rest" ] && [ -z "$interrupted" ] || break
    sleep 0.5
done
if [ -n "$interrupted" ]; then
    chmod -R u+rwX "$tmp" 2>/dev/null
    rm -rf --one-file-system "$tmp" 2>/dev/null
    [ ! -e "$tmp" ] || echo "leftovers: interrupted; remove what is left with: rm -rf $tmp" >&2
    exit 130
fi
if [ -n "$rest" ]; then
    echo "leftovers: \"$1 ...\" left behind:" >&2
    head -n 40 <<<"$rest" >&2
    echo "leftovers: remove it with: rm -rf $tmp" >&2
    exit 1
fi
rmdir "$tmp"
exit $status
