package fusefs

import (
	"bytes"
	"errors"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// unsized is an Unsized source of a content, whose facts come from elsewhere.
type unsized struct {
	facts   atomic.Pointer[Facts]
	err     error
	content Content
	openErr error
}

func (u *unsized) Facts() (Facts, error) {
	if u.err != nil {
		return Facts{}, u.err
	}
	return *u.facts.Load(), nil
}
func (u *unsized) Open() (Content, error) { return u.content, u.openErr }
func (u *unsized) XAttrs() []XAttr        { return nil }

// sizedContent is a content with a size.
type sizedContent struct {
	fakeContent
	size int64
}

func (s sizedContent) Size() int64 { return s.size }

// TestUnsized: an unsized file has the facts of its source at each lookup, for a short time until
// they are settled, and a read is bounded by the size of the content.
func TestUnsized(t *testing.T) {
	data := []byte("0123456789")
	u := &unsized{content: sizedContent{fakeContent{bytes.NewReader(data).ReadAt, nothing}, int64(len(data))}}
	u.facts.Store(&Facts{Size: 99, Mode: 0o640, ModTime: time.Unix(7, 8)})
	x := newFixture(t, File{Path: "a", Size: 5, Mode: 0o777, Source: u})
	look := func() (fuse.EntryOut, fuse.AttrOut) {
		t.Helper()
		var entry fuse.EntryOut
		var attr fuse.AttrOut
		if st := x.Lookup(nil, &fuse.InHeader{NodeId: 1}, "a", &entry); st != fuse.OK {
			t.Fatal(st)
		}
		if st := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: entry.NodeId}}, &attr); st != fuse.OK {
			t.Fatal(st)
		}
		if attr.Attr != entry.Attr {
			t.Errorf("%+v, %+v", attr.Attr, entry.Attr)
		}
		return entry, attr
	}
	entry, attr := look()
	if attr.Size != 99 || attr.Mode != syscall.S_IFREG|0o440 || attr.Mtime != 7 || attr.Mtimensec != 8 {
		t.Errorf("%+v", attr.Attr)
	}
	if attr.AttrValid != 1 || entry.AttrValid != 1 || entry.EntryValid < 1000 {
		t.Errorf("valid for %d, %d, the name for %d s", attr.AttrValid, entry.AttrValid, entry.EntryValid)
	}
	for off, want := range map[uint64]string{0: "0123456789", 4: "456789", 10: "", 98: ""} {
		if got, st := x.read(nil, entry.NodeId, off, 4096); st != fuse.OK || string(got) != want {
			t.Errorf("at %d: %q, %v", off, got, st)
		}
	}
	u.facts.Store(&Facts{Size: 10, Mode: 0o400, ModTime: time.Unix(7, 8), Settled: true})
	if _, attr := look(); attr.Size != 10 || attr.Mode != syscall.S_IFREG|0o400 || attr.AttrValid < 1000 {
		t.Errorf("settled: %+v for %d s", attr.Attr, attr.AttrValid)
	}
	if len(x.tampers) > 0 {
		t.Errorf("findings: %q", x.tampers)
	}
}

// TestUnsizedFails: a source that cannot be looked at, or opened, or has no size, is EIO, and that
// of the content is a finding.
func TestUnsizedFails(t *testing.T) {
	data := []byte("0123456789")
	gone := &unsized{err: fs.ErrNotExist, openErr: errors.New("not the signed file")}
	endless := &unsized{content: fakeContent{bytes.NewReader(data).ReadAt, nothing}}
	short := &unsized{content: sizedContent{fakeContent{bytes.NewReader(data).ReadAt, nothing}, 20}}
	x := newFixture(t, File{Path: "endless", Source: endless}, File{Path: "gone", Source: gone}, File{Path: "short", Source: short})
	if st := x.Lookup(nil, &fuse.InHeader{NodeId: 1}, "gone", &fuse.EntryOut{}); st != fuse.EIO {
		t.Error(st)
	}
	for node := uint64(2); node <= 4; node++ {
		if st := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: 3}}, &fuse.AttrOut{}); st != fuse.EIO {
			t.Error(st)
		}
		if got, st := x.read(nil, node, 0, 100); st != fuse.EIO || len(got) > 0 {
			t.Errorf("node %d: %q, %v", node, got, st)
		}
	}
	if len(x.tampers) != 3 {
		t.Errorf("findings: %q", x.tampers)
	}
}
