package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// manifest is the path of the only manifest.
func (l *fixture) manifest() string {
	l.t.Helper()
	found, err := filepath.Glob(l.storePath(rootsName, "*", "*"))
	must(l.t, err)
	if len(found) != 1 {
		l.t.Fatalf("%d manifests", len(found))
	}
	return found[0]
}

func replace(t tb, path string, data []byte) {
	t.Helper()
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, data, objectPerm))
}

func wantDamage(t tb, what string, err error) {
	t.Helper()
	var damaged *DamageError
	if !errors.As(err, &damaged) {
		t.Fatalf("%s: %v, want a DamageError", what, err)
	}
}

// A manifest with any byte changed, cut anywhere, or with anything added is
// rejected, and Prune removes nothing then.
func TestManifestChanged(t *testing.T) {
	l := newFixture(t)
	l.populate()
	id := l.take().ID()
	path := l.manifest()
	good, err := os.ReadFile(path)
	must(t, err)
	check := func(what string, data []byte) {
		t.Helper()
		replace(t, path, data)
		snap, err := l.store.Find(id)
		wantDamage(t, what, err)
		if snap != nil {
			t.Fatalf("%s: content beside an error", what)
		}
	}
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1 << (i % 8)
		check("byte changed", bad)
		check("cut", good[:i])
	}
	check("line added", append(append([]byte(nil), good...), "{}\n"...))
	_, err = l.store.Prune(context.Background(), Policy{KeepLast: 1}, nil)
	wantDamage(t, "prune", err)
	replace(t, path, good)
	l.sound()
	must(t, os.Rename(path, filepath.Join(filepath.Dir(path), strings.Replace(filepath.Base(path), "1-", "2-", 1))))
	_, err = l.store.List("")
	wantDamage(t, "name", err)
}

// What is parsed prints as the same bytes, and makes a tree: everything else is
// rejected also when the ID would be right.
func FuzzManifest(f *testing.F) {
	for _, e := range []Entry{
		{Path: "", Type: Dir}, {Path: "a/b", Type: File, Asked: true, Sparse: true, Hard: "a/%\xff"}, {Path: "x", Type: Absent},
		{Path: "l", Type: Link, Target: "\\\"\n"},
	} {
		var line object
		line.entry(&e)
		f.Add(string(line.b))
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, _, err := parseEntry(line, nil)
		if err != nil {
			if e.Path != "" || e.Type != "" {
				t.Fatal("content beside an error")
			}
			return
		}
		var again object
		again.entry(&e)
		if string(again.b) != line {
			t.Fatalf("%q prints as %q", line, again.b)
		}
	})
}

func TestNoTree(t *testing.T) {
	file := func(path string) Entry { return Entry{Path: path, Type: File} }
	folder := func(path string) Entry { return Entry{Path: path, Type: Dir} }
	hard := Entry{Path: "b", Type: File, Hard: "a"}
	other := hard
	other.Ino = 7
	for name, entries := range map[string][]Entry{
		"empty":           {},
		"no root":         {file("a")},
		"root twice":      {folder(""), folder("")},
		"no parent":       {folder(""), file("a/b")},
		"below a file":    {folder(""), file("a"), file("a/b")},
		"order":           {folder(""), file("b"), file("a")},
		"twice":           {folder(""), file("a"), file("a")},
		"hard before":     {folder(""), {Path: "a", Type: File, Hard: "b"}, file("b")},
		"hard to itself":  {folder(""), {Path: "b", Type: File, Hard: "b"}},
		"hard to another": {folder(""), file("a"), other},
		"hard to hard":    {folder(""), file("a"), hard, {Path: "c", Type: File, Hard: "b"}},
	} {
		var j treeCheck
		var err error
		for i := range entries {
			if err == nil {
				err = j.see(&entries[i])
			}
		}
		if err == nil {
			err = j.end(&Header{Files: j.files, Bytes: j.bytes, Names: j.asked})
		}
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A damaged object is named, with the paths that need it, by Verify and by
// Write; and a Take that needs it brings it again when that can be seen.
func TestObjectDamaged(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		seen  bool // without reading
	}{
		"missing": {func(t *testing.T, path string) { must(t, os.Remove(path)) }, true},
		"shorter": {func(t *testing.T, path string) { replace(t, path, []byte("on")) }, true},
		"longer":  {func(t *testing.T, path string) { replace(t, path, []byte("ones")) }, true},
		"changed": {func(t *testing.T, path string) { replace(t, path, []byte("two")) }, false},
		"link": {func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".moved"))
			must(t, os.Symlink(path+".moved", path))
		}, true},
		"fifo": {func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, unix.Mkfifo(path, objectPerm))
		}, true},
		"directory": {func(t *testing.T, path string) {
			must(t, os.Remove(path))
			mkdir(t, path)
		}, true},
		"mode": {func(t *testing.T, path string) { must(t, os.Chmod(path, 0o600)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFixture(t)
			l.store.sysHook.everywhere = true
			l.populate()
			age()
			snap := l.take()
			one, err := snap.At(parse(t, "dir/one"))
			must(t, err)
			test.spoil(t, l.storePath(one.Digest.path()))
			damaged, err := l.store.Verify(context.Background(), snap)
			must(t, err)
			if name != "mode" {
				if len(damaged) != 1 || damaged[0].Path != one.Digest.path() || strings.Join(damaged[0].Names, " ") != "dir/one hard" {
					t.Fatalf("verify: %v", damaged)
				}
				err = l.store.Write(context.Background(), snap, parse(t, "dir"), openDir(t, l.dir), "out")
				wantDamage(t, "write", err)
			}
			again := l.take()
			damaged, err = l.store.Verify(context.Background(), again)
			must(t, err)
			if (len(damaged) == 0) != test.seen {
				t.Errorf("after another take: %v", damaged)
			}
		})
	}
}

func TestFind(t *testing.T) {
	l := newFixture(t)
	l.populate()
	snap := l.take()
	for _, id := range []string{"", snap.ID()[:3], "../../../../etc", strings.ToUpper(snap.ID()), snap.ID() + "0", strings.Repeat("0", 64)} {
		if found, err := l.store.Find(id); !errors.Is(err, fs.ErrNotExist) || found != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}
