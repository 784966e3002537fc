package fusemount

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// A Holder is a process that keeps a view busy, or a mount inside of it.
type Holder struct {
	PID     int    // 0 for a mount
	Command string // as the process names itself: not to be trusted, quote it
	How     string // "cwd", "root", "fd", "map" or "mount"
	Path    string // of the file or directory; of the first, if there are several
}

func (h Holder) String() string {
	if h.PID == 0 {
		return fmt.Sprintf("a mount on %q", h.Path)
	}
	return fmt.Sprintf("process %d %q (%s %q)", h.PID, h.Command, h.How, h.Path)
}

// Holders lists the processes that keep the mount on a mount point busy, by process number.
// Processes that this user may not inspect are left out; without holders, or without a mount
// point, the list is empty.
func Holders(mountpoint string) []Holder {
	p, err := openHeld(mountpoint)
	if err != nil {
		return nil
	}
	isMountpoint := p.isMountpoint
	p.close() // or we would find ourselves
	if !isMountpoint {
		return nil
	}
	return holdersOf(idOf(p.mount), -1)
}

// holdersOf looks by device number and not by path: a lazily unmounted file
// system has no path any more, and paths differ between mount namespaces. One
// descriptor of this process does not count.
func holdersOf(m mountID, but int) []Holder {
	holders := mountsIn(m)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			holders = append(holders, holdsOf(pid, m, but)...)
		}
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return a.PID - b.PID })
	return holders
}

// mountsIn lists the mounts on directories of the mount.
func mountsIn(m mountID) []Holder {
	found, _ := mountinfo.GetMounts(func(x *mountinfo.Info) (skip, stop bool) {
		return x.Parent != m.id || x.ID == m.id, false
	})
	var holders []Holder
	for _, x := range found {
		holders = append(holders, Holder{How: "mount", Path: x.Mountpoint})
	}
	return holders
}

// holdsOf lists the holds of one process on the file system, each once.
func holdsOf(pid int, m mountID, but int) []Holder {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	name, _ := os.ReadFile(filepath.Join(dir, "comm"))
	var holders []Holder
	add := func(how, path string) {
		holders = append(holders, Holder{pid, strings.TrimSuffix(string(name), "\n"), how, path})
	}
	for _, how := range []string{"cwd", "root"} {
		if link := filepath.Join(dir, how); isOn(link, m) {
			add(how, target(link))
		}
	}
	fds, _ := os.ReadDir(filepath.Join(dir, "fd"))
	for _, fd := range fds {
		if pid == os.Getpid() && fd.Name() == strconv.Itoa(but) {
			continue
		}
		if link := filepath.Join(dir, "fd", fd.Name()); isOn(link, m) {
			add("fd", target(link))
			break
		}
	}
	if path, ok := mapped(filepath.Join(dir, "maps"), m); ok {
		add("map", path)
	}
	return holders
}

// isOn reports whether a link of /proc leads to the file system. A statx without attributes
// returns the device number without a request to the file system, so it also works for one
// that is dead, hangs, or belongs to another user.
func isOn(link string, m mountID) bool {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, 0, &st); err != nil {
		return false
	}
	return int(st.Dev_major) == m.major && int(st.Dev_minor) == m.minor
}

func target(link string) string {
	path, _ := os.Readlink(link)
	return path
}

// mapped finds the first file of the file system that is mapped into memory.
func mapped(maps string, m mountID) (path string, ok bool) {
	f, err := os.Open(maps)
	if err != nil {
		return "", false
	}
	defer f.Close()
	device := fmt.Sprintf("%02x:%02x", m.major, m.minor)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// address perms offset device inode path, the path with its spaces
		if fields := strings.Fields(lines.Text()); len(fields) >= 6 && fields[3] == device {
			_, path, _ = strings.Cut(lines.Text(), fields[5])
			return fields[5] + path, true
		}
	}
	return "", false
}
