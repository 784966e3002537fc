package main

import (
	"log"
	"os"
	"os/exec"
)

// private runs "private SCRIPT", a path: a shell script as root with mounts and
// processes of its own, so that it may change what the whole machine shares, and
// nothing of it is left when it ends. What it starts with is in privateSetup.
func private() {
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
		"sh", "-eu", "-c", privateSetup+`. "$1"`, "private", os.Args[1])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}

// privateSetup makes an empty /mnt, in it the program for all users, a FUSE device that every
// user may open, no helpers of mount(8), and words for scripts.
const privateSetup = `
mount -t tmpfs -o mode=755 tmpfs /mnt
mknod -m 666 /mnt/fuse c 10 229
chmod 666 /mnt/fuse
mount --bind /mnt/fuse /dev/fuse
mount -t tmpfs -o mode=755 tmpfs /sbin
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /mnt/bin /mnt/home
cp "$(command -v spectrum)" /mnt/bin/spectrum
PATH=/mnt/bin:$PATH
umask 022
unset XDG_STATE_HOME
export HOME=/mnt/home/root
mkdir /mnt/home/root
as_user() { echo setpriv --reuid "$1" --regid "$1" --clear-groups env HOME=/mnt/home/"$1"; }
nobody=$(as_user 65534)
somebody=$(as_user 54321)
install -d -o 65534 /mnt/home/65534
install -d -o 54321 /mnt/home/54321

# exits STATUS COMMAND...: what it said is in /mnt/said
exits() {
	want=$1; shift; got=0
	"$@" >/mnt/said 2>&1 || got=$?
	[ "$got" = "$want" ] || { echo "exit status $got, not $want: $*"; cat /mnt/said; exit 1; }
}

# said PATTERN
said() { grep -q -e "$1" /mnt/said || { echo "no output matches $1:"; cat /mnt/said; exit 1; }; }

# await COMMAND...: until it succeeds
await() {
	for try in $(seq 600); do ! "$@" || return 0; sleep 0.1; done
	echo "never: $*"; exit 1
}

is_mounted() { grep -q " $1 " /proc/self/mountinfo; }
not() { ! "$@" || { echo "it must not be: $*"; exit 1; }; }
set -x
`
