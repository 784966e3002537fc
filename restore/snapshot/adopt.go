package snapshot

import (
	"os"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Adopted returns a snapshot in which the entries that needsRoot reports belong to this user,
// and their paths. They lose what was meant for their former owner and group: set-id bits, group
// permissions that other users do not have, and attributes outside user. It has the ID of the
// one that it is made of, and is in no store.
func (s *Snapshot) Adopted(needsRoot func(Entry) bool) (*Snapshot, []string) {
	adopted := &Snapshot{header: s.Header(), entries: slices.Clone(s.entries)}
	var paths []string
	for i := range adopted.entries {
		e := &adopted.entries[i]
		if !needsRoot(*e) {
			continue
		}
		e.UID, e.GID = uint32(os.Geteuid()), uint32(os.Getegid()) //nolint:gosec // IDs are not negative
		forOthers := e.Mode & 0o007
		e.Mode = e.Mode&0o1707 | e.Mode&0o070&(forOthers<<3)
		e.xattrs = slices.DeleteFunc(slices.Clone(e.xattrs), func(x pathsafe.Xattr) bool { return !strings.HasPrefix(x.Name, "user.") })
		paths = append(paths, e.Path)
	}
	return adopted, paths
}
