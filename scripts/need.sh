#!/bin/bash
# usage: need.sh run|demo|test|bench|release
#
# Installs by apt what is missing to run spectrum, to show it, to test it, to measure it, or to
# package it. Without fuse3 spectrum still builds and does everything but mount for users other
# than root, so for "run" and "demo" a package that cannot be installed is a warning; otherwise
# it is an error.
set -euo pipefail

purpose=${1:?usage: need.sh run|demo|test|bench|release}
PATH=$PATH:/usr/sbin:/sbin # mkfs and losetup are not on every user's PATH
missing=()
want() { command -v "$1" >/dev/null || missing+=("$2"); }

if ! command -v go >/dev/null; then
    echo "need: Go 1.26.5 or newer is missing: https://go.dev/dl/" >&2
    exit 1
fi
if [ "$purpose" = test ] && [ "$(id -u)" != 0 ]; then
    echo "need: the tests need root, to mount, to fill disks and to act as other users; without it some are skipped and others fail" >&2
fi
[ "$purpose" = release ] || want fusermount3 fuse3
if [ "$purpose" = demo ] || [ "$purpose" = test ]; then
    want git git # the repository of the story
    want script bsdutils # the terminal that it is played on
fi
if [ "$purpose" = test ]; then
    want strace strace
    want gcc gcc # the race detector
    want mkfs.ext4 e2fsprogs # disk images, to be filled and to lose their power
    want mkfs.xfs xfsprogs
    want mkfs.btrfs btrfs-progs
    want losetup mount
    want prlimit util-linux # a view with few descriptors
    want sqlite3 sqlite3
    want rsync rsync
    want mandoc mandoc # the manual pages, as a reader sees them
    want dpkg-deb dpkg # the packages
    command -v chromium-browser google-chrome >/dev/null || want chromium chromium # the preview's page
fi
if [ "$purpose" = bench ]; then
    want openssl openssl
    want restic restic
    want umount mount
fi
[ "$purpose" != release ] || want dpkg-deb dpkg
[ ${#missing[@]} -gt 0 ] || exit 0

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_install() { command -v apt-get >/dev/null && as_root true 2>/dev/null; }
install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"; }

if may_install; then
    echo "need: installing ${missing[*]}" >&2
    install >&2 || { as_root apt-get update -qq >&2 && install >&2; } && exit 0
    echo "need: apt could not install ${missing[*]}" >&2
else
    echo "need: missing packages, and installing them requires root; run:" >&2
    echo "need:     sudo apt-get install ${missing[*]}" >&2
fi
[ "$purpose" = run ] || [ "$purpose" = demo ]
