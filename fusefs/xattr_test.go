package fusefs

import (
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// attributed is a source with extended attributes.
type attributed struct {
	Source
	attrs []XAttr
}

func (a attributed) XAttrs() []XAttr { return a.attrs }

var someXAttrs = []XAttr{
	{"user.spectrum.sha256", "sha256:" + strings.Repeat("0", 64)},
	{"user.empty", ""},
	{"user.long", strings.Repeat("x", 60000)},
	{"user.\xff odd", "\x00\xff"},
}

func xattrFixture(t testing.TB) *fixture {
	t.Helper()
	f := textFile("d/f", "text")
	f.Source = attributed{f.Source, someXAttrs}
	volumeSet := newFakeVolumeSet()
	volumeSet.put("v", holding(f))
	return withVolumeSet(t, volumeSet, []File{f, textFile("plain", "")}, []File{f, {Path: "live", Mode: 0o444, Source: Live(func() []byte { return []byte("x") })}})
}

// TestXAttrs: the size when there is no room, exactly what fits, and nothing in
// a buffer that is too small.
func TestXAttrs(t *testing.T) {
	x := xattrFixture(t)
	var list string
	for _, a := range someXAttrs {
		list += a.Name + "\x00"
	}
	for _, path := range [][]string{{"d", "f"}, {"v", "d", "f"}, {ControlName, "d", "f"}} {
		h := &fuse.InHeader{NodeId: x.walk(t, path...).NodeId}
		get := func(name string) func(dest []byte) (uint32, fuse.Status) {
			return func(dest []byte) (uint32, fuse.Status) { return x.GetXAttr(nil, h, name, dest) }
		}
		checkSizes(t, "the list", list, func(dest []byte) (uint32, fuse.Status) { return x.ListXAttr(nil, h, dest) })
		for _, a := range someXAttrs {
			checkSizes(t, a.Name, a.Value, get(a.Name))
		}
		for name, want := range map[string]fuse.Status{
			"user.nothing": fuse.Status(syscall.ENODATA), "user.": fuse.Status(syscall.ENODATA), "user.long ": fuse.Status(syscall.ENODATA), "USER.long": fuse.ENOTSUP,
			"user": fuse.ENOTSUP, "": fuse.ENOTSUP, "security.capability": fuse.ENOTSUP, "system.posix_acl_access": fuse.ENOTSUP, "trusted.x": fuse.ENOTSUP,
		} {
			for _, size := range []int{0, 100} {
				if n, st := get(name)(make([]byte, size)); n != 0 || st != want {
					t.Errorf("%q: %d, %v, want %v", name, n, st, want)
				}
			}
		}
	}
}

// checkSizes calls get with buffers of all relevant sizes.
func checkSizes(t *testing.T, what, want string, get func(dest []byte) (uint32, fuse.Status)) {
	t.Helper()
	for _, size := range []int{0, 1, len(want) - 1, len(want), len(want) + 1, len(want) + 1000} {
		if size < 0 {
			continue
		}
		dest := []byte(strings.Repeat("c", size))
		n, st := get(dest)
		switch {
		case int(n) != len(want):
			t.Errorf("%s with room for %d: %d bytes", what, size, n)
		case size < len(want) && (st != fuse.ERANGE || strings.Trim(string(dest), "c") != ""):
			t.Errorf("%s with room for %d: %v", what, size, st)
		case size >= len(want) && (st != fuse.OK || string(dest[:n]) != want || strings.Trim(string(dest[n:]), "c") != ""):
			t.Errorf("%s with room for %d: %v", what, size, st)
		}
	}
}

// TestXAttrsOfOthers: what is not a file of a tree has none.
func TestXAttrsOfOthers(t *testing.T) {
	x := xattrFixture(t)
	nodes := []uint64{1, latestNumber}
	for _, path := range [][]string{{"d"}, {"plain"}, {"v"}, {"v", "d"}, {ControlName}, {ControlName, "live"}} {
		nodes = append(nodes, x.walk(t, path...).NodeId)
	}
	for _, node := range nodes {
		h := &fuse.InHeader{NodeId: node}
		if n, st := x.ListXAttr(nil, h, nil); n != 0 || st != fuse.OK {
			t.Errorf("node %x lists %d bytes, %v", node, n, st)
		}
		if n, st := x.GetXAttr(nil, h, "user.spectrum.sha256", nil); n != 0 || st != fuse.Status(syscall.ENODATA) {
			t.Errorf("node %x: %d, %v", node, n, st)
		}
		if _, st := x.GetXAttr(nil, h, "security.selinux", nil); st != fuse.ENOTSUP {
			t.Errorf("node %x: %v", node, st)
		}
	}
	for _, node := range []uint64{0, 99, 1 << 40, liveBit, liveBit | 99} {
		if _, st := x.ListXAttr(nil, &fuse.InHeader{NodeId: node}, nil); st != estale {
			t.Errorf("node %x: %v", node, st)
		}
	}
}
