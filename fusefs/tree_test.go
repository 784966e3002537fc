package fusefs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"pgregory.net/rapid"
)

func noContent() (Content, error) { return nil, errors.New("no content") }

// naive is the simplest implementation of the tree: a map of paths.
type naive map[string]File

// clash finds a path that has to be a file and a directory.
func (n naive) clash() bool {
	for path := range n {
		for i := range len(path) {
			if path[i] == '/' {
				if _, ok := n[path[:i]]; ok {
					return true
				}
			}
		}
	}
	return false
}

// children returns the names in a directory, and which of them are directories.
func (n naive) children(dir string) map[string]bool {
	names := make(map[string]bool)
	for path := range n {
		rest, ok := strings.CutPrefix(path, dir+"/")
		if dir == "" {
			rest, ok = path, true
		}
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		names[name] = deeper
	}
	return names
}

func (n naive) newest(dir string) (when time.Time) {
	for path, f := range n {
		if (dir == "" || strings.HasPrefix(path, dir+"/")) && (when.IsZero() || f.ModTime.After(when)) {
			when = f.ModTime
		}
	}
	return when
}

// Names that sort differently as components and as parts of a path, and few
// enough for paths to clash.
var someNames = []string{"a", "b", "a.b", "a-b", "a b", "aa", "\xff", "ä", "\x01", "0", ".x", "...", "-", "a\n"}

func somePath(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(someNames), 1, 4).Draw(t, "path"), "/")
}

func TestTreeAgainstNaive(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) File {
			return File{
				Path:    somePath(t),
				Size:    rapid.Int64Range(0, 1<<40).Draw(t, "size"),
				ModTime: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"), rapid.Int64Range(0, 999999999).Draw(t, "nsec")),
				Source:  SourceFunc(noContent),
			}
		}), 0, 12).Draw(t, "files")
		want := make(naive)
		for _, f := range files {
			want[f.Path] = f
		}
		tree, err := NewTree(slices.Values(files), nil)
		if bad := len(want) < len(files) || want.clash(); bad != (err != nil) {
			t.Fatalf("error %v, want one: %v", err, bad)
		}
		if err != nil {
			if tree != nil || !errors.Is(err, ErrBadTree) {
				t.Fatalf("tree %v, error %v", tree, err)
			}
			return
		}
		accepted++
		compare(t, newFileSystem(tree, Options{Stats: new(Stats)}), rootNode, "", want)
	})
	if accepted == 0 {
		t.Fatal("no tree was accepted")
	}
}

// root is the root of a view.
func root(s *fileSystem) at {
	a, _ := s.find(1)
	return a
}

// nodeID is the number of a node of the first tree.
func nodeID(id uint32) uint64 { return at{volume: &volume{}, id: id}.number() }

// compare walks a directory as the kernel would.
func compare(t *rapid.T, s *fileSystem, dir uint32, path string, want naive) {
	names := want.children(path)
	subdirs := 0
	list := []string{".", ".."}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, name)
		child := strings.TrimPrefix(path+"/"+name, "/")
		var out fuse.EntryOut
		if st := s.Lookup(nil, &fuse.InHeader{NodeId: nodeID(dir)}, name, &out); st != fuse.OK || out.NodeId == 0 {
			t.Fatalf("lookup of %q: %v, node %d", child, st, out.NodeId)
		}
		id := uint32(out.NodeId - 1)
		if got := root(s).tree.path(id); got != child {
			t.Fatalf("the path of %q is %q", child, got)
		}
		if names[name] {
			subdirs++
			compare(t, s, id, child, want)
			continue
		}
		f := want[child]
		if out.IsDir() || out.Size != uint64(f.Size) || !out.ModTime().Equal(f.ModTime) || out.Nlink != 1 {
			t.Fatalf("%q: %+v, want %+v", child, out.Attr, f)
		}
	}
	for _, absent := range append(someNames, "", ".", "..", "zzz") {
		var out fuse.EntryOut
		if _, there := names[absent]; !there {
			if st := s.Lookup(nil, &fuse.InHeader{NodeId: nodeID(dir)}, absent, &out); st != fuse.OK || out.NodeId != 0 {
				t.Fatalf("lookup of %q in %q: %v, node %d", absent, path, st, out.NodeId)
			}
		}
	}
	for _, size := range []int{300, 1000, 100000} {
		if got := readAll(t, s, dir, size); !slices.Equal(got, list) {
			t.Fatalf("directory %q lists %q, want %q", path, got, list)
		}
	}
	var out fuse.AttrOut
	a := root(s)
	a.id = dir
	s.attr(a, &out.Attr)
	if !out.IsDir() || int(out.Nlink) != 2+subdirs || (len(want) > 0 && !out.ModTime().Equal(want.newest(path))) {
		t.Fatalf("directory %q: %+v, want %d subdirectories, %v", path, out.Attr, subdirs, want.newest(path))
	}
}

// readAll lists a directory in pieces of a size, in both ways, which must agree.
func readAll(t *rapid.T, s *fileSystem, dir uint32, size int) (names []string) {
	var plus []string
	for off, n := uint64(0), 1; n > 0; {
		list := fuse.NewDirEntryList(make([]byte, size), off)
		if st := s.ReadDir(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: nodeID(dir)}, Offset: off}, list); st != fuse.OK {
			t.Fatal(st)
		}
		entries, err := fuse.ParseDirEntries(list.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name)
			off = e.Off
		}
		n = len(entries)
	}
	for off, n := uint64(0), 1; n > 0; {
		list := fuse.NewDirEntryList(make([]byte, size), off)
		if st := s.ReadDirPlus(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: nodeID(dir)}, Offset: off}, list); st != fuse.OK {
			t.Fatal(st)
		}
		entries, outs, err := fuse.ParseDirLookupEntries(list.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			plus = append(plus, e.Name)
			off = e.Off
			if dot := e.Name == "." || e.Name == ".."; dot != (outs[i].NodeId == 0) || !dot && (outs[i].Ino != e.Ino || outs[i].Mode&fuse.S_IFDIR != e.Mode&fuse.S_IFDIR) {
				t.Fatalf("entry %+v with %+v", e, outs[i])
			}
		}
		n = len(entries)
	}
	if !slices.Equal(names, plus) {
		t.Fatalf("READDIR %q, READDIRPLUS %q", names, plus)
	}
	return names
}

func TestTreeRejects(t *testing.T) {
	ok := File{Path: "ok", Source: SourceFunc(noContent)}
	long := strings.Repeat("n", 256)
	for name, f := range map[string]File{
		"empty":             {Path: "", Source: SourceFunc(noContent)},
		"absolute":          {Path: "/a", Source: SourceFunc(noContent)},
		"slash at the end":  {Path: "a/", Source: SourceFunc(noContent)},
		"double slash":      {Path: "a//b", Source: SourceFunc(noContent)},
		"dot":               {Path: "a/./b", Source: SourceFunc(noContent)},
		"only a dot":        {Path: ".", Source: SourceFunc(noContent)},
		"dots":              {Path: "a/../b", Source: SourceFunc(noContent)},
		"dots at the start": {Path: "../b", Source: SourceFunc(noContent)},
		"NUL":               {Path: "a\x00b", Source: SourceFunc(noContent)},
		"long name":         {Path: "a/" + long, Source: SourceFunc(noContent)},
		"library's name":    {Path: ".go-fuse-epoll-hack", Source: SourceFunc(noContent)},
		"below it":          {Path: ".go-fuse-epoll-hack/x", Source: SourceFunc(noContent)},
		"negative size":     {Path: "a", Size: -1, Source: SourceFunc(noContent)},
		"no content":        {Path: "a"},
	} {
		tree, err := NewTree(slices.Values([]File{ok, f}), nil)
		if tree != nil || !errors.Is(err, ErrBadTree) {
			t.Errorf("%s: %v, %v", name, tree, err)
		}
	}
	legal := []string{"...", "..a", ".a", long[1:], "a/.go-fuse-epoll-hack", "\xff\xfe", "a b\n", `back\slash`}
	var files []File
	for _, path := range legal {
		files = append(files, File{Path: path, Source: SourceFunc(noContent)})
	}
	if _, err := NewTree(slices.Values(files), nil); err != nil {
		t.Error(err)
	}
}

func TestTreeClashNamesBoth(t *testing.T) {
	for _, test := range [][3]string{
		{"a", "a", `"a" and "a"`},
		{"x/a", "x/a/b", `"x/a" and "x/a/b"`},
		{"x/a/b/c", "x/a", `"x/a" and "x/a/b/c"`},
	} {
		files := []File{{Path: "x/a-b", Source: SourceFunc(noContent)}, {Path: test[0], Source: SourceFunc(noContent)}, {Path: "x/a.b", Source: SourceFunc(noContent)}, {Path: test[1], Source: SourceFunc(noContent)}}
		_, err := NewTree(slices.Values(files), nil)
		if !errors.Is(err, ErrBadTree) || !strings.Contains(err.Error(), test[2]) {
			t.Errorf("%q: %v", test, err)
		}
	}
}

func TestTreeModes(t *testing.T) {
	for mode := range uint32(0o7777 + 1) {
		f := File{Path: "f", Mode: fileMode(mode), Source: SourceFunc(noContent)}
		tree, err := NewTree(slices.Values([]File{f}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.nodes[1].perm; got != mode&0o555 {
			t.Fatalf("mode %o becomes %o", mode, got)
		}
	}
}

func TestTreeIsCompact(t *testing.T) {
	if size := unsafe.Sizeof(node{}); size > 72 {
		t.Errorf("a node takes %d bytes", size)
	}
}

func TestTreeEmpty(t *testing.T) {
	tree, err := NewTree(func(func(File) bool) {}, nil)
	if err != nil || len(tree.nodes) != 1 {
		t.Fatalf("%v, %v", tree, err)
	}
	if _, err := New(&Tree{}, Options{}); !errors.Is(err, ErrBadTree) {
		t.Errorf("the zero Tree: %v", err)
	}
	if _, err := New(nil, Options{}); !errors.Is(err, ErrBadTree) {
		t.Errorf("no Tree: %v", err)
	}
}

func BenchmarkNewTree(b *testing.B) {
	var files []File
	for i := range 1_000_000 {
		files = append(files, File{Path: fmt.Sprintf("dir-%03d/sub.%02d/file%d.txt", i/5000, i/100%50, i), Source: SourceFunc(noContent)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewTree(slices.Values(files), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDirectoryModes: a directory grants what every description of it does, and no more
// than 0555; the owner looks into every one.
func TestDirectoryModes(t *testing.T) {
	dir := func(path string, perm fs.FileMode) File { return File{Path: path, Mode: fs.ModeDir | perm} }
	files := []File{
		textFile("a/b/c/f", "f"), textFile("g", "g"), dir("a", 0o770), dir("a/b", 0o777), dir("a/b", 0o705), dir("a/b/c", 0),
		dir("", 0o751), dir("gone/x", 0o777), dir("ga", 0o700),
	}
	tree, err := NewTree(slices.Values(files), slices.Values([]File{textFile("runs/r/s", "s"), dir("runs/r", 0o700)}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint32{"": 0o551, "a": 0o550, "a/b": 0o505, "a/b/c": 0o500, ControlName + "/runs": 0o555, ControlName + "/runs/r": 0o500}
	for path, perm := range want {
		id := uint32(rootNode)
		for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
			var ok bool
			if id, ok = tree.lookup(id, name); !ok {
				t.Fatalf("%q is not there", path)
			}
		}
		if got := tree.nodes[id].perm; got != perm {
			t.Errorf("%q: %o, want %o", path, got, perm)
		}
	}
	for _, path := range []string{"g", "g/h"} {
		if _, err := NewTree(slices.Values(append(files, dir(path, 0o755))), nil); !errors.Is(err, ErrBadTree) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
