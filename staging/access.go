package staging

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unique"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// access is the mode, group and access lists of an entry. Few values serve many files, so each
// is stored once. The zero access is unknown.
type access = unique.Handle[pathsafe.Access]

func accessOf(a pathsafe.Access) access { return unique.Make(a) }

var (
	// errOpenToOthers reports a directory of this attempt that other users can enter.
	errOpenToOthers = machine.Disturbed("the file system does not keep the modes of directories, so others could reach what is staged")
	// errAccess reports an entry whose metadata differs from what was set.
	errAccess = machine.Disturbed("its mode, owner, group, access list or extended attributes were changed")
)

// accessText returns an access in its journal form, "" if it is unknown.
func accessText(a access) string {
	if a == (access{}) {
		return ""
	}
	v := a.Value()
	text := fmt.Sprintf("%04o %d", v.Perm, v.GID)
	if v.ACL != "" || v.Default != "" {
		text += fmt.Sprintf(" %x %x", v.ACL, v.Default)
	}
	return text
}

// parseAccess is the inverse of accessText. Text that it cannot parse yields the unknown
// access.
func parseAccess(text string) access {
	fields := strings.Split(text, " ")
	if len(fields) != 2 && len(fields) != 4 {
		return access{}
	}
	perm, permErr := strconv.ParseUint(fields[0], 8, 12)
	gid, gidErr := strconv.ParseUint(fields[1], 10, 32)
	v := pathsafe.Access{Perm: uint32(perm), GID: uint32(gid)}
	if len(fields) == 4 {
		acl, aclErr := hex.DecodeString(fields[2])
		def, defErr := hex.DecodeString(fields[3])
		permErr = errors.Join(permErr, aclErr, defErr)
		v.ACL, v.Default = string(acl), string(def)
	}
	if permErr != nil || gidErr != nil {
		return access{}
	}
	return accessOf(v)
}

// keeps requires an entry to have the access that was set. For an entry of an older journal
// the access is unknown, and everything passes.
func (m *created) keeps(now access) error {
	if m.access != (access{}) && m.access != now {
		return fmt.Errorf("%w: it has %q, not %q", errAccess, accessText(now), accessText(m.access))
	}
	return nil
}
