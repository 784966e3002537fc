package staging

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// BusyError reports that another process holds the lock of a root (it unwraps to
// pathsafe.ErrLocked), or that the entry at its name cannot be locked.
type BusyError struct {
	PID     int    // 0 where it could not be found out
	Command string // the name of that process, "" where it could not be found out
	Err     error
}

// Error names the process that holds the lock.
func (e *BusyError) Error() string {
	if !errors.Is(e.Err, pathsafe.ErrLocked) {
		return fmt.Sprintf("this root cannot be locked: %v", e.Err)
	}
	if e.PID == 0 {
		return fmt.Sprintf("another commit or recovery is running in this root: %v", e.Err)
	}
	return fmt.Sprintf("process %d (%q) is at work in this root: %v", e.PID, e.Command, e.Err)
}

// Unwrap returns the error of the lock.
func (e *BusyError) Unwrap() error { return e.Err }

// busy finds out which process holds the lock of the root d, or that on its directory name.
func busy(d dir, name string, err error) error {
	e := &BusyError{Err: err}
	st, statErr := d.H.Lstat(name)
	if statErr != nil {
		return e
	}
	pid := holder(st.ID.Dev, st.ID.Ino)
	if now, statErr := d.H.Lstat(name); pid == 0 || statErr != nil || now.ID != st.ID {
		return e // released since, and its inode may have been reused by another lock
	}
	e.PID = pid
	command, readErr := os.ReadFile(fmt.Sprintf("/proc/%d/comm", e.PID))
	if readErr == nil {
		e.Command = strings.TrimSpace(string(command))
	}
	return e
}

// holder looks a lock up in /proc/locks. Its lines are like
//
//	1: FLOCK  ADVISORY  WRITE 4711 fd:00:131074 0 EOF
//
// where some file systems (btrfs) show another device than stat does: then the
// inode number has to do.
func holder(dev, ino uint64) int {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	found := 0
	exact := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), ino)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "FLOCK" || !strings.HasSuffix(field[5], ":"+strconv.FormatUint(ino, 10)) {
			continue
		}
		pid, err := strconv.Atoi(field[4])
		if err == nil && field[5] == exact {
			return pid
		}
		if err == nil && found == 0 {
			found = pid
		}
	}
	return found
}
