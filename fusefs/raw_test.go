package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func fileMode(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	for bit, m := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if raw&bit != 0 {
			mode |= m
		}
	}
	return mode
}

// fakeContent is a Content made of a function.
type fakeContent struct {
	read  func(p []byte, off int64) (int, error)
	close func() error
}

func (f fakeContent) ReadAt(p []byte, off int64) (int, error) { return f.read(p, off) }
func (f fakeContent) Close() error                            { return f.close() }

func nothing() error { return nil }

func inMemory(data []byte) func() (Content, error) {
	return func() (Content, error) { return fakeContent{bytes.NewReader(data).ReadAt, nothing}, nil }
}

// fixture is a file system that is not mounted.
type fixture struct {
	*fileSystem
	log     bytes.Buffer
	mu      sync.Mutex
	tampers []string
}

func newFixture(t testing.TB, files ...File) *fixture {
	t.Helper()
	tree, err := NewTree(slices.Values(files), nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &fixture{}
	x.fileSystem = newFileSystem(tree, Options{
		Log:   slog.New(slog.NewTextHandler(&x.log, nil)),
		Stats: new(Stats),
		OnTamper: func(path string, _ error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.tampers = append(x.tampers, path)
		},
	})
	return x
}

// read reads as the kernel does.
func (x *fixture) read(cancel <-chan struct{}, node, off uint64, size int) ([]byte, fuse.Status) {
	in := &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: node}, Offset: off, Size: uint32(size)}
	r, st := x.Read(cancel, in, make([]byte, size))
	if st != fuse.OK {
		if r != nil {
			panic("content with an error")
		}
		return nil, st
	}
	data, st := r.Bytes(nil)
	return data, st
}

// TestReadOnlyByAbsence: what changes something is not implemented at all.
func TestReadOnlyByAbsence(t *testing.T) {
	own := reflect.TypeFor[*fileSystem]()
	standard := reflect.ValueOf(fuse.NewDefaultRawFileSystem())
	s := reflect.ValueOf(newFixture(t, File{Path: "f", Source: SourceFunc(noContent)}).fileSystem)
	for _, name := range []string{"SetAttr", "Mknod", "Mkdir", "Unlink", "Rmdir", "Rename", "Link", "Symlink",
		"SetXAttr", "RemoveXAttr", "Create", "Tmpfile", "Write", "Writev", "CopyFileRange", "Fallocate",
		"Fsync", "FsyncDir", "GetLk", "SetLk", "SetLkw", "Access", "Lseek", "Statx"} {
		if _, ok := own.MethodByName(name); !ok {
			t.Fatalf("there is no request %s", name)
		}
		m := s.MethodByName(name)
		var args []reflect.Value
		for i := range m.Type().NumIn() {
			args = append(args, reflect.Zero(m.Type().In(i)))
		}
		got, want := m.Call(args), standard.MethodByName(name).Call(args)
		status := got[len(got)-1].Interface()
		if status != want[len(want)-1].Interface() || status != fuse.ENOSYS {
			t.Errorf("%s answers %v", name, status)
		}
	}
}

// TestAnyRequest sends arbitrary requests: the right answer if they make sense, an error otherwise,
// never a panic.
func TestAnyRequest(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	x := newFixture(t, File{Path: "d/f", Size: int64(len(data)), Source: SourceFunc(inMemory(data))}, File{Path: "e", Source: SourceFunc(inMemory(nil))})
	// nodes: 1 root, 2 "d", 3 "e", 4 "d/f"
	files, dirs := map[uint64][]byte{3: nil, 4: data}, map[uint64]bool{1: true, 2: true}
	numbers := rapid.OneOf(rapid.Uint64Range(0, 6), rapid.SampledFrom([]uint64{math.MaxUint64, 1 << 32, 1<<32 + 1, 1 << 63}))
	offsets := rapid.OneOf(rapid.Uint64Range(0, 17000), rapid.Uint64(), rapid.SampledFrom([]uint64{math.MaxUint64, 1 << 63, 1<<63 - 1}))
	rapid.Check(t, func(t *rapid.T) {
		node, off := numbers.Draw(t, "node"), offsets.Draw(t, "offset")
		size := rapid.IntRange(0, 20000).Draw(t, "size")
		want, isFile := files[node]
		got, st := x.read(nil, node, off, size)
		switch {
		case isFile:
			lo := min(off, uint64(len(want)))
			hi := min(lo+uint64(size), uint64(len(want)))
			if st != fuse.OK || !bytes.Equal(got, want[lo:hi]) {
				t.Fatalf("read gives %d bytes, %v; want %d", len(got), st, hi-lo)
			}
		case dirs[node] && st != fuse.EISDIR, !dirs[node] && st != estale:
			t.Fatalf("read gives %v", st)
		}
		in := &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: node}, Offset: off}
		for name, st := range map[string]fuse.Status{
			"ReadDir":     x.ReadDir(nil, in, fuse.NewDirEntryList(make([]byte, size), off)),
			"ReadDirPlus": x.ReadDirPlus(nil, in, fuse.NewDirEntryList(make([]byte, size), off)),
			"OpenDir":     x.OpenDir(nil, &fuse.OpenIn{InHeader: in.InHeader}, &fuse.OpenOut{}),
			"Lookup":      x.Lookup(nil, &in.InHeader, rapid.String().Draw(t, "name"), &fuse.EntryOut{}),
		} {
			want := map[bool]fuse.Status{true: fuse.ENOTDIR, false: estale}[isFile]
			if dirs[node] {
				want = fuse.OK
			}
			if st != want {
				t.Fatalf("%s gives %v, want %v", name, st, want)
			}
		}
		exists := isFile || dirs[node]
		attr := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: in.InHeader}, &fuse.AttrOut{})
		_, xattr := x.GetXAttr(nil, &in.InHeader, "user.x", nil)
		_, list := x.ListXAttr(nil, &in.InHeader, nil)
		if (attr == fuse.OK) != exists || (list == fuse.OK) != exists || (xattr == fuse.Status(syscall.ENODATA)) != exists {
			t.Fatalf("getattr %v, getxattr %v, listxattr %v", attr, xattr, list)
		}
		x.Forget(node, off)
		x.Release(nil, &fuse.ReleaseIn{InHeader: in.InHeader})
		x.ReleaseDir(&fuse.ReleaseIn{InHeader: in.InHeader})
	})
	if x.log.Len() > 0 {
		t.Errorf("log: %s", &x.log)
	}
}

func TestOpenFlags(t *testing.T) {
	x := newFixture(t, File{Path: "d/f", Source: SourceFunc(noContent)})
	file, dir := fuse.InHeader{NodeId: 3}, fuse.InHeader{NodeId: 2}
	for _, skip := range []bool{false, true} {
		x.skipOpen, x.skipOpenDir = skip, skip
		want := map[bool]fuse.Status{true: fuse.ENOSYS, false: fuse.OK}[skip]
		var out fuse.OpenOut
		if st := x.Open(nil, &fuse.OpenIn{InHeader: file}, &out); st != want || !skip && out.OpenFlags != fuse.FOPEN_KEEP_CACHE {
			t.Errorf("open: %v, %+v", st, out)
		}
		out = fuse.OpenOut{}
		if st := x.OpenDir(nil, &fuse.OpenIn{InHeader: dir}, &out); st != want || !skip && out.OpenFlags != fuse.FOPEN_KEEP_CACHE|fuse.FOPEN_CACHE_DIR {
			t.Errorf("opendir: %v, %+v", st, out)
		}
		if st := x.Open(nil, &fuse.OpenIn{InHeader: dir}, &out); st != fuse.EISDIR {
			t.Errorf("open of a directory: %v", st)
		}
		if st := x.OpenDir(nil, &fuse.OpenIn{InHeader: file}, &out); st != fuse.ENOTDIR {
			t.Errorf("opendir of a file: %v", st)
		}
	}
}

func TestTimeoutsReachTheKernel(t *testing.T) {
	x := newFixture(t, File{Path: "f", Source: SourceFunc(noContent)})
	var found, absent fuse.EntryOut
	var attr fuse.AttrOut
	x.Lookup(nil, &fuse.InHeader{NodeId: 1}, "f", &found)
	x.Lookup(nil, &fuse.InHeader{NodeId: 1}, "g", &absent)
	x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: 2}}, &attr)
	const long = 24 * time.Hour
	if found.EntryTimeout() < long || found.AttrTimeout() < long || absent.EntryTimeout() < long || attr.Timeout() < long {
		t.Errorf("%v %v %v %v", found.EntryTimeout(), found.AttrTimeout(), absent.EntryTimeout(), attr.Timeout())
	}
	if found.Generation == 0 || absent.NodeId != 0 {
		t.Errorf("%+v %+v", found, absent)
	}
}

// TestBadContents: whatever a Content does wrong is EIO, logged once, and
// leaves nothing behind that the next reads would miss.
func TestBadContents(t *testing.T) {
	content := func(read func(p []byte, off int64) (int, error)) func() (Content, error) {
		return func() (Content, error) { return fakeContent{read, nothing}, nil }
	}
	for name, test := range map[string]struct {
		open func() (Content, error)
		text string
	}{
		"does not open":         {noContent, "open: no content"},
		"opens as nothing":      {func() (Content, error) { return nil, nil }, "open: no content"},
		"error":                 {content(func([]byte, int64) (int, error) { return 0, errors.New("block 7 differs") }), "block 7 differs"},
		"bytes and an error":    {content(func(p []byte, _ int64) (int, error) { return len(p), errors.New("late") }), "late"},
		"short":                 {content(func(p []byte, _ int64) (int, error) { return len(p) - 1, nil }), "short read at offset 5: 9 of 10 bytes"},
		"short with EOF":        {content(func(p []byte, _ int64) (int, error) { return 3, io.EOF }), "short read at offset 5: 3 of 10 bytes"},
		"nothing, not even EOF": {content(func([]byte, int64) (int, error) { return 0, nil }), "short read at offset 5: 0 of 10 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, File{Path: "bad dir/bad", Size: 15, Source: SourceFunc(test.open)}, File{Path: "good", Size: 3, Source: SourceFunc(inMemory([]byte("abc")))})
			for range 3 * cap(x.permits) {
				if _, st := x.read(nil, 4, 5, 10); st != fuse.EIO {
					t.Fatalf("read: %v", st)
				}
			}
			if got, st := x.read(nil, 3, 0, 10); st != fuse.OK || string(got) != "abc" {
				t.Errorf("the good file: %q, %v", got, st)
			}
			if log := x.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, test.text) ||
				!strings.Contains(log, `path="bad dir/bad"`) || !strings.Contains(log, "level=ERROR") {
				t.Errorf("log: %s", log)
			}
			if !slices.Equal(x.tampers, []string{"bad dir/bad"}) {
				t.Errorf("OnTamper was called for %q", x.tampers)
			}
		})
	}
}

// TestScarcityIsNoTampering: a lack of descriptors or memory is not a finding about the source; it
// is reported once, and the view is not tampered with.
func TestScarcityIsNoTampering(t *testing.T) {
	for _, scarce := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		x := newFixture(t, File{Path: "f", Size: 3, Source: SourceFunc(func() (Content, error) {
			return nil, fmt.Errorf("open: %w", scarce)
		})})
		for range 3 {
			if _, st := x.read(nil, 2, 0, 3); st != fuse.EIO {
				t.Fatalf("%v: %v", scarce, st)
			}
		}
		if log := x.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level=WARN") || len(x.tampers) > 0 {
			t.Errorf("%v: log %q, OnTamper %q", scarce, log, x.tampers)
		}
	}
}

// TestScarcityUsesUpNoFindings: however often it happens, tampering is still reported.
func TestScarcityUsesUpNoFindings(t *testing.T) {
	told := 0
	f := newFindings(slog.New(slog.DiscardHandler), func(string, error) { told++ })
	for i := range 2 * maxFindings {
		f.report(fmt.Sprint(i), fmt.Errorf("open %d: %w", i, unix.EMFILE))
	}
	f.report("f", errors.New("block 0 differs"))
	if told != 1 {
		t.Errorf("told of %d findings", told)
	}
}

func TestFullReadWithEOF(t *testing.T) {
	x := newFixture(t, File{Path: "f", Size: 3, Source: SourceFunc(func() (Content, error) {
		return fakeContent{func(p []byte, _ int64) (int, error) { return copy(p, "abc"), io.EOF }, nothing}, nil
	})})
	if got, st := x.read(nil, 2, 0, 3); st != fuse.OK || string(got) != "abc" {
		t.Errorf("%q, %v", got, st)
	}
}

// TestPanickingContents: go-fuse turns a panic into EIO; what matters here is
// that it leaves nothing locked.
func TestPanickingContents(t *testing.T) {
	for name, open := range map[string]func() (Content, error){
		"open": func() (Content, error) { panic("open") },
		"read": func() (Content, error) {
			return fakeContent{func([]byte, int64) (int, error) { panic("read") }, nothing}, nil
		},
	} {
		x := newFixture(t, File{Path: "bad", Size: 15, Source: SourceFunc(open)}, File{Path: "good", Size: 3, Source: SourceFunc(inMemory([]byte("abc")))})
		for range 3 * cap(x.permits) {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				x.read(nil, 2, 0, 10)
			}()
		}
		if got, st := x.read(nil, 3, 0, 10); st != fuse.OK || string(got) != "abc" {
			t.Errorf("%s: the good file: %q, %v", name, got, st)
		}
		x.OnUnmount()
		if n := len(x.handles.all); n != 0 {
			t.Errorf("%s: %d handles are left", name, n)
		}
	}
}

// TestPermitsBoundReads: never more concurrent reads than permits; waiting readers can be
// interrupted, but not at once.
func TestPermitsBoundReads(t *testing.T) {
	var working, most atomic.Int64
	gate := make(chan struct{})
	x := newFixture(t, File{Path: "f", Size: 10, Source: SourceFunc(func() (Content, error) {
		return fakeContent{func(p []byte, _ int64) (int, error) {
			n := working.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-gate
			working.Add(-1)
			return len(p), nil
		}, nothing}, nil
	})})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if _, st := x.read(nil, 2, 0, 10); st != fuse.OK {
				t.Errorf("read: %v", st)
			}
		})
	}
	eventually(t, "all permits in use", func() bool { return working.Load() == int64(cap(x.permits)) })
	cancelled := make(chan struct{})
	close(cancelled)
	if _, st := x.read(cancelled, 2, 0, 10); st != fuse.EINTR {
		t.Errorf("interrupted read: %v", st)
	}
	close(gate)
	wg.Wait()
	if _, st := x.read(cancelled, 2, 0, 10); st != fuse.OK {
		t.Errorf("interrupted read that need not wait: %v", st)
	}
	if most.Load() > int64(cap(x.permits)) || cap(x.permits) > x.handles.max {
		t.Errorf("%d reads at once, %d permits, %d handles", most.Load(), cap(x.permits), x.handles.max)
	}
	if x.log.Len() > 0 {
		t.Errorf("an interrupted read is not a finding: %s", &x.log)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	var n atomic.Int64
	x := newFixture(t, File{Path: "f", Size: 10, Source: SourceFunc(func() (Content, error) {
		return nil, errors.New("different each time: " + strings.Repeat("x", int(n.Add(1))))
	})})
	for range maxFindings + 100 {
		if _, st := x.read(nil, 2, 0, 10); st != fuse.EIO {
			t.Fatalf("read: %v", st)
		}
	}
	if lines := strings.Count(x.log.String(), "\n"); lines != maxFindings+1 || len(x.tampers) != maxFindings {
		t.Errorf("%d lines, %d calls", lines, len(x.tampers))
	}
}
