package pathsafe

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

func walkNames(t *testing.T, d *Dir) []string {
	t.Helper()
	var got []string
	must(t, d.Walk(context.Background(), func(rel string, st Stat) error {
		got = append(got, rel)
		return nil
	}))
	return got
}

func TestWalkInPathOrder(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "a/b", "a.b", "a-/x", "a./y/z", "a0", "b|", "link -> a", "out -> /etc",
			`back\slash`, "a/sub/deep/f", "empty/", "m/")
		harness.Mount(t, "tmpfs", filepath.Join(root, "m"), "tmpfs", 0, "")
		plant(t, root, "m/hidden")
		got := walkNames(t, openDir(t, root, w))

		if !slices.IsSorted(got) {
			t.Errorf("not in byte order: %q", got)
		}
		want := []string{"a", "a-", "a-/x", "a.", "a.b", "a./y", "a./y/z", "a/b", "a/sub", "a/sub/deep",
			"a/sub/deep/f", "a0", "b", `back\slash`, "empty", "link", "m", "out"}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

// TestWalkSkips: a directory that the visitor skips is not entered, and need not be readable.
func TestWalkSkips(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "a/b", "a.b", "a/c/d", "e/f")
		var got []string
		must(t, openDir(t, root, w).Walk(t.Context(), func(rel string, _ Stat) error {
			got = append(got, rel)
			if rel == "a" || rel == "a.b" {
				return fs.SkipDir
			}
			return nil
		}))
		if want := []string{"a", "a.b", "e", "e/f"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestWalkStops(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "a/b", "c")
	d := openDir(t, root, chooseWalker())
	mine := errors.New("mine")
	seen := 0
	err := d.Walk(context.Background(), func(rel string, st Stat) error {
		if seen++; rel == "a/b" {
			return mine
		}
		return nil
	})
	if !errors.Is(err, mine) || seen != 2 {
		t.Errorf("%v after %d entries", err, seen)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = d.Walk(ctx, func(string, Stat) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// A directory that turns into a link between visit and descent.
	err = d.Walk(context.Background(), func(rel string, st Stat) error {
		if rel == "a" {
			must(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "gone")))
			must(t, os.Symlink("/etc", filepath.Join(root, "a")))
		}
		if strings.HasPrefix(rel, "a/") {
			t.Errorf("visited %q through the link", rel)
		}
		return nil
	})
	if !errors.Is(err, ErrSymlink) {
		t.Errorf("swapped: %v", err)
	}
}

func TestWalkDescribes(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "d/f", "l -> d")
	types := map[string]fs.FileMode{}
	d := openDir(t, root, chooseWalker())
	must(t, d.Walk(context.Background(), func(rel string, st Stat) error {
		types[rel] = st.Mode.Type()
		return nil
	}))
	if types["d"] != fs.ModeDir || types["d/f"] != 0 || types["l"] != fs.ModeSymlink || len(types) != 3 {
		t.Errorf("%v", types)
	}
}

// TestWalkReadable: what may not be read is named, and the rest is visited.
func TestWalkReadable(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "a/b", "c/d", "e/f")
		d := openDir(t, root, w)
		var seen, denied []string
		visit := func(rel string, _ Stat) error {
			seen = append(seen, rel)
			if rel == "c/d" {
				return fs.ErrPermission
			}
			return nil
		}
		err := d.WalkReadable(t.Context(), visit, func(rel string) { denied = append(denied, rel) })
		if !errors.Is(err, fs.ErrPermission) || len(denied) > 0 || !slices.Equal(seen, []string{"a", "a/b", "c", "c/d"}) {
			t.Errorf("an error of the visitor: %v, seen %q, denied %q", err, seen, denied)
		}
	})
}
