package audit_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestHistoryOfRollbacks: the ledger knows which commits are rolled back now, which snapshots
// are kept, and in which roots a rollback has ended.
func TestHistoryOfRollbacks(t *testing.T) {
	other := strings.Repeat("0b", 32)
	events := append(undoing()[:5],
		audit.Event{Kind: audit.RollbackBegin, Action: id(6), Root: "/s", Rollback: audit.Session, Snapshot: other, Actions: []string{id(3)}},
		audit.Event{Kind: audit.RolledBack, Action: id(6), Root: "/s", Rollback: audit.Micro},
	)
	misfits := func(events []audit.Event) string {
		t.Helper()
		var l audit.Ledger
		_, err := audit.Read(bytes.NewReader(loggedAll(t, events)), l.Add)
		must(t, err)
		one := []audit.Savepoint{{ID: sp(1), Attempt: id(1), Root: "/r"}}
		var found []string
		for name, list := range map[string][]audit.Misfit{"put back": l.PutBack(one), "not undone": l.NotUndone(one), "lost": l.RetiredLost(nil)} {
			if len(list) > 0 {
				found = append(found, name)
			}
		}
		ended, begun := l.TakenBack()
		for _, s := range l.Snapshots() {
			found = append(found, s.Root)
		}
		if len(found) > 1 && found[0] > found[1] {
			found[0], found[1] = found[1], found[0]
		}
		return strings.Join(found, ",") + " " + strings.Join(ended, ",") + " " + strings.Join(begun, ",")
	}
	for name, c := range map[string]struct {
		events []audit.Event
		want   string
	}{
		"committed":       {events[:2], "not undone  "},
		"running":         {events[:4], "/r  /r"},
		"done":            {events[:5], "lost,put back,/r /r /r"},
		"another failed":  {events, "lost,put back,/r,/s /r /r,/s"},
		"and pruned":      {append(events[:5:5], undoing()[5]), "lost,put back /r /r"},
		"brought back":    {append(events[:5:5], audit.Event{Kind: audit.RolledBack, Action: id(7), Root: "/r", Rollback: audit.Session, Snapshot: other, Brings: []string{id(1)}}), "/r,not undone /r /r"},
		"brought by none": {append(events[:5:5], audit.Event{Kind: audit.RolledBack, Action: id(7), Root: "/r", Rollback: audit.Session, Brings: []string{id(1)}}), "lost,put back,/r /r /r"},
	} {
		if got := misfits(c.events); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBringsForms: only a rollback brings commits back, each once.
func TestBringsForms(t *testing.T) {
	for name, e := range map[string]audit.Event{
		"a commit": {Kind: audit.CommitBegin, Action: id(1), Root: "/r", Brings: []string{id(2)}},
		"twice":    {Kind: audit.RollbackBegin, Action: id(1), Root: "/r", Rollback: audit.Session, Brings: []string{id(2), id(2)}},
		"no id":    {Kind: audit.RollbackBegin, Action: id(1), Root: "/r", Rollback: audit.Session, Brings: []string{"x"}},
	} {
		l := open(t, t.TempDir()+"/log")
		if err := l.Append(e); err == nil {
			t.Errorf("%s is logged", name)
		}
	}
}

// TestHasSnapshot: a snapshot is found wherever in the log it is, also across two pieces.
func TestHasSnapshot(t *testing.T) {
	l := open(t, t.TempDir()+"/log")
	shot := func(n byte) string { return strings.Repeat(string([]byte{'0', 'a' + n}), 32) }
	for i := range 4 {
		must(t, l.Append(audit.Event{Kind: audit.SnapshotTaken, Action: id(1), Root: "/r", Snapshot: shot(byte(i)), Reason: strings.Repeat("x", 8000)}))
		for range 8 * i {
			must(t, l.Append(audit.Event{Kind: audit.Halted, Action: id(1), Root: "/r", Reason: strings.Repeat("y", 997)}))
		}
	}
	for i := range 5 {
		if has, err := l.HasSnapshot(shot(byte(i))); err != nil || has != (i < 4) {
			t.Errorf("%d: %v, %v", i, has, err)
		}
	}
}
