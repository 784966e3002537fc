package harness

import (
	endian "encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The attributes that hold the access list of an inode, and of what is made in a directory.
const (
	AccessList  = "system.posix_acl_access"
	DefaultList = "system.posix_acl_default"
)

var listTags = []struct {
	tag   uint16
	named bool
	name  string
}{{1, false, "u"}, {2, true, "u"}, {4, false, "g"}, {8, true, "g"}, {16, false, "m"}, {32, false, "o"}}

// SetList sets an access list like "u::rwx u:7:r-x g::--- m::rwx o::---", in the kernel's order.
// Where the file system has none the test is skipped.
func SetList(t testing.TB, path, attribute, text string) {
	t.Helper()
	raw := endian.LittleEndian.AppendUint32(nil, 2)
	for entry := range strings.FieldsSeq(text) {
		part := strings.Split(entry, ":")
		id, err := strconv.ParseUint(part[1], 10, 32)
		if err != nil {
			id = 1<<32 - 1
		}
		for _, kind := range listTags {
			if kind.name == part[0] && kind.named == (err == nil) {
				raw = endian.LittleEndian.AppendUint16(raw, kind.tag)
			}
		}
		perm := uint16(0)
		for i, letter := range "rwx" {
			if rune(part[2][i]) == letter {
				perm |= 4 >> i
			}
		}
		raw = endian.LittleEndian.AppendUint16(raw, perm)
		raw = endian.LittleEndian.AppendUint32(raw, uint32(id))
	}
	err := unix.Setxattr(path, attribute, raw, 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("the file system has no access lists")
	}
	Must(t, err)
}

// List is the access list of a path, as SetList takes it, or its permission bits where it has
// none.
func List(t testing.TB, path string) string {
	t.Helper()
	raw := make([]byte, 1<<10)
	n, err := unix.Getxattr(path, AccessList, raw)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		var st unix.Stat_t
		Must(t, unix.Lstat(path, &st))
		return fmt.Sprintf("%04o", st.Mode&0o7777)
	}
	Must(t, err)
	var entries []string
	for e := raw[4:n]; len(e) >= 8; e = e[8:] {
		for _, kind := range listTags {
			if kind.tag != endian.LittleEndian.Uint16(e) {
				continue
			}
			id, perm := "", []byte("---")
			if kind.named {
				id = strconv.FormatUint(uint64(endian.LittleEndian.Uint32(e[4:])), 10)
			}
			for i, letter := range []byte("rwx") {
				if endian.LittleEndian.Uint16(e[2:])&(4>>i) != 0 {
					perm[i] = letter
				}
			}
			entries = append(entries, fmt.Sprintf("%s:%s:%s", kind.name, id, perm))
		}
	}
	return strings.Join(entries, " ")
}
