package action_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// read is the log of a fixture.
func (w *fixture) read(visit func(audit.Entry) error) (audit.Head, error) {
	state := w.state()
	defer state.Close()
	f, err := state.ReadAuditLog()
	must(w.t, err)
	log := audit.New(f)
	defer log.Close()
	return log.Read(visit)
}

// survey is what a fixture has of savepoints.
func (w *fixture) survey() *savepoint.Survey {
	w.t.Helper()
	store := w.savepoints()
	defer store.Close()
	all, err := store.Survey("")
	must(w.t, err)
	return &all
}

// logged is a log of these events.
func logged(open []string, events ...audit.Event) action.ReadLog {
	return func(visit func(audit.Entry) error) (audit.Head, error) {
		head := audit.Head{Open: map[string]string{}}
		for _, id := range open {
			head.Open[id] = "/srv"
		}
		for n, e := range events {
			if e.Root == "" {
				e.Root = "/srv"
			}
			if err := visit(audit.Entry{Event: e, Sequence: int64(n + 1), Time: time.Unix(int64(n+1), 0)}); err != nil {
				return audit.Head{}, err
			}
		}
		return head, nil
	}
}

// TestNamedCommit: an ID names a commit that can be undone before one that was undone, and both before
// what the log alone has.
func TestNamedCommit(t *testing.T) {
	w := newFixture(t)
	first := w.mustCommit(map[string]string{"a": "a"})
	second, err := w.replace(map[string]string{"b": "b"})
	must(t, err)
	undone, err := w.undo(second, false)
	must(t, err)
	all := w.survey()
	all.Damaged = []*savepoint.DamageError{{Attempt: "dddddddd-1"}, {Attempt: "eeeeeeee-1", Retired: true}}
	sp := all.Standing[0]
	var rollback string
	for _, c := range actionsIn(w.read) {
		if !c.IsCommit() {
			rollback = c.ID
		}
	}
	for id, want := range map[string]action.Naming{
		first: action.NamesCommit, first[:4]: action.NamesCommit, sp.ID()[:6]: action.NamesCommit, first[:3]: action.NamesNothing, "": action.NamesNothing,
		second: action.NamesUndone, all.Retired[0].ID()[:4]: action.NamesUndone, rollback: action.NamesRollback, "dddd": action.NamesUnread, "eeee": action.NamesNothing,
	} {
		got := action.NamedCommit(id, all, w.read)
		if got.Kind != want {
			t.Errorf("%q: %+v, want %d", id, got, want)
		}
		switch {
		case want == action.NamesCommit && got.Savepoint.Attempt() != first:
			t.Errorf("%q: commit %s", id, got.Savepoint.Attempt())
		case want == action.NamesUndone && (got.Savepoint.Attempt() != second || got.Rollback == nil || got.Rollback.Snapshot != undone.Done.Snapshot.ID()):
			t.Errorf("%q: %+v", id, got)
		}
	}
	both := *all
	both.Standing = slices.Concat(all.Standing, all.Standing)
	if got := action.NamedCommit(first, &both, w.read); got.Kind != action.NamesSeveral || len(got.Several) != 2 {
		t.Errorf("twice: %+v", got)
	}
	if got := action.LatestCommit(w.root, all, w.read); got.Kind != action.NamesCommit || got.Savepoint.Attempt() != first {
		t.Errorf("latest: %+v", got)
	}
	if got := action.LatestCommit("/elsewhere", all, w.read); got.Kind != action.NamesNothing {
		t.Errorf("latest elsewhere: %+v", got)
	}
	undone, err = w.undo(first, false)
	must(t, err)
	if got := action.LatestCommit(w.root, w.survey(), w.read); got.Kind != action.NamesUndone || got.Savepoint.ID() != "" || got.Rollback.Snapshot != undone.Done.Snapshot.ID() {
		t.Errorf("latest of none: %+v", got)
	}
}

func actionsIn(read action.ReadLog) []*audit.Action {
	var h audit.History
	_, _ = read(func(e audit.Entry) error { h.See(&e); return nil })
	return h.Actions()
}

// TestNamedByLog: what only the log has of a commit.
func TestNamedByLog(t *testing.T) {
	read := logged([]string{"cccc-2", "cccc-1", "bbbb-0"},
		audit.Event{Kind: audit.CommitBegin, Action: "cccc-2"}, audit.Event{Kind: audit.CommitBegin, Action: "cccc-1"},
		audit.Event{Kind: audit.RollbackBegin, Action: "bbbb-0", Rollback: audit.Session},
		audit.Event{Kind: audit.CommitBegin, Action: "aaaa-1"}, audit.Event{Kind: audit.CommitEnd, Action: "aaaa-1"},
		audit.Event{Kind: audit.CommitBegin, Action: "ffff-1"}, audit.Event{Kind: audit.RolledBack, Action: "ffff-1", Reason: "no space"},
		audit.Event{Kind: audit.CommitBegin, Action: "eeee-1"}, audit.Event{Kind: audit.Released, Action: "eeee-1"},
		audit.Event{Kind: audit.CommitBegin, Action: "dddd-1"}, audit.Event{Kind: audit.CommitEnd, Action: "dddd-1"},
		audit.Event{Kind: audit.RolledBack, Action: "bbbb-1", Rollback: audit.Session, Snapshot: "s", Actions: []string{"dddd-1"}})
	for id, want := range map[string]action.Naming{
		"cccc": action.NamesUnfinished, "bbbb": action.NamesRollback, "aaaa": action.NamesLost, "ffff": action.NamesNotCompleted, "eeee": action.NamesNotCompleted,
		"dddd": action.NamesNothing, "0000": action.NamesNothing,
	} {
		got := action.NamedCommit(id, &savepoint.Survey{}, read)
		if got.Kind != want || want != action.NamesNothing && got.Action.ID[:4] != id {
			t.Errorf("%q: %+v, want %d", id, got, want)
		}
	}
	if got := action.NamedCommit("cccc", &savepoint.Survey{}, read); got.Action.ID != "cccc-1" {
		t.Errorf("of two that have not ended: %+v", got.Action)
	}
	if e := action.RollbackOf("dddd-1", read); e == nil || e.Action != "bbbb-1" {
		t.Errorf("the rollback: %+v", e)
	}
}

// TestLatestCommit: with no readable savepoint the newest damaged one decides, without that the newest
// commit that stands by the log, then one that has not ended, and last what was undone.
func TestLatestCommit(t *testing.T) {
	commit := func(id string, end audit.Event) []audit.Event {
		end.Action = id
		return []audit.Event{{Kind: audit.CommitBegin, Action: id}, end}
	}
	done, failed := audit.Event{Kind: audit.CommitEnd}, audit.Event{Kind: audit.RolledBack}
	back := audit.Event{Kind: audit.RolledBack, Action: "back", Rollback: audit.Session, Snapshot: "s", Actions: []string{"undone"}}
	events := slices.Concat(commit("first", done), commit("second", done), commit("undone", done), commit("failed", failed), []audit.Event{back})
	older, newer := &savepoint.DamageError{RunDir: "a", Sequence: 1}, &savepoint.DamageError{RunDir: "b", Sequence: 2}
	retired := &savepoint.DamageError{RunDir: "c", Sequence: 3, Retired: true}
	never := func(func(audit.Entry) error) (audit.Head, error) {
		t.Error("the log was read, though a savepoint decides")
		return audit.Head{}, nil
	}
	got := action.LatestCommit("", &savepoint.Survey{Damaged: []*savepoint.DamageError{newer, older, retired}}, never)
	if got.Kind != action.NamesUnread || got.Damage != newer {
		t.Errorf("of damaged savepoints: %+v", got)
	}
	got = action.LatestCommit("", &savepoint.Survey{Damaged: []*savepoint.DamageError{retired}}, logged(nil, events...))
	if got.Kind != action.NamesLost || got.Action.ID != "second" {
		t.Errorf("without savepoints: %+v", got)
	}
	got = action.LatestCommit("/srv", &savepoint.Survey{}, logged([]string{"open"}, append(slices.Concat(commit("undone", done)), back, audit.Event{Kind: audit.CommitBegin, Action: "open"})...))
	if got.Kind != action.NamesUnfinished || got.Action.ID != "open" {
		t.Errorf("that has not ended: %+v", got)
	}
	got = action.LatestCommit("/elsewhere", &savepoint.Survey{Damaged: []*savepoint.DamageError{newer}}, logged([]string{"second"}, events...))
	if got.Kind != action.NamesNothing {
		t.Errorf("of another root: %+v", got)
	}
}

// TestSnapshotOf: the snapshot from before an action, by the ID of it or of its savepoint.
func TestSnapshotOf(t *testing.T) {
	read := logged(nil, audit.Event{Kind: audit.CommitBegin, Action: "aaaa-1"}, audit.Event{Kind: audit.CommitEnd, Action: "aaaa-1", Reason: "savepoint ffff1"})
	before := func(id, action string) snapshot.Header {
		return snapshot.Header{ID: id, Kind: snapshot.PreAction, Action: action}
	}
	all := []snapshot.Header{before("one", "aaaa-1"), before("two", "bbbb-1"), before("three", "bbbb-2"), {ID: "four", Kind: snapshot.Manual, Action: "cccc-1"}, before("none", "")}
	for id, want := range map[string][2]string{"aaaa": {"one", "aaaa-1"}, "ffff": {"one", "aaaa-1"}, "bbbb-2": {"three", "bbbb-2"}, "bbb": {}, "cccc": {}, "": {}} {
		if s, of, isSeveral := action.SnapshotOf(id, all, read); s != want[0] || of != want[1] || isSeveral {
			t.Errorf("%q: %q of %q, %v", id, s, of, isSeveral)
		}
	}
	if s, of, isSeveral := action.SnapshotOf("bbbb", all, read); s+of != "" || !isSeveral {
		t.Errorf("of two: %q of %q, %v", s, of, isSeveral)
	}
}

// TestSnapshotsFor: which snapshots are from before a commit, and what an emergency rollback would do.
func TestSnapshotsFor(t *testing.T) {
	var events []audit.Event
	for n, id := range []string{"one", "two", "three"} {
		events = append(events, audit.Event{Kind: audit.SnapshotTaken, Action: fmt.Sprint(n), Snapshot: id})
		if id == "two" {
			events = append(events, audit.Event{Kind: audit.CommitBegin, Action: "commit"})
		}
	}
	read := logged(nil, events...)
	if got := action.TakenBefore("commit", read); !got["one"] || !got["two"] || got["three"] {
		t.Errorf("taken before: %v", got)
	}
	if got := action.TakenBefore("unknown", read); got != nil {
		t.Errorf("before what the log does not have: %v", got)
	}
	whole := func(id string) snapshot.Header { return snapshot.Header{ID: id, Whole: true, Kind: snapshot.Manual} }
	own := snapshot.Header{ID: "own", Kind: snapshot.PreAction, Action: "commit"}
	for name, test := range map[string]struct {
		all    []snapshot.Header
		commit string
		before string
		has    bool
	}{
		"all":       {[]snapshot.Header{whole("one"), own, whole("two")}, "commit", "own", true},
		"later one": {[]snapshot.Header{whole("one"), whole("three")}, "commit", "", false},
		"no log":    {[]snapshot.Header{whole("three")}, "unknown", "", true},
		"none":      {nil, "commit", "", false},
	} {
		if before, has := action.SnapshotsFor(test.commit, test.all, read); before != test.before || has != test.has {
			t.Errorf("%s: %q, %v", name, before, has)
		}
	}
}

// TestLatestOfLost: where the savepoint of the newest commit is lost, the commit before it is not the
// latest, unless a person has accepted the loss.
func TestLatestOfLost(t *testing.T) {
	w := newFixture(t)
	first := w.mustCommit(map[string]string{"a": "a"})
	second, err := w.replace(map[string]string{"b": "b"})
	must(t, err)
	all := w.survey()
	lost := all.Standing[1].ID()
	all.Standing = all.Standing[:1]
	if got := action.LatestCommit(w.root, all, w.read); got.Kind != action.NamesLost || got.Action.ID != second {
		t.Errorf("%+v", got)
	}
	damaged := func(visit func(audit.Entry) error) (audit.Head, error) {
		_, err := w.read(visit)
		must(t, err)
		return audit.Head{}, errors.New("an entry is damaged")
	}
	if got := action.LatestCommit(w.root, all, damaged); got.Kind != action.NamesLost || got.Action.ID != second {
		t.Errorf("a damaged log: %+v", got)
	}
	accepted := func(visit func(audit.Entry) error) (audit.Head, error) {
		head, err := w.read(visit)
		must(t, err)
		return head, visit(audit.Entry{Event: audit.Event{Kind: audit.LossAccepted, Root: w.root, Lost: []string{lost}}})
	}
	if got := action.LatestCommit(w.root, all, accepted); got.Kind != action.NamesCommit || got.Savepoint.Attempt() != first {
		t.Errorf("accepted: %+v", got)
	}
}

// TestNewest: "latest" names the newest of one restore root, and none of several.
func TestNewest(t *testing.T) {
	root := func(record string) string { return record[:1] }
	for _, test := range []struct {
		all   []string
		want  string
		roots []string
	}{
		{nil, "", nil},
		{[]string{"a1"}, "a1", []string{"a"}},
		{[]string{"a1", "a2"}, "a2", []string{"a"}},
		{[]string{"b1", "a1", "b2"}, "", []string{"a", "b"}},
	} {
		newest, roots := action.Newest(test.all, root)
		if (newest == nil) != (test.want == "") || newest != nil && *newest != test.want || !slices.Equal(roots, test.roots) {
			t.Errorf("%q: %v of %q", test.all, newest, roots)
		}
	}
}
