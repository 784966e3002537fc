package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// deep puts a run with some empty outputs, each below so many directories of its own, into a store.
func deep(t *testing.T, outputs, depth int) (*Store, string) {
	t.Helper()
	s, _, bucket := far(t)
	run := bundletest.New(t).Run("run-1", nil)
	p := &plan{runID: "run-1"}
	run.EditHashes(func(hashes map[string]any) {
		for n := range outputs {
			hashes[fmt.Sprintf("%03d/", n)+strings.Repeat("d/", depth-1)+"f"] = bundletest.Hash("")
			p.add(nil)
		}
	})
	bucket.Set("team/runs/"+run.BundleRoot(), withMap(t, run, p))
	return s, run.BundleRoot()
}

func directoriesIn(t *testing.T, path string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestManyDirectories: a few bytes that would make very many directories make none.
func TestManyDirectories(t *testing.T) {
	s, root := deep(t, 100, 1980)
	pulled, err := pull(t, s, root)
	if unfit, is := errors.AsType[*UnfitError](err); !is || unfit.Op != "fetched" || !strings.Contains(err.Error(), "198000 directories") {
		t.Errorf("%v", err)
	}
	if n := directoriesIn(t, pulled); n > 10 {
		t.Errorf("%d directories", n)
	}
}

// countdown is a context that ends after it was asked some times.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestDirectoriesEnd: a context that is done ends the making of directories and of empty files.
func TestDirectoriesEnd(t *testing.T) {
	for _, shape := range [][2]int{{50, 200}, {5000, 1}} {
		s, root := deep(t, shape[0], shape[1])
		path := t.TempDir()
		dir := openDir(t, path)
		run, err := s.Open(t.Context(), root, dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx := &countdown{Context: t.Context()}
		ctx.left.Store(300)
		if err := run.Pull(ctx, dir, Watch{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if n := directoriesIn(t, path); n < 20 || n > 400 {
			t.Errorf("%d directories", n)
		}
	}
}

// TestDirectoriesOf counts each directory once.
func TestDirectoriesOf(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "a b c": 0, "a/b": 1, "a-b/c a/b/c a/b/d a/c ab/c": 4, "a/b/c/d a/b/d/c b/b/c": 6} {
		n := directoriesOf(func(yield func(pathsafe.Path) bool) {
			for _, one := range strings.Fields(text) {
				p, err := pathsafe.Parse(one)
				if err != nil || !yield(p) {
					return
				}
			}
		})
		if n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}

// TestRoomOfDirectories: directories count where it is looked for room.
func TestRoomOfDirectories(t *testing.T) {
	s, root := deep(t, 3, 100)
	dir := state(t)
	run, err := s.Open(t.Context(), root, dir)
	if err != nil {
		t.Fatal(err)
	}
	room, err := machine.RoomOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if need := run.need(room, 300); need.Inodes != 303*room.Entry().Inodes || need.Bytes != 300*room.Directory().Bytes {
		t.Errorf("%+v", need)
	}
}
