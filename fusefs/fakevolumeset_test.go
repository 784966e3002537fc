package fusefs

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"pgregory.net/rapid"
)

// fakeVolumeSet is a volume set in memory.
type fakeVolumeSet struct {
	mu      sync.Mutex
	volumes map[string]*fakeVolume
	err     error // of Names
	latest  func(done <-chan struct{}) string
}

func newFakeVolumeSet() *fakeVolumeSet { return &fakeVolumeSet{volumes: make(map[string]*fakeVolume)} }

func (s *fakeVolumeSet) Names() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.volumes)), s.err
}

func (s *fakeVolumeSet) Find(name string) Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.volumes[name]; v != nil {
		return v
	}
	return nil
}

func (s *fakeVolumeSet) Latest(done <-chan struct{}) string {
	if s.latest == nil {
		return ""
	}
	return s.latest(done)
}

func (s *fakeVolumeSet) ModTime() time.Time { return time.Unix(1e9, 7) }

func (s *fakeVolumeSet) Perm() fs.FileMode { return 0o777 }

// put puts a volume into the volume set; remove removes it.
func (s *fakeVolumeSet) put(name string, v *fakeVolume) *fakeVolume {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes[name] = v
	return v
}

func (s *fakeVolumeSet) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, name)
}

// fakeVolume counts its calls, and detects concurrent ones.
type fakeVolume struct {
	tree    func(done <-chan struct{}) (*Tree, error)
	spoiled atomic.Bool
	calls   atomic.Int64
	inside  atomic.Int64
	crowded atomic.Bool
}

func (v *fakeVolume) Tree(done <-chan struct{}) (*Tree, error) {
	v.calls.Add(1)
	if v.inside.Add(1) > 1 {
		v.crowded.Store(true)
	}
	defer v.inside.Add(-1)
	return v.tree(done)
}

func (v *fakeVolume) Spoiled() bool      { return v.spoiled.Load() }
func (v *fakeVolume) ModTime() time.Time { return time.Unix(2e9, 9) }

func (v *fakeVolume) Perm() fs.FileMode { return 0o777 }

// holding is a volume of some files.
func holding(files ...File) *fakeVolume {
	return &fakeVolume{tree: func(<-chan struct{}) (*Tree, error) { return NewTree(slices.Values(files), nil) }}
}

// textFile is a file that reads as its text.
func textFile(path, text string) File {
	return File{Path: path, Size: int64(len(text)), Source: SourceFunc(inMemory([]byte(text)))}
}

// withVolumeSet is a fixture of a view with a volume set, some files, and a control
// directory of others.
func withVolumeSet(t rapid.TB, volumeSet VolumeSet, files, control []File) *fixture {
	t.Helper()
	tree, err := NewTree(slices.Values(files), slices.Values(control))
	if err != nil {
		t.Fatal(err)
	}
	x := &fixture{}
	x.fileSystem = newFileSystem(tree, Options{Log: slog.New(slog.NewTextHandler(&lockedWriter{x: x}, nil)), Stats: new(Stats), VolumeSet: volumeSet})
	return x
}

// lockedWriter is the log of a fixture that several goroutines write to.
type lockedWriter struct{ x *fixture }

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	return w.x.log.Write(p)
}

func (x *fixture) logged() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.String()
}

// look looks a name up.
func (x *fixture) look(cancel <-chan struct{}, dir uint64, name string) (fuse.EntryOut, fuse.Status) {
	var out fuse.EntryOut
	st := x.Lookup(cancel, &fuse.InHeader{NodeId: dir}, name, &out)
	return out, st
}

// walk looks up one name after the other from the root.
func (x *fixture) walk(t rapid.TB, names ...string) fuse.EntryOut {
	t.Helper()
	out := fuse.EntryOut{NodeId: 1}
	for _, name := range names {
		var st fuse.Status
		if out, st = x.look(nil, out.NodeId, name); st != fuse.OK || out.NodeId == 0 {
			t.Fatalf("lookup of %q: %v, node %d", name, st, out.NodeId)
		}
	}
	return out
}

// list lists a directory in pieces of a size, doing something after each.
func (x *fixture) list(t rapid.TB, dir uint64, size int, plus bool, between func()) (entries []fuse.DirEntry) {
	t.Helper()
	var opened fuse.OpenOut
	if st := x.OpenDir(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: dir}}, &opened); st != fuse.OK {
		t.Fatal(st)
	}
	defer x.ReleaseDir(&fuse.ReleaseIn{InHeader: fuse.InHeader{NodeId: dir}, Fh: opened.Fh})
	for off := uint64(0); ; {
		piece := fuse.NewDirEntryList(make([]byte, size), off)
		in := &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: dir}, Fh: opened.Fh, Offset: off}
		read, parse := x.ReadDir, fuse.ParseDirEntries
		if plus {
			read, parse = x.ReadDirPlus, func(raw []byte) ([]fuse.DirEntry, error) {
				entries, _, err := fuse.ParseDirLookupEntries(raw)
				return entries, err
			}
		}
		st := read(nil, in, piece)
		got, err := parse(piece.Bytes())
		if st != fuse.OK || err != nil {
			t.Fatal(st, err)
		}
		if len(got) == 0 {
			return entries
		}
		entries = append(entries, got...)
		off = got[len(got)-1].Off
		between()
	}
}

func namesOf(entries []fuse.DirEntry) (names []string) {
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// closed is a request that was interrupted.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

var errNoTree = errors.New("no tree today")
