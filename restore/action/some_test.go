package action_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// some is how these names are restored.
func (w *fixture) some(paths ...string) action.How {
	w.t.Helper()
	how := action.How{Type: audit.Session, Reason: "some"}
	for _, path := range paths {
		p, err := pathsafe.Found(path)
		must(w.t, err)
		how.Only = append(how.Only, p)
	}
	return how
}

func (w *fixture) restoreSome(t *snapshot.Snapshot, how action.How) (*action.Restored, error) {
	w.t.Helper()
	in := w.enter()
	defer in.leave()
	return action.Restore(context.Background(), in.Root, t, how)
}

// TestRestoreSome: the names that are chosen come back with what is in them, and the
// directories to them where these are missing. Nothing else changes, no commit is undone, and
// it can be undone as any other restore.
func TestRestoreSome(t *testing.T) {
	for name, c := range map[string]struct {
		from  string   // "whole", or the snapshot before a commit or a rollback
		only  []string // restored
		as    []string // of then; the rest is of now
		fresh []string // as well: the directories that have to be made
	}{
		"a file":                         {"whole", []string{"f"}, []string{"f"}, nil},
		"a file that is not there":       {"whole", []string{"gone"}, []string{"gone"}, nil},
		"a file in what is not there":    {"whole", []string{"lost/deep/a"}, []string{"lost/deep/a"}, []string{"lost", "lost/deep"}},
		"two files there":                {"whole", []string{"lost/deep/a", "lost/b"}, []string{"lost/deep/a", "lost/b"}, []string{"lost", "lost/deep"}},
		"a directory":                    {"whole", []string{"d"}, []string{"d", "d/e", "d/e/g", "d/new"}, nil},
		"a directory and a file in it":   {"whole", []string{"d", "d/e/g"}, []string{"d", "d/e", "d/e/g", "d/new"}, nil},
		"through a link of then":         {"whole", []string{"l/e/g"}, []string{"d/e/g"}, nil},
		"a link":                         {"whole", []string{"dangling"}, []string{"dangling"}, nil},
		"a name that no output can have": {"whole", []string{"back\\slash"}, []string{"back\\slash"}, nil},
		"of what a rollback has removed": {"rollback", []string{"out/sub/b"}, []string{"out/sub/b"}, []string{"out", "out/sub"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.fill()
			w.write("gone", "gone")
			w.write("lost/deep/a", "a")
			w.write("lost/b", "b")
			w.write("lost/other", "other")
			w.write("back\\slash", "odd")
			first := w.mustCommit(map[string]string{"out/sub/b": "beta", "out/c": "gamma"})
			target, was := w.take(), read(t, w.root)
			w.write("out/sub/b", "edited")
			if c.from == "rollback" {
				was = read(t, w.root)
				done, err := w.undo(first, false)
				must(t, err)
				target = done.Done.Snapshot
			}
			for _, path := range []string{"gone", "lost", "back\\slash", "dangling"} {
				w.remove(path)
			}
			w.change()
			w.write("d/e/g", "other")
			if c.from == "whole" {
				w.remove("RESTORE_REPORT.json")
				w.remove("RESTORE_MANIFEST.json")
				w.mustCommit(map[string]string{"later": "later"})
			}
			now, chain := read(t, w.root), w.chain()
			how := w.some(c.only...)
			seen, unseen := foreseen(t, w, func(in *action.Root) (*action.Restored, error) {
				return action.ForeseeRestore(context.Background(), in, target, how)
			})
			done, err := w.restoreSome(target, how)
			wantForeseen(t, seen, done, unseen, err)
			must(t, err)
			want := now.clone()
			for _, path := range slices.Concat(c.as, c.fresh) {
				if delete(want, path); was[path] != nil {
					want[path] = was[path]
				}
			}
			w.same(want, "after the restore")
			wantChanges(t, now, read(t, w.root), done.Changes)
			if !slices.Equal(w.chain(), chain) || len(done.Commits) > 0 {
				t.Errorf("the commits are %q, were %q; undone %v", w.chain(), chain, done.Commits)
			}
			_, err = w.restore(done.Done.Snapshot)
			must(t, err)
			w.same(now, "after the restore of that before it")
		})
	}
}

// TestRestoreSomeRejected: what the snapshot does not have, or what is in the way, is found
// before anything is written.
func TestRestoreSomeRejected(t *testing.T) {
	w := newFixture(t)
	w.fill()
	target := w.take()
	w.remove("d")
	w.write("d", "a file")
	done, err := w.restoreSome(target, w.some("f"))
	must(t, err)
	w.write("newer", "")
	for name, c := range map[string]struct {
		of   *snapshot.Snapshot
		path string
		want error
	}{
		"nothing was there":         {target, "newer", action.ErrNothingThere},
		"nothing is there":          {target, "nowhere/x", action.ErrNothingThere},
		"not of the snapshot":       {done.Done.Snapshot, "p", snapshot.ErrNotCovered},
		"a file is in the way":      {target, "d/e/g", nil},
		"a link of then leads away": {target, "dangling/x", pathsafe.ErrEscape},
	} {
		before := w.prints()
		_, unseen := foreseen(t, w, func(in *action.Root) (*action.Restored, error) {
			return action.ForeseeRestore(context.Background(), in, c.of, w.some("f", c.path))
		})
		_, err := w.restoreSome(c.of, w.some("f", c.path))
		if err == nil || unseen == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, the dry run: %v", name, err, unseen)
		}
		if diff := len(before) - len(w.prints()); diff != 0 {
			t.Errorf("%s: %d names fewer than before", name, diff)
		}
	}
}

// TestRestoreIntoNoDirectory: what a snapshot of some names has does not come back where its
// directory is gone; the dry run says the same.
func TestRestoreIntoNoDirectory(t *testing.T) {
	w := newFixture(t)
	w.mkdir("a")
	done, err := w.undo(w.mustCommit(map[string]string{"a/f": "one"}), false)
	must(t, err)
	w.remove("a")
	_, unseen := foreseen(t, w, func(in *action.Root) (*action.Restored, error) {
		return action.ForeseeRestore(t.Context(), in, done.Done.Snapshot, action.How{Type: audit.Session, Reason: "asked for"})
	})
	_, err = w.restore(done.Done.Snapshot)
	for _, err := range []error{unseen, err} {
		var failed *staging.Error
		if !errors.As(err, &failed) || failed.Step != staging.StepConflict || failed.Path != "a/f" || failed.Attempt != "" {
			t.Errorf("%v", err)
		}
	}
}

// TestRestoreSomeOfSome: of a directory that a snapshot knows some names of only, these are restored,
// and those that were absent go. What it does not know stays.
func TestRestoreSomeOfSome(t *testing.T) {
	for name, c := range map[string]struct {
		gone []string // since the commit
		want map[string]string
	}{
		"as the commit left it":  {nil, map[string]string{"b/replaced": "old", "b/other": "mine"}},
		"the directory is gone":  {[]string{"b"}, map[string]string{"b/replaced": "old"}},
		"the replaced is gone":   {[]string{"b/replaced"}, map[string]string{"b/replaced": "old", "b/other": "mine"}},
		"the added one is gone":  {[]string{"b/added"}, map[string]string{"b/replaced": "old", "b/other": "mine"}},
		"no other one was there": {[]string{"b/other"}, map[string]string{"b/replaced": "old"}},
		"nothing was added":      {[]string{"c"}, map[string]string{"b/replaced": "old", "b/other": "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.write("b/replaced", "old")
			w.write("b/other", "mine")
			restored := map[string]string{"b/replaced": "new", "b/added": "new"}
			if name == "nothing was added" {
				restored = map[string]string{"b/replaced": "new", "c": "new"}
			}
			_, err := w.replace(restored)
			must(t, err)
			store := w.snapshots()
			defer store.Close()
			all, err := store.List(w.root)
			must(t, err)
			target, err := store.Find(all[len(all)-1].ID)
			must(t, err)
			for _, path := range c.gone {
				w.remove(path)
			}
			now := read(t, w.root)
			seen, unseen := foreseen(t, w, func(in *action.Root) (*action.Restored, error) {
				return action.ForeseeRestore(context.Background(), in, target, w.some("b"))
			})
			done, err := w.restoreSome(target, w.some("b"))
			wantForeseen(t, seen, done, unseen, err)
			must(t, err)
			got := map[string]string{}
			for path, is := range read(t, w.root) {
				if strings.HasPrefix(path, "b/") {
					got[path] = is.content
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("there is %q, want %q", got, c.want)
			}
			_, err = w.restore(done.Done.Snapshot)
			must(t, err)
			w.same(now, "after the restore of that before it")
		})
	}
}
