package statecheck

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// Mend returns the command that makes a failed access to a path of the state directory possible:
// for a file that this user may not open, for an entry of the wrong type, and for the directory of
// prepared savepoints, which is empty unless a commit is in progress. "" if none is known. What is
// moved aside is kept.
func Mend(state string, err error) string {
	if busy, is := errors.AsType[*staging.BusyError](err); is {
		return mendLock(state, busy)
	}
	access, is := errors.AsType[*pathsafe.AccessError](err)
	if !is || machine.IsFault(access) {
		return ""
	}
	path := filepath.Join(access.Dir, access.Name)
	if path == state || !pathsafe.IsWithin(path, state) {
		return ""
	}
	switch {
	case errors.Is(access, fs.ErrPermission):
		return Unlock(access.Dir, path)
	case errors.Is(access, unix.ENOTDIR), errors.Is(access, unix.EISDIR), errors.Is(access, pathsafe.ErrSymlink), errors.Is(access, pathsafe.ErrNotRegular):
		return aside(state, path)
	case errors.Is(access, fs.ErrNotExist) && access.Name == savepoint.Prepared:
		return "mkdir -m 700 " + words.Shell(path)
	}
	return ""
}

// mendLock returns the command after which the lock of a root can be taken, if its entry cannot be
// locked; "" if a process holds it.
func mendLock(state string, busy *staging.BusyError) string {
	access, is := errors.AsType[*pathsafe.AccessError](busy)
	if !is || access.Name != staging.LockName {
		return ""
	}
	path := filepath.Join(access.Dir, access.Name)
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return ""
	}
	move := aside(state, path)
	if int(st.Uid) != os.Geteuid() {
		return move
	}
	switch unlock := Unlock(path); st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return cmp.Or(unlock, move)
	case unix.S_IFDIR: // one that this user may not write in cannot be moved
		if unlock != "" {
			return unlock + " && " + move
		}
	}
	return move
}

// BarRemedy returns how to remove a mark of a halt that this process cannot remove; "" for any other error.
func BarRemedy(err error) string {
	stays, is := errors.AsType[*statedir.BarError](err)
	if !is {
		return ""
	}
	return fmt.Sprintf("move it away, which ends the halt: mv %s %s", words.Shell(stays.Path), words.Shell(stays.Path+".bad"))
}

// LogRemedy is the next step for an audit log that is damaged.
const LogRemedy = "\"spectrum audit show\" prints the events before that; the last of them may be the one that was changed. Check which users can write to the state directory, and keep the log unchanged; if no backup has it, \"spectrum recover RESTORE_ROOT\" shows how to continue without it"

// HostKeyHint is the next step where the host's key cannot be used.
func HostKeyHint(state *statedir.Dir, err error) string {
	if unlock := Unlock(state.HostKey()); errors.Is(err, fs.ErrPermission) && unlock != "" {
		return unlock
	}
	return "restore the host's key from a backup; otherwise " + Aside(state, state.HostKey()) + ": a new key is made, which does not verify the existing savepoints"
}

// Unlock is the command after which this user may open, and change, the first of some paths that he
// may not; "" where that is none.
func Unlock(paths ...string) string {
	for _, path := range paths {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			continue
		}
		need := uint32(0o600)
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			need = 0o700
		}
		switch {
		case int(st.Uid) != os.Geteuid():
			return fmt.Sprintf("sudo chown -R %d %s", os.Geteuid(), words.Shell(path))
		case st.Mode&need != need:
			return "chmod u+rwX " + words.Shell(path)
		}
	}
	return ""
}

// Aside is the command that moves a damaged record out of its store, and keeps it.
func Aside(state *statedir.Dir, path string) string { return aside(state.Path(), path) }

// aside takes a name that is free: nothing is replaced by what is moved away.
func aside(state, path string) string {
	to := filepath.Join(state, "damaged-"+filepath.Base(path))
	for n, first := 2, to; ; n++ {
		if _, err := os.Lstat(to); err != nil {
			return fmt.Sprintf("mv %s %s", words.Shell(path), words.Shell(to))
		}
		to = fmt.Sprintf("%s-%d", first, n)
	}
}
