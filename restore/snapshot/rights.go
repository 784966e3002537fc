package snapshot

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// An Owner is another user that owns entries.
type Owner struct {
	UID   uint32
	Names int    // how many entries
	First string // the path of the first
}

// OwnersOf returns the users other than this one that own the entries, in the order of their IDs.
func OwnersOf(entries []Entry) []Owner {
	by := map[uint32]*Owner{}
	for _, e := range entries {
		if e.Type == Absent || !e.Type.Kept() || int(e.UID) == os.Geteuid() {
			continue
		}
		if by[e.UID] == nil {
			by[e.UID] = &Owner{UID: e.UID, First: e.Path}
		}
		by[e.UID].Names++
	}
	var all []Owner
	for _, o := range by {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Owner) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

// A Program is a file that runs with rights that its caller may not have.
type Program struct {
	Path   string
	Rights string // of whom, on one line
}

// ProgramsOf returns the files that run with the rights of their owner or group, or with capabilities, in the
// order of the entries.
func ProgramsOf(entries []Entry) (all []Program) {
	for _, e := range entries {
		if rights := e.rights(); rights != "" {
			all = append(all, Program{e.Path, rights})
		}
	}
	return all
}

// The set-id bits of a mode.
const (
	setUID = 0o4000
	setGID = 0o2000
)

func (e Entry) rights() string {
	if e.Type != File {
		return ""
	}
	var all []string
	if e.Mode&setUID != 0 {
		all = append(all, fmt.Sprintf("of user %d (set-user-ID bit)", e.UID))
	}
	if e.Mode&setGID != 0 {
		all = append(all, fmt.Sprintf("of group %d (set-group-ID bit)", e.GID))
	}
	if slices.ContainsFunc(e.xattrs, func(x pathsafe.Xattr) bool { return x.Name == "security.capability" }) {
		all = append(all, "of its capabilities (security.capability)")
	}
	return strings.Join(all, " and ")
}
