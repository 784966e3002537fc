package machine

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// LeaseText names the process that holds a lease on a file, and its user, as far as /proc has them.
func LeaseText(dev, ino uint64) string {
	pid := leaseHolder(dev, ino)
	if pid == 0 {
		return "\"grep LEASE /proc/locks\" lists leases"
	}
	dir := fmt.Sprintf("/proc/%d", pid)
	text := fmt.Sprintf("process %d", pid)
	if name, err := os.ReadFile(dir + "/comm"); err == nil {
		text += fmt.Sprintf(" (%q)", strings.TrimSpace(string(name)))
	}
	if st, err := os.Stat(dir); err == nil {
		if owner, ok := st.Sys().(*syscall.Stat_t); ok {
			text += " of " + UserText(int(owner.Uid))
		}
	}
	return text
}

// leaseHolder returns the process that holds a lease, by /proc/locks, or 0 if there is none. The
// lines are like
//
//	1: LEASE  BREAKING  READ  4711 fd:00:131074 0 EOF
//
// Some file systems (btrfs) show another device than stat returns; then only the inode number is
// compared.
func leaseHolder(dev, ino uint64) (found int) {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	exact := fmt.Sprintf("%02x:%02x:%d", unix.Major(dev), unix.Minor(dev), ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 6 || field[1] != "LEASE" || !strings.HasSuffix(field[5], ":"+strconv.FormatUint(ino, 10)) {
			continue
		}
		pid, err := strconv.Atoi(field[4])
		if err == nil && (field[5] == exact || found == 0) {
			found = pid
		}
	}
	return found
}
