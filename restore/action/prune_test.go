package action_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"golang.org/x/sys/unix"
)

// pruning removes snapshots of the fixture.
func (w *fixture) pruning() *action.Pruning {
	state := w.state()
	w.t.Cleanup(func() { _ = state.Close() })
	return &action.Pruning{
		Snapshots: w.snapshots(), Savepoints: func() (*savepoint.Store, error) { return w.savepoints(), nil },
		Log: w.logger, State: state, Reason: "space",
	}
}

// prune returns the IDs of the removed snapshots.
func (w *fixture) prune(p *action.Pruning, policy snapshot.Policy) map[string]bool {
	w.t.Helper()
	pruned, err := p.Prune(context.Background(), policy)
	must(w.t, err)
	gone := map[string]bool{}
	for _, h := range pruned.Gone {
		gone[h.ID] = true
	}
	return gone
}

// TestPrune: what the records of a root need stays, whatever the policy; edits that a rollback removed go
// only if that is wanted. Each removal is logged, with the reason. A dry run removes and logs nothing.
func TestPrune(t *testing.T) {
	w := newFixture(t)
	old := w.take()
	commit := w.mustCommit(map[string]string{"a": "one"})
	must(t, os.WriteFile(filepath.Join(w.root, "a"), []byte("edited"), 0o600))
	undone, err := w.undo(commit, false)
	must(t, err)
	edits := undone.Done.Snapshot.ID()
	w.mustCommit(map[string]string{"b": "two"}) // its snapshot is the newest from before an action
	again := w.take()
	newest := w.take()
	policy := snapshot.Policy{KeepLast: 1, Now: time.Now(), DryRun: true}
	before, _ := w.log()
	if gone := w.prune(w.pruning(), policy); len(gone) != 2 || !gone[old.ID()] || !gone[again.ID()] {
		t.Errorf("dry run: %v", gone)
	}
	if after, _ := w.log(); len(after) != len(before) {
		t.Errorf("a dry run has logged %q", after[len(before):])
	}
	policy.DryRun = false
	if gone := w.prune(w.pruning(), policy); len(gone) != 2 || gone[edits] || gone[newest.ID()] {
		t.Errorf("removed %v", gone)
	}
	if e := w.lastEntry(); e.Kind != audit.SnapshotPruned || e.Snapshot != again.ID() || audit.RootOf(e.Root) != w.root || e.Reason != "space" {
		t.Errorf("logged %+v", e.Event)
	}
	with := w.pruning()
	with.WithEdits = true
	if gone := w.prune(with, policy); len(gone) != 1 || !gone[edits] {
		t.Errorf("with edits: %v", gone)
	}
}

// TestPruneUnknown: if the records cannot be read, or a removal cannot be logged, nothing is removed.
func TestPruneUnknown(t *testing.T) {
	w := newFixture(t)
	for range 3 {
		w.take()
	}
	policy := snapshot.Policy{KeepLast: 1, Now: time.Now()}
	unread := w.pruning()
	unread.Savepoints = func() (*savepoint.Store, error) { return nil, unix.EIO }
	unlogged := w.pruning()
	unlogged.Log = func() (*audit.Log, error) { return nil, unix.ENOSPC }
	for want, p := range map[error]*action.Pruning{unix.EIO: unread, unix.ENOSPC: unlogged} {
		if pruned, err := p.Prune(context.Background(), policy); !errors.Is(err, want) || len(pruned.Gone) > 0 {
			t.Errorf("removed %v, %v, want %v", pruned.Gone, err, want)
		}
	}
	if all, err := w.snapshots().List(w.root); err != nil || len(all) != 3 {
		t.Errorf("%d are left, %v", len(all), err)
	}
}
