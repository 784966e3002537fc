package staging

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// inspected is Inspect of the one attempt that stands in a root; nil where none does.
func inspected(t *testing.T, root string) *Inspection {
	t.Helper()
	dir := openRoot(t, root)
	names, err := dir.Names()
	must(t, err)
	for _, name := range names {
		if _, kind := attemptOf(name); kind == "" {
			continue
		}
		found, err := Inspect(dir, testKey, name)
		must(t, err)
		return found
	}
	return nil
}

// inode is that of a path beneath a root; 0 where nothing is.
func inode(t *testing.T, root, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(root, path), &st); path == "" || err != nil {
		t.Errorf("%q: %v", path, err)
		return 0
	}
	return st.Ino
}

// TestInspect kills a reset before every call, and the recovery of each too. Whatever is at
// a name then, each thing from before is where Inspect says, until the reset is complete.
func TestInspect(t *testing.T) {
	ground := &resetFixtures{t: t, base: scratch(t), make: mixedReset}
	seen := map[NameState]int{}
	for n := 1; ; n += 1 + few/4 {
		f := ground.fresh()
		dead := !survived(func() { _ = f.run(killer(n)) })
		survived(func() { _, _ = f.recover(Automatic, killer(n/2)) })
		found := inspected(t, f.root())
		_, err := os.Lstat(filepath.Join(f.root(), "b/NEW")) // which is the last to come
		if found != nil && err != nil {
			f.judgeInspection(found, seen)
		}
		f.settle(Automatic)
		ground.done(f)
		if !dead {
			break
		}
	}
	if seen[AsBefore] == 0 || seen[AsAfter] == 0 {
		t.Errorf("seen: %v", seen)
	}
}

func (f *resetFixture) judgeInspection(found *Inspection, seen map[NameState]int) {
	t := f.t.(*testing.T)
	t.Helper()
	for i, n := range found.Names {
		seen[n.State]++
		s := f.e.Swaps[i]
		switch {
		case n.Path != s.Path.String() || n.HasOld != (s.Old != nil) || n.HasNew != (s.New != nil):
			t.Fatalf("%+v of %+v", n, s)
		case s.Old != nil && inode(t, f.root(), n.Before) != s.Old.ID.Ino:
			t.Errorf("what was at %q is not at %q", n.Path, n.Before)
		case n.State == AsAfter && n.HasNew && n.After != n.Path, n.State == AsBefore && n.HasOld && n.Before != n.Path:
			t.Errorf("%+v", n)
		}
	}
}

// TestInspectRivals: where the directory of a name is another one, it is named, and what was at
// the name is where it says.
func TestInspectRivals(t *testing.T) {
	f := mixedReset(t, filepath.Join(scratch(t), "1"))
	err := f.run(func(op, path string, do func() error) error {
		if op == "write" && filepath.Base(path) == committedName+newSuffix {
			must(t, os.Rename(f.at("a"), f.at("moved")))
			must(t, os.Mkdir(f.at("a"), 0o755))
			must(t, os.WriteFile(f.at("a/file"), []byte("theirs"), 0o600))
			return os.ErrInvalid
		}
		return do()
	})
	var e *Error
	if !errors.As(err, &e) || e.Rollback == nil {
		t.Fatalf("not halted: %v", err)
	}
	found := inspected(t, f.root())
	i := slices.IndexFunc(found.Names, func(n InspectedName) bool { return n.Path == "a/file" })
	if n := found.Names[i]; n.State != AsNeither || inode(t, f.root(), n.Before) != f.e.Swaps[i].Old.ID.Ino {
		t.Errorf("%+v", n)
	}
	if want := []ReplacedDir{{"a", inode(t, f.root(), "moved")}}; !slices.Equal(found.Replaced, want) {
		t.Errorf("replaced are %+v, want %+v", found.Replaced, want)
	}
}

// TestInspectCommit: of a commit each file is looked at, and what is foreign among them is named.
func TestInspectCommit(t *testing.T) {
	sc := unfinishable(t)
	before := inspected(t, sc.root)
	if _, err := sc.recover(Automatic); err == nil {
		t.Fatal("it is recovered")
	}
	halted := inspected(t, sc.root)
	for _, found := range []*Inspection{before, halted} {
		if !slices.Equal(found.Foreign, []string{"fresh/deep/theirs"}) || len(found.Names) < len(sc.spec.files) {
			t.Errorf("%+v", found)
		}
	}
	for i, n := range before.Names[:len(sc.spec.files)] {
		if n.State != AsAfter || n.After != n.Path || halted.Names[i].State != AsBefore {
			t.Errorf("%+v, %+v", n, halted.Names[i])
		}
	}
}

// TestInspectForged: what no journal of this key says is not told.
func TestInspectForged(t *testing.T) {
	sc := unfinishable(t)
	dir := openRoot(t, sc.root)
	names, err := dir.Names()
	must(t, err)
	for _, name := range names {
		if found, err := Inspect(dir, slices.Repeat([]byte{1}, 32), name); err == nil {
			t.Errorf("%q: %+v", name, found)
		}
	}
}

// TestInspectReplace: of a commit that replaces a file, that file is where Inspect says, before
// and after it was replaced.
func TestInspectReplace(t *testing.T) {
	for call, want := range map[string]NameState{"exchange keep": AsBefore, allMoved: AsAfter} {
		sc := replaceCommit(t, t.TempDir())
		old := inode(t, sc.root, "existing/keep")
		sc.abandon(call)
		found := inspected(t, sc.root)
		if found == nil {
			t.Fatalf("%s: nothing stands in the root", call)
		}
		i := slices.IndexFunc(found.Names, func(n InspectedName) bool { return n.Path == "existing/keep" })
		if n := found.Names[i]; n.State != want || !n.HasOld || inode(t, sc.root, n.Before) != old || n.After == "" {
			t.Errorf("%s: %+v", call, n)
		}
		_, err := sc.recover(Automatic)
		must(t, err)
	}
}
