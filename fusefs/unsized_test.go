package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// unsized is an Unsized source of a content, whose facts come from elsewhere.
type unsized struct {
	facts     atomic.Pointer[Facts]
	err       error
	content   Content
	openErr   error
	settleErr error
	settling  func(ctx context.Context) error // nil: at once
	settles   atomic.Int32
}

func (u *unsized) Facts() (Facts, error) {
	if u.err != nil {
		return Facts{}, u.err
	}
	return *u.facts.Load(), nil
}

// Settle settles the size that the content has.
func (u *unsized) Settle(ctx context.Context) error {
	u.settles.Add(1)
	if u.settling != nil {
		if err := u.settling(ctx); err != nil {
			return err
		}
	}
	if u.err != nil || u.settleErr != nil {
		return errors.Join(u.err, u.settleErr)
	}
	facts := *u.facts.Load()
	if sized, is := u.content.(sizedContent); is {
		facts.Size = sized.size
	}
	facts.Settled = true
	u.facts.Store(&facts)
	return nil
}
func (u *unsized) Open() (Content, error) { return u.content, u.openErr }
func (u *unsized) XAttrs() []XAttr        { return nil }

// unsizedOf returns an unsized file with a content, whose source has another size.
func unsizedOf(content string, size int64) *unsized {
	u := &unsized{content: sizedContent{fakeContent{bytes.NewReader([]byte(content)).ReadAt, nothing}, int64(len(content))}}
	u.facts.Store(&Facts{Size: size, Mode: 0o640, ModTime: time.Unix(7, 8)})
	return u
}

// sizedContent is a content with a size.
type sizedContent struct {
	fakeContent
	size int64
}

func (s sizedContent) Size() int64 { return s.size }

// TestUnsized: an unsized file has the facts of its source at each lookup, and the kernel keeps none
// of them until they are settled. That is when it is opened: the opening is repeated then.
func TestUnsized(t *testing.T) {
	u := unsizedOf("0123456789", 5)
	x := newFixture(t, File{Path: "a", Size: 7, Mode: 0o777, Source: u})
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
	if attr.Size != 5 || attr.Mode != syscall.S_IFREG|0o440 || attr.Mtime != 7 || attr.Mtimensec != 8 {
		t.Errorf("%+v", attr.Attr)
	}
	if attr.AttrValid != 0 || attr.AttrValidNsec != 0 || entry.AttrValid != 0 || entry.EntryValid < 1000 {
		t.Errorf("valid for %d, %d, the name for %d s", attr.AttrValid, entry.AttrValid, entry.EntryValid)
	}
	for i, want := range []fuse.Status{estale, fuse.OK, fuse.OK} {
		if st := x.open(nil, entry.NodeId); st != want {
			t.Errorf("opening %d: %v", i, st)
		}
	}
	if _, attr := look(); attr.Size != 10 || attr.AttrValid < 1000 {
		t.Errorf("settled: %+v for %d s", attr.Attr, attr.AttrValid)
	}
	for off, want := range map[uint64]string{0: "0123456789", 4: "456789", 10: "", 98: ""} {
		if got, st := x.read(nil, entry.NodeId, off, 4096); st != fuse.OK || string(got) != want {
			t.Errorf("at %d: %q, %v", off, got, st)
		}
	}
	if n := u.settles.Load(); n != 1 || len(x.tampers) > 0 {
		t.Errorf("settled %d times, findings: %q", n, x.tampers)
	}
}

// open opens as the kernel does.
func (x *fixture) open(cancel <-chan struct{}, node uint64) fuse.Status {
	return x.Open(cancel, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: node}}, &fuse.OpenOut{})
}

// TestUnsizedIsOpened: a kernel that needs no answer to OPEN gets one if there are unsized files, now
// or on a volume set.
func TestUnsizedIsOpened(t *testing.T) {
	file := File{Path: "b", Source: SourceFunc(noContent)}
	for name, c := range map[string]struct {
		files     []File
		volumeSet bool
		want      bool
	}{
		"sized": {[]File{file}, false, true}, "unsized": {[]File{file, {Path: "a", Source: unsizedOf("", 0)}}, false, false}, "on a volume set": {[]File{file}, true, false},
	} {
		tree, err := NewTree(slices.Values(c.files), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newFileSystem(tree, Options{Unsized: c.volumeSet, Log: slog.New(slog.DiscardHandler)})
		if s.skipOpen = s.maySkipOpen(fuse.CAP_NO_OPEN_SUPPORT); s.skipOpen != c.want {
			t.Errorf("%s: %v", name, s.skipOpen)
		}
	}
}

// TestUnsizedFails: a source that cannot be looked at, or has another content, or no size, is EIO,
// and a finding: at the opening, and so before a byte is read.
func TestUnsizedFails(t *testing.T) {
	data := []byte("0123456789")
	with := func(u *unsized) *unsized { u.facts.Store(&Facts{Size: 10, Mode: 0o400}); return u }
	gone := &unsized{err: fs.ErrNotExist}
	other := with(&unsized{content: sizedContent{fakeContent{bytes.NewReader(data).ReadAt, nothing}, 10}, settleErr: errors.New("not the signed file")})
	panics := with(&unsized{settling: func(context.Context) error { panic("odd") }})
	endless := with(&unsized{content: fakeContent{bytes.NewReader(data).ReadAt, nothing}})
	short := with(&unsized{content: sizedContent{fakeContent{bytes.NewReader(data).ReadAt, nothing}, 20}})
	x := newFixture(t, File{Path: "endless", Source: endless}, File{Path: "gone", Source: gone}, File{Path: "other", Source: other}, File{Path: "panics", Source: panics}, File{Path: "short", Source: short})
	for range 3 {
		if st := x.Lookup(nil, &fuse.InHeader{NodeId: 1}, "gone", &fuse.EntryOut{}); st != fuse.EIO {
			t.Error(st)
		}
		if st := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: 3}}, &fuse.AttrOut{}); st != fuse.EIO {
			t.Error(st)
		}
	}
	for node := uint64(2); node <= 6; node++ {
		wrong := node == 3 || node == 4 || node == 5
		if st := x.open(nil, node); wrong && st != fuse.EIO || !wrong && st != estale {
			t.Errorf("node %d is opened: %v", node, st)
		}
		if got, st := x.read(nil, node, 0, 100); st != fuse.EIO || len(got) > 0 {
			t.Errorf("node %d: %q, %v", node, got, st)
		}
	}
	slices.Sort(x.tampers)
	if got := slices.Compact(x.tampers); !slices.Equal(got, []string{"endless", "gone", "other", "panics", "short"}) {
		t.Errorf("findings: %q", got)
	}
}

// TestSettleIsShared: readers of a file that is being checked wait for one check, others do not wait
// behind it, and one that is interrupted leaves the check to the others.
func TestSettleIsShared(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	slow := unsizedOf("0123456789", 10)
	slow.settling = func(ctx context.Context) error {
		close(begun)
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	x := newFixture(t, File{Path: "a", Source: slow}, File{Path: "b", Size: 3, Source: SourceFunc(inMemory([]byte("abc")))})
	answers := make(chan fuse.Status, 50)
	for range cap(answers) {
		go func() { answers <- x.open(nil, 2) }()
	}
	<-begun
	interrupted := make(chan struct{})
	close(interrupted)
	if st := x.open(interrupted, 2); st != fuse.EINTR {
		t.Error(st)
	}
	if got, st := x.read(nil, 3, 0, 10); st != fuse.OK || string(got) != "abc" {
		t.Errorf("another file: %q, %v", got, st)
	}
	close(goOn)
	for range cap(answers) {
		if st := <-answers; st != estale && st != fuse.OK {
			t.Error(st)
		}
	}
	if n := slow.settles.Load(); n != 1 || len(x.tampers) > 0 {
		t.Errorf("checked %d times; findings: %q", n, x.tampers)
	}
}

// TestSettleEnds: a check ends when its only reader was interrupted, and with the view; that is not
// a finding, and the next reader begins anew.
func TestSettleEnds(t *testing.T) {
	slow := unsizedOf("0123456789", 10)
	ended := make(chan struct{}, 1)
	slow.settling = func(ctx context.Context) error {
		<-ctx.Done()
		ended <- struct{}{}
		return ctx.Err()
	}
	x := newFixture(t, File{Path: "a", Source: slow})
	interrupted := make(chan struct{})
	close(interrupted)
	for range 2 {
		if st := x.open(interrupted, 2); st != fuse.EINTR {
			t.Error(st)
		}
		<-ended
	}
	if n := slow.settles.Load(); n != 2 {
		t.Errorf("checked %d times", n)
	}
	answer := make(chan fuse.Status)
	go func() { answer <- x.open(nil, 2) }()
	eventually(t, "the third check", func() bool { return slow.settles.Load() == 3 })
	x.end()
	if st := <-answer; st != fuse.EIO {
		t.Error(st)
	}
	if len(x.tampers) > 0 {
		t.Errorf("findings: %q", x.tampers)
	}
}

// TestTooManyDirectories: a tree of more directories than real ones have is rejected before it is
// laid out.
func TestTooManyDirectories(t *testing.T) {
	var files []File
	for i := range 60 {
		files = append(files, File{Path: fmt.Sprintf("%d/%sf", i, strings.Repeat("d/", 1979)), Source: SourceFunc(noContent)})
	}
	if _, err := NewTree(slices.Values(files), nil); !errors.Is(err, ErrBadTree) || !strings.Contains(err.Error(), "100240 directories, for 60 files") {
		t.Error(err)
	}
	for i := range files { // the same in directories that they share
		files[i].Path = strings.Repeat("d/", 1980) + fmt.Sprint(i)
	}
	if _, err := NewTree(slices.Values(files), nil); err != nil {
		t.Error(err)
	}
}
