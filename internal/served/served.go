// Package served determines which user serves a file system (FUSE). It queries only the kernel: the
// server of another user may answer a request with anything, or never, and has power over the
// process that sends it.
package served

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// ErrForeign means that another user serves the file system. The server may answer anything or
// block forever, so no request is sent to it.
var ErrForeign = errors.New("another user (a FUSE server) serves that file system")

// ErrNoProc is not an errno: "no such file" would be read as a missing source.
var ErrNoProc = errors.New("no procfs is mounted at /proc")

// A ForeignError is an [ErrForeign] that names the serving user, by the mount table.
type ForeignError struct{ UserID int } // -1 if the mount table does not have it

func (e *ForeignError) Error() string {
	if e.UserID < 0 {
		return ErrForeign.Error()
	}
	return fmt.Sprintf("another user (user %d) serves the file system there", e.UserID)
}

// Is makes it an [ErrForeign].
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

// IsFUSE reports whether a program of this machine serves the mount.
func IsFUSE(m *mountinfo.Info) bool {
	return m.FSType == "fuse" || m.FSType == "fuseblk" || strings.HasPrefix(m.FSType, "fuse.")
}

// By returns the user who mounted a FUSE file system, by the mount table, or -1. A security module
// may add entries before the kernel's, so the last one is used.
func By(m *mountinfo.Info) int {
	options := strings.Split(m.VFSOptions, ",")
	for _, option := range slices.Backward(options) {
		if value, ok := strings.CutPrefix(option, "user_id="); ok {
			if uid, err := strconv.ParseUint(value, 10, 32); err == nil {
				return int(uid)
			}
			return -1
		}
	}
	return -1
}

// IsOwn reports whether this user serves the mount.
func IsOwn(m *mountinfo.Info) bool { return By(m) == os.Geteuid() }

// IsForeign reports whether neither this user nor root serves the mount.
func IsForeign(m *mountinfo.Info) bool { return IsFUSE(m) && !IsOwn(m) && By(m) != 0 }

// Check returns a [*ForeignError] if another user serves the file system of a descriptor. O_PATH is
// sufficient.
func Check(fd int) error {
	unique := uniqueID(fd)
	if _, ok := passed.Load(unique); ok {
		return nil
	}
	id, err := MountID(fd)
	if err != nil {
		return err
	}
	m, err := Numbered(id)
	if err != nil {
		return err
	}
	if IsForeign(m) {
		return &ForeignError{By(m)}
	}
	if unique != 0 {
		passed.Store(unique, true)
	}
	return nil
}

// passed has the unique numbers of mounts that Check has found good: a mount keeps its server.
var passed sync.Map

// hasUnique reports whether the kernel has unique mount IDs (Linux 6.8). It queries a directory
// that no other user can serve.
var hasUnique = sync.OnceValue(func() bool {
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(root) }()
	return askUnique(root) != 0
})

// uniqueID returns the unique ID of the mount of a descriptor, which no other mount has until the
// next boot, or 0 if the kernel has none. The open descriptor keeps the mount in existence.
func uniqueID(fd int) uint64 {
	if !hasUnique() {
		return 0
	}
	return askUnique(fd)
}

// askUnique queries the kernel for the unique ID only, so that no request is sent to a server.
func askUnique(fd int) uint64 {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID_UNIQUE, &st)
	if err != nil || st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return 0
	}
	return st.Mnt_id
}

// MountID returns the number of the mount that a descriptor is in.
func MountID(fd int) (int, error) {
	info, err := os.ReadFile(filepath.Join("/proc/self/fdinfo", strconv.Itoa(fd)))
	if errors.Is(err, fs.ErrNotExist) { // the descriptor is open
		return -1, ErrNoProc
	}
	if err != nil {
		return -1, err
	}
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.Atoi(strings.TrimSpace(rest))
		}
	}
	return -1, fmt.Errorf("descriptor %d has no mount", fd)
}

// Numbered finds a mount in the table. Comparing paths would not do: mounts can be stacked
// on, or hidden beneath, each other.
func Numbered(id int) (*mountinfo.Info, error) {
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.ID != id, m.ID == id
	})
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("the mount table has no mount %d", id)
	}
	return found[0], nil
}
