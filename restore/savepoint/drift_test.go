package savepoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"golang.org/x/sys/unix"
)

// drift compares the newest savepoint of root with root.
func (s *testStore) drift(root string) []savepoint.Drift {
	s.Helper()
	sp, _, err := s.Tip(root)
	must(s, err)
	dir, err := pathsafe.OpenRoot(root)
	must(s, err)
	defer dir.Close()
	var drifts []savepoint.Drift
	inTime(s, func() {
		drifts, err = sp.Drift(s.Context(), dir, nil)
	})
	must(s, err)
	return drifts
}

func TestDrift(t *testing.T) {
	s := newTestStore(t)
	root := t.TempDir()
	at := func(path string) string { return filepath.Join(root, path) }
	paths := []string{"changed", "dir/same", "empty", "fifo", "gone", "inside/x", "isdir", "larger", "link", "loop/x", "outside/x", "parent/x", "smaller"}
	write(t, root, paths...)
	s.add(root, paths...)
	for _, d := range s.drift(root) {
		if d.State != savepoint.Same {
			t.Errorf("before: %+v", d)
		}
	}
	must(t, os.WriteFile(at("changed"), []byte("CHANGED"), 0o644))
	must(t, os.WriteFile(at("larger"), []byte("larger\x00"), 0o644))
	must(t, os.WriteFile(at("smaller"), []byte("small"), 0o644))
	must(t, os.Truncate(at("empty"), 0))
	for _, path := range []string{"fifo", "gone", "isdir", "link", "loop", "outside", "parent"} {
		must(t, os.RemoveAll(at(path)))
	}
	must(t, unix.Mkfifo(at("fifo"), 0o644))
	must(t, os.Mkdir(at("isdir"), 0o755))
	must(t, os.Symlink("dir/same", at("link")))
	must(t, os.Symlink("loop", at("loop")))
	must(t, os.Symlink(t.TempDir(), at("outside")))
	must(t, os.WriteFile(at("parent"), nil, 0o644))
	must(t, os.Rename(at("inside"), at("elsewhere")))
	must(t, os.Symlink("elsewhere", at("inside"))) // allowed: each step of the link stays beneath the root
	want := []savepoint.Drift{
		{"changed", savepoint.Changed}, {"dir/same", savepoint.Same}, {"empty", savepoint.Changed}, {"fifo", savepoint.NotRegular},
		{"gone", savepoint.Missing}, {"inside/x", savepoint.Same}, {"isdir", savepoint.NotRegular}, {"larger", savepoint.Changed},
		{"link", savepoint.NotRegular}, {"loop/x", savepoint.NotRegular}, {"outside/x", savepoint.NotRegular}, {"parent/x", savepoint.Missing},
		{"smaller", savepoint.Changed},
	}
	if got := s.drift(root); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestDriftCounts every byte that it reads, one call at a time.
func TestDriftCounts(t *testing.T) {
	s := newTestStore(t)
	root := t.TempDir()
	var paths []string
	for i := range 500 {
		paths = append(paths, fmt.Sprintf("%d/%03d", i%7, i))
	}
	write(t, root, paths...)
	s.add(root, paths...)
	sp, _, err := s.Tip(root)
	must(t, err)
	dir, err := pathsafe.OpenRoot(root)
	must(t, err)
	defer dir.Close()
	var bytes int64
	drifts, err := sp.Drift(t.Context(), dir, func(n int64) { bytes += n }) // the race detector looks on
	must(t, err)
	if bytes != 5*500 || len(drifts) != 500 {
		t.Errorf("%d bytes of %d files", bytes, len(drifts))
	}
}

func TestDriftStops(t *testing.T) {
	s := newTestStore(t)
	root := t.TempDir()
	write(t, root, "a", "dir/b")
	s.add(root)
	sp, _, err := s.Tip(root)
	must(t, err)
	dir, err := pathsafe.OpenRoot(root)
	must(t, err)
	defer dir.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if drifts, err := sp.Drift(ctx, dir, nil); !errors.Is(err, context.Canceled) || drifts != nil {
		t.Errorf("cancelled: %v, %v", drifts, err)
	}
	var closed pathsafe.Dir
	if drifts, err := sp.Drift(t.Context(), &closed, nil); err == nil || drifts != nil {
		t.Errorf("nothing could be read: %v", drifts)
	}
}
