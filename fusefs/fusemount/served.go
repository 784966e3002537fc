package fusemount

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The device number of /dev/fuse, wherever that is.
const fuseMajor, fuseMinor = 10, 229

// isServed reports whether a process that this user may inspect has a FUSE connection open,
// identified by the number of its file system; if the kernel does not distinguish connections,
// whether one has any. No server gets a request.
func isServed(minor int) bool {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev_major != fuseMajor || st.Rdev_minor != fuseMinor {
			continue
		}
		if number, known := connectionOf(link); !known || number == minor {
			return true
		}
	}
	return false
}

// connectionOf returns the number in the fdinfo of a descriptor of the FUSE device, if the kernel
// is new enough.
func connectionOf(link string) (number int, known bool) {
	dir, fd := filepath.Split(link)
	info, err := os.ReadFile(fmt.Sprintf("%s/fdinfo/%s", filepath.Dir(filepath.Clean(dir)), fd))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "fuse_connection:"); ok {
			number, err := strconv.Atoi(strings.TrimSpace(rest))
			return number, err == nil
		}
	}
	return 0, false
}
