package action_test

import (
	"context"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestAsBefore: a halt of which nothing is left in the root ends by itself only where all is as it
// was before the action, with modes and owners, those of directories too.
func TestAsBefore(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *fixture)
		halts  bool
	}{
		"nothing":              {func(*fixture) {}, false},
		"something elsewhere":  {func(w *fixture) { w.write("else", "where") }, false},
		"a name in the same":   {func(w *fixture) { w.write("dir/other", "") }, false},
		"content":              {func(w *fixture) { w.write("dir/file", "longer than before") }, true},
		"gone":                 {func(w *fixture) { w.remove("dir/file") }, true},
		"come":                 {func(w *fixture) { w.write("dir/new", "") }, true},
		"mode of a file":       {func(w *fixture) { must(t, os.Chmod(w.at("dir/file"), 0o600)) }, true},
		"owner of a file":      {func(w *fixture) { must(t, os.Chown(w.at("dir/file"), 1, -1)) }, true},
		"group of a file":      {func(w *fixture) { must(t, os.Chown(w.at("dir/file"), -1, 1)) }, true},
		"owner of a link":      {func(w *fixture) { must(t, os.Lchown(w.at("dir/link"), 1, -1)) }, true},
		"mode of a directory":  {func(w *fixture) { must(t, os.Chmod(w.at("dir"), 0o700)) }, true},
		"owner of a directory": {func(w *fixture) { must(t, os.Chown(w.at("dir"), 1, -1)) }, true},
		"mode of what is in a directory that was asked for": {func(w *fixture) { must(t, os.Chmod(w.at("whole/sub"), 0o700)) }, true},
		"mode of the root": {func(w *fixture) { must(t, os.Chmod(w.root, 0o700)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			w := newFixture(t)
			w.write("dir/file", "content")
			w.link("file", "dir/link")
			w.mkdir("whole/sub")
			w.haltOf("dir/file", "dir/link", "dir/new", "whole")
			c.change(w)
			in, err := w.tryToEnter(staging.Automatic)
			if halts := action.HaltsOf(err); (len(halts) == 1) != c.halts || (err != nil) != c.halts {
				t.Errorf("%v", err)
			}
			if err == nil {
				in.leave()
			}
		})
	}
}

// haltOf marks an action as one whose rollback has failed: it has changed these names, and nothing
// that it has left is in the root.
func (w *fixture) haltOf(names ...string) {
	w.t.Helper()
	id := w.begunOf(names...)
	state := w.state()
	defer state.Close()
	must(w.t, state.Halt(id))
}

// begunOf logs the begin of an action that is to change these names, and takes the snapshot before it.
func (w *fixture) begunOf(names ...string) (id string) {
	w.t.Helper()
	id = uuid.NewString()
	before := w.snapshotBefore(id, names...)
	state := w.state()
	defer state.Close()
	f, err := state.AuditLog()
	must(w.t, err)
	log := audit.New(f)
	defer log.Close()
	must(w.t, log.Append(audit.Event{Kind: audit.CommitBegin, Action: id, Root: w.root, Snapshot: before}))
	return id
}

// snapshotBefore takes the snapshot before an action.
func (w *fixture) snapshotBefore(id string, names ...string) string {
	w.t.Helper()
	dir, err := pathsafe.OpenRoot(w.root)
	must(w.t, err)
	defer dir.Close()
	req := snapshot.Request{Root: w.root, Dir: dir, Kind: snapshot.PreAction, Action: id, Key: func() (bundle.Key, error) { return w.key, nil }}
	for _, name := range names {
		p, err := pathsafe.Parse(name)
		must(w.t, err)
		req.Scope = append(req.Scope, p)
	}
	store := w.snapshots()
	defer store.Close()
	before, err := store.Take(context.Background(), req)
	must(w.t, err)
	return before.ID()
}
