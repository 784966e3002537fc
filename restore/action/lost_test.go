package action_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/staging"
)

// TestLost: an attempt that has begun and of which nothing is in the root halts it where something
// that it was to put there is at a name. Where the root is as before, or others have changed files,
// it is ended; what others may have put there is named.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(w *fixture)
		halts, named bool
	}{
		"nothing":            {func(*fixture) {}, false, false},
		"elsewhere":          {func(w *fixture) { w.write("else", "where") }, false, false},
		"edited in place":    {func(w *fixture) { w.write("dir/file", "of others") }, false, false},
		"replaced by others": {func(w *fixture) { w.putAnother("dir/file", "of others") }, false, true},
		"copied":             {func(w *fixture) { w.putAnother("dir/file", "new") }, false, true},
		"removed by others":  {func(w *fixture) { w.remove("dir/file") }, false, true},
		"come of others":     {func(w *fixture) { w.write("dir/gone", "of others") }, false, true},
		"put back":           {func(w *fixture) { w.putAnother("dir/file", "old") }, true, false},
		"removed again":      {func(w *fixture) { w.remove("dir/made") }, true, false},
		"come again":         {func(w *fixture) { w.write("dir/gone", "old") }, true, false},
		"another root":       {func(w *fixture) { must(t, os.Rename(w.root, w.root+".moved")); w.mkdir("") }, false, true},
		"no snapshot": {func(w *fixture) {
			all, err := filepath.Glob(filepath.Join(w.base, "state/snapshots/roots/*/*"))
			must(t, err)
			for _, path := range all {
				must(t, os.RemoveAll(path))
			}
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.write("dir/file", "old")
			w.write("dir/gone", "old")
			w.snapshotBefore(uuid.NewString(), "dir/file", "dir/gone", "dir/made")
			w.putAnother("dir/file", "new")
			w.write("dir/made", "new")
			w.remove("dir/gone")
			id := w.begunOf("dir/file", "dir/gone", "dir/made")
			c.change(w)
			for _, mode := range []staging.Mode{staging.Automatic, staging.Person} {
				in, ended, err := w.ending(mode)
				if halts := action.HaltsOf(err); (len(halts) == 1) != c.halts || (err != nil) != c.halts {
					t.Fatalf("%v", err)
				}
				if c.halts && !errors.Is(err, staging.ErrHalted) {
					t.Errorf("%v", err)
				}
				if first := mode == staging.Automatic; (len(ended) == 1) != (c.named && first) {
					t.Errorf("%+v", ended)
				} else if c.named && first && (ended[0].Attempt != id || ended[0].Left == nil || !strings.Contains(ended[0].Left.Error(), "snapshot ")) {
					t.Errorf("%+v", ended)
				}
				in.leave()
			}
			kinds, open := w.log()
			want := "rollback"
			if c.halts {
				want = "halt"
			}
			if (open == 1) != c.halts || !slices.Contains(kinds, want) {
				t.Errorf("%d open of %q", open, kinds)
			}
			if c.halts {
				in, ended, err := w.ending(staging.Acknowledged)
				if err != nil || len(ended) != 1 || ended[0].Result != staging.Released {
					t.Errorf("%+v, %v", ended, err)
				}
				in.leave()
				w.enter().leave()
			}
		})
	}
}

// putAnother puts another file at a name.
func (w *fixture) putAnother(path, content string) {
	w.t.Helper()
	w.write(path+".new", content)
	must(w.t, os.Rename(w.at(path+".new"), w.at(path)))
}

// ending enters the root, and returns what was ended there.
func (w *fixture) ending(mode staging.Mode) (*inside, []staging.Outcome, error) {
	w.t.Helper()
	state := w.state()
	key, err := state.JournalKey()
	must(w.t, err)
	f, err := state.AuditLog()
	must(w.t, err)
	in, ended, err := action.Enter(context.Background(), w.root, action.Entry{
		Key: key, Halts: state, Bars: state, Log: audit.New(f), Savepoints: w.savepoints(), Snapshots: w.snapshots(),
		Authority: quietHalts{state, w}, Mode: mode, State: state.Root(), Acknowledge: looked,
	})
	return &inside{in, state}, ended, err
}
