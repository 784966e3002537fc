package action_test

import (
	"context"
	"errors"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// takeAll takes a snapshot of the root, or of one name in it.
func (w *fixture) takeAll(names ...string) *snapshot.Snapshot {
	w.t.Helper()
	dir, err := pathsafe.OpenRoot(w.root)
	must(w.t, err)
	defer dir.Close()
	req := snapshot.Request{Root: w.root, Dir: dir, Kind: snapshot.Manual, Key: func() (bundle.Key, error) { return w.key, nil }}
	for _, name := range names {
		p, err := pathsafe.Parse(name)
		must(w.t, err)
		req.Scope = append(req.Scope, p)
	}
	store := w.snapshots()
	defer store.Close()
	taken, err := store.Take(context.Background(), req)
	must(w.t, err)
	return taken
}

// TestExportOf: a bundle has the regular files of a whole root, except for result artifacts; and only if its
// run directory has a place.
func TestExportOf(t *testing.T) {
	w := newFixture(t)
	_, err := action.ExportOf(w.takeAll())
	if _, is := errors.AsType[*action.UnsealableError](err); !is {
		t.Errorf("without files: %v", err)
	}
	w.write("a", "a")
	w.write(restore.ReportName, "of an earlier restore")
	w.link("a", "link")
	if _, err := action.ExportOf(w.takeAll("a")); !errors.Is(err, action.ErrPartOnly) {
		t.Errorf("of a part: %v", err)
	}
	e, err := action.ExportOf(w.takeAll())
	must(t, err)
	if e.Left() != 2 {
		t.Errorf("%d names left out", e.Left())
	}
	if perm := e.Perm(); perm != 0o755 {
		t.Errorf("mode %o", perm)
	}
	w.link("/", "CONTRACTS")
	_, err = action.ExportOf(w.takeAll())
	if _, is := errors.AsType[*action.UnsealableError](err); !is {
		t.Errorf("with a link in place of CONTRACTS: %v", err)
	}
}
