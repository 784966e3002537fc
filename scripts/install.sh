#!/bin/bash
# usage: install.sh install|uninstall PROGRAM
#
# Installs PROGRAM, which was built before, as PREFIX/bin/spectrum, with its manual pages,
# its completion scripts, the systemd units, and the links that mount(8) looks for in
# SBINDIR; or removes them, and nothing that it did not install. All of it is below
# DESTDIR, and says where it will be without that.
#
#   PREFIX   /usr/local
#   SBINDIR  /sbin
#   DESTDIR  nothing
#   NATIVE   the program that prints the pages and the scripts, where PROGRAM is for
#            another architecture
set -euo pipefail
umask 022

task=${1:?usage: install.sh install|uninstall PROGRAM}
program=${2:?usage: install.sh install|uninstall PROGRAM}
native=${NATIVE:-$program}
prefix=${PREFIX:-/usr/local}
there=${DESTDIR:-}$prefix
sbin=${DESTDIR:-}${SBINDIR:-/sbin}
sources=$(dirname "$0")/../contrib/systemd

links=(mount.spectrum mount.fuse.spectrum)
units=(spectrum-view@.service spectrum-snapshot@.service spectrum-snapshot@.timer)
declare -A completions=(
    [bash]=share/bash-completion/completions/spectrum
    [zsh]=share/zsh/site-functions/_spectrum
    [fish]=share/fish/vendor_completions.d/spectrum.fish
)
made='.\" Made by the program from its help texts; do not edit.'

install_all() {
    [ "${native##*/}" != "$native" ] || native=./$native # a file, and no word of PATH
    for dir in "$there/bin" "$sbin"; do
        if ! mkdir -p "$dir" 2>/dev/null || [ ! -w "$dir" ]; then
            echo "install: no permission to write $dir; run sudo make install, or make install PREFIX=\$HOME/.local SBINDIR=\$HOME/.local/sbin" >&2
            exit 1
        fi
    done
    install -D -m 755 "$program" "$there/bin/spectrum"
    install -d "$sbin" "$there/lib/systemd/system"
    for link in "${links[@]}"; do ln -sf "$prefix/bin/spectrum" "$sbin/$link"; done
    for unit in "${units[@]}"; do
        sed "s|/usr/local/bin/|$prefix/bin/|" "$sources/$unit" > "$there/lib/systemd/system/$unit"
    done
    "$native" manual --quiet "$there/share/man"
    for shell in "${!completions[@]}"; do
        "$native" completion "$shell" | install -D -m 644 /dev/stdin "$there/${completions[$shell]}"
    done
}

# Pages of commands that a newer version does not have any more go too.
uninstall_all() {
    [ "${native##*/}" != "$native" ] || native=./$native # a file, and no word of PATH
    for link in "${links[@]}"; do
        [ "$(readlink "$sbin/$link")" != "$prefix/bin/spectrum" ] || rm -f "$sbin/$link"
    done
    for page in "$there"/share/man/man[18]/{spectrum,mount.}*.[18]; do
        ! grep -qsxF "$made" "$page" || rm -f "$page"
    done
    for unit in "${units[@]}"; do rm -f "$there/lib/systemd/system/$unit"; done
    for shell in "${!completions[@]}"; do rm -f "$there/${completions[$shell]}"; done
    rm -f "$there/bin/spectrum"
}

"${task}_all"
