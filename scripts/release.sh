#!/bin/bash
# usage: release.sh DIRECTORY ARCHITECTURE...
#
# Writes a release for each architecture, as Go names it (amd64, arm64), into DIRECTORY:
#
#   spectrum_VERSION_linux_ARCH.tar.gz     what make install installs to /usr/local
#   spectrum_VERSION-1_ARCH.deb            the same for Debian and its kin
#   spectrum_VERSION_linux_ARCH.spdx.json  what was linked into the binary (SPDX 2.3)
#   SHA256SUMS
#
# The same sources, the same Go and the same VERSION and SOURCE_DATE_EPOCH make the same
# bytes, wherever and by whomever they are built; stamp.sh says where the two come from.
set -euo pipefail
umask 022

out=$(realpath -m "${1:?usage: release.sh DIRECTORY ARCHITECTURE...}")
shift
cd "$(dirname "$0")/.."
version=$(scripts/stamp.sh version)
SOURCE_DATE_EPOCH=$(scripts/stamp.sh epoch)
[[ $version =~ ^[0-9][0-9A-Za-z.+-]*$ ]] || { echo "release: a version begins with a digit, and \"$version\" does not" >&2; exit 1; }
[[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || { echo "release: SOURCE_DATE_EPOCH is a number of seconds, not \"$SOURCE_DATE_EPOCH\"" >&2; exit 1; }
debian=${version//-/\~}-1 # there 1.0.0~rc.1 is before 1.0.0, and 1.0.0-rc.1 after it
homepage=https://github.com/spectrumfs/spectrum
maintainer=${MAINTAINER:-spectrum maintainers <spectrumfs@users.noreply.github.com>}

# Nothing that the builder has set elsewhere gets into what is built.
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
export GOOS=linux CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOFIPS140=off GOFLAGS=-mod=readonly
unset GOARCH
export DPKG_DEB_THREADS_MAX=1 # what several threads compress depends on how many

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host=$(go env GOHOSTARCH)

build() {
    GOARCH=$1 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$version" \
        -o "$work/$1/spectrum" ./cmd/spectrum
}

bom() { "$work/bom" -version "$version" "$@"; }

# stage ARCH DIRECTORY PREFIX SBINDIR: what is installed, and the pages to read about it.
stage() {
    DESTDIR=$2 PREFIX=$3 SBINDIR=$4 NATIVE=$work/$host/spectrum scripts/install.sh install "$work/$1/spectrum"
    local doc=$2$3/share/doc/spectrum
    install -D -m 644 -t "$doc" README.md
    install -D -m 644 -t "$doc/docs" docs/*
    copyright > "$doc/copyright"
    bom licences "$work/$1/spectrum" > "$doc/third-party.txt"
}

copyright() {
    echo "spectrum, from $homepage"
    echo
    if [ -f LICENSE ]; then cat LICENSE; else echo "The source tree has no licence file."; fi
    echo
    echo "What is linked into the program is under the licences in third-party.txt beside this"
    echo "file. One of them, Apache-2.0, is in /usr/share/common-licenses on Debian, too."
}

# settle DIRECTORY: everything in it is as old as the release.
settle() { find "$1" -print0 | xargs -0 touch -h -d "@$SOURCE_DATE_EPOCH"; }

tarball() {
    local name=spectrum-$version-linux-$1
    stage "$1" "$work/tar" /usr/local /sbin
    install -m 644 -t "$work/tar/usr/local/share/doc/spectrum" CHANGELOG.md
    mv "$work/tar/usr/local" "$work/$name"
    settle "$work/$name"
    tar --create --directory "$work" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner "$name" |
        gzip -n9 > "$made/spectrum_${version}_linux_$1.tar.gz"
    rm -rf "$work/tar"
}

deb() {
    local tree=$work/deb
    local doc=$tree/usr/share/doc/spectrum
    stage "$1" "$tree" /usr /usr/sbin
    gzip -n9 < CHANGELOG.md > "$doc/changelog.gz"
    debian_changelog | gzip -n9 > "$doc/changelog.Debian.gz"
    find "$tree/usr/share/man" -type f -print0 | xargs -0 gzip -n9
    ln -sf ../bin/spectrum "$tree/usr/sbin/mount.spectrum" # relative, as the policy has it (10.5)
    ln -sf ../bin/spectrum "$tree/usr/sbin/mount.fuse.spectrum"
    overrides | install -D -m 644 /dev/stdin "$tree/usr/share/lintian/overrides/spectrum"
    install -d "$tree/DEBIAN"
    control "$1" "$tree" > "$tree/DEBIAN/control"
    (cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
    settle "$tree"
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$made/spectrum_${debian}_$1.deb" >/dev/null
    rm -rf "$tree"
}

overrides() {
    echo "# A Go program without cgo: it depends on no library that could be changed beneath it."
    echo "spectrum: statically-linked-binary [usr/bin/spectrum]"
}

debian_changelog() {
    printf 'spectrum (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' \
        "$debian" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
}

# The program is linked statically, so that it depends on nothing; without fuse3 only
# mounts of users other than root are missing.
control() {
    cat <<EOF
Package: spectrum
Version: $debian
Architecture: $1
Maintainer: $maintainer
Installed-Size: $(find "$2/usr" -type f -printf '%s\n' | awk '{ k += int(($1 + 1023) / 1024) } END { print k }')
Recommends: fuse3
Section: admin
Priority: optional
Homepage: $homepage
Description: look at a restore before it happens, then do all of it or nothing
 A run (of an agent, a build, a pipeline) leaves a bundle: signed JSON artifacts
 that name every output file and its SHA-256. spectrum verifies bundles and
 chains of bundles, mounts them as a read-only file system in which every byte
 is checked against the signed hash as it is read, shows what a restore would
 change, and puts exactly what was approved in place: all of it, or nothing.
EOF
}

made=$work/release
mkdir "$made"
GOOS='' go build -trimpath -buildvcs=false -o "$work/bom" ./scripts/bom
build "$host"
for arch in "$@"; do
    [ "$arch" = "$host" ] || build "$arch"
    tarball "$arch"
    deb "$arch"
    bom spdx "$work/$arch/spectrum" > "$made/spectrum_${version}_linux_$arch.spdx.json"
done
(cd "$made" && sha256sum spectrum_* > SHA256SUMS)
install -d "$out"
rm -f "$out"/spectrum_* "$out/SHA256SUMS"
mv "$made"/* "$out"
echo "release: spectrum $version in $out" >&2
