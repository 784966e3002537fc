package machine

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The capabilities with which root reads, moves and gives away files of all users.
const superRights = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER

// IsSuper reports whether this process is root with the rights over the files of other users. Root of
// a container may lack them.
var IsSuper = sync.OnceValue(func() bool {
	if os.Geteuid() != 0 {
		return false
	}
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	return err != nil || data[0].Effective&superRights == superRights
})

// KnowsOwner reports whether a user and a group exist in this user namespace, so that they can own
// files.
func KnowsOwner(uid, gid int) bool { return users().has(uid) && groups().has(gid) }

// KnowsAllOwners reports whether this user namespace has all users and groups.
func KnowsAllOwners() bool { return users().all && groups().all }

var (
	users  = sync.OnceValue(func() idMap { return readIDMap("/proc/self/uid_map") })
	groups = sync.OnceValue(func() idMap { return readIDMap("/proc/self/gid_map") })
)

// An idMap is which ids a user namespace has.
type idMap struct {
	all    bool
	ranges [][2]int // the first one, and how many
}

// readIDMap reads an ID map of procfs. If it cannot be read, all IDs count as mapped.
func readIDMap(path string) (m idMap) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return idMap{all: true}
	}
	return parseIDMap(string(raw))
}

// allIDs is the number of all IDs.
const allIDs = 1<<32 - 1

func parseIDMap(text string) (m idMap) {
	for line := range strings.Lines(text) {
		var r [2]int
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return idMap{all: true}
		}
		for i, field := range []string{fields[0], fields[2]} {
			for _, digit := range field {
				r[i] = 10*r[i] + int(digit-'0')
			}
		}
		m.ranges = append(m.ranges, r)
		m.all = m.all || r == [2]int{0, allIDs}
	}
	return m
}

func (m idMap) has(id int) bool {
	for _, r := range m.ranges {
		if r[0] <= id && id-r[0] < r[1] {
			return true
		}
	}
	return m.all
}
