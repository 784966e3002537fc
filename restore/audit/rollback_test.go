package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// shot is the id of a snapshot.
var shot = strings.Repeat("0a", 32)

// undoing is the entries of a rollback, and those before it.
func undoing() []audit.Event {
	return []audit.Event{
		{Kind: audit.CommitBegin, Action: id(1), Root: "/r"},
		{Kind: audit.CommitEnd, Action: id(1), Root: "/r", Reason: audit.SavepointReason(sp(1))},
		{Kind: audit.SnapshotTaken, Action: id(5), Root: "/r", Snapshot: shot, Reason: "pre_action"},
		{Kind: audit.RollbackBegin, Action: id(5), Root: "/r", Rollback: audit.Session, Snapshot: shot, Actions: []string{id(1), id(2)}, Reason: "not wanted"},
		{Kind: audit.RolledBack, Action: id(5), Root: "/r", Rollback: audit.Session, Snapshot: shot, Actions: []string{id(1), id(2)}},
		{Kind: audit.SnapshotPruned, Action: id(6), Root: "/r", Snapshot: shot},
	}
}

func sp(n int) string { return strings.Repeat(id(n)[:4], 15) + id(n)[32:] }

// loggedAll logs these events and returns the log.
func loggedAll(t testing.TB, events []audit.Event) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path)
	for _, e := range events {
		must(t, l.Append(e))
	}
	raw, err := os.ReadFile(path)
	must(t, err)
	return raw
}

// TestRollbackEvents: a rollback begins and ends; a snapshot does neither.
func TestRollbackEvents(t *testing.T) {
	raw := loggedAll(t, undoing())
	entries, head := read(t, raw)
	events := make([]audit.Event, 0, len(entries))
	var open []bool
	for _, e := range entries {
		events = append(events, e.Event)
		open = append(open, len(e.Open) == 1)
	}
	if diff := cmp.Diff(undoing(), events); diff != "" {
		t.Error(diff)
	}
	if want := []bool{true, false, false, true, false, false}; !slices.Equal(open, want) || len(head.Open) != 0 {
		t.Errorf("open: %v, not %v", open, want)
	}
	if n := bytes.Count(raw, []byte(`"affected"`)); n != 2 {
		t.Errorf("%d lines name other actions, not 2", n)
	}
}

// TestRollbackForms: what an event of a rollback or of a snapshot must have, and
// what no other may.
func TestRollbackForms(t *testing.T) {
	begin := audit.Event{Kind: audit.RollbackBegin, Action: id(9), Root: "/r", Rollback: audit.Session}
	with := func(change func(*audit.Event)) audit.Event {
		e := begin
		change(&e)
		return e
	}
	for name, e := range map[string]audit.Event{
		"no type":         with(func(e *audit.Event) { e.Rollback = "" }),
		"micro":           with(func(e *audit.Event) { e.Rollback = audit.Micro }),
		"another type":    with(func(e *audit.Event) { e.Rollback = "mini" }),
		"no id":           with(func(e *audit.Event) { e.Actions = []string{"x"} }),
		"empty id":        with(func(e *audit.Event) { e.Actions = []string{""} }),
		"another form":    with(func(e *audit.Event) { e.Actions = []string{"{" + id(1) + "}"} }),
		"twice":           with(func(e *audit.Event) { e.Actions = []string{id(1), id(2), id(1)} }),
		"of a candidate":  {Kind: audit.Quarantined, Action: id(9), Root: "/r", Candidate: source, Actions: []string{id(1)}},
		"snapshot, none":  {Kind: audit.SnapshotTaken, Action: id(9), Root: "/r"},
		"snapshot, short": {Kind: audit.SnapshotPruned, Action: id(9), Root: "/r", Snapshot: shot[1:]},
		"snapshot, type":  {Kind: audit.SnapshotTaken, Action: id(9), Root: "/r", Snapshot: shot, Rollback: audit.Session},
		"snapshot, root":  {Kind: audit.SnapshotPruned, Action: id(9), Snapshot: shot},
	} {
		if err := open(t, filepath.Join(t.TempDir(), "log")).Append(e); err == nil {
			t.Errorf("%s: logged", name)
		}
	}
	must(t, open(t, filepath.Join(t.TempDir(), "log")).Append(begin))
}

// TestAffectedForms: a line names other actions in one form.
func TestAffectedForms(t *testing.T) {
	raw := loggedAll(t, undoing()[3:4])
	read(t, raw)
	member := `"affected":["` + id(1) + `","` + id(2) + `"]`
	for _, to := range []string{
		`"affected":[]`, `"affected":null`, `"affected":"` + id(1) + `"`, `"affected":[1]`, `"affected":{}`, `"affected":[["` + id(1) + `"]]`,
		`"affected":["` + id(1) + `","` + id(1) + `"]`, `"affected":["` + strings.Replace(id(1), "-", "", 1) + `"]`, `"affected":["",""]`,
		`"affected":["` + id(1) + `", "` + id(2) + `"]`, `"actions":["` + id(1) + `"]`, member + "," + member,
	} {
		changed := bytes.Replace(raw, []byte(member), []byte(to), 1)
		if bytes.Equal(changed, raw) {
			t.Fatalf("the line does not hold %s: %s", member, raw)
		}
		if !damaged(changed) {
			t.Errorf("%s is taken", to)
		}
	}
}

// TestLedger: a log without its end, and a store without its newest.
func TestLedger(t *testing.T) {
	commits := func(reason func(int) string) []audit.Event {
		var events []audit.Event
		for n := 1; n <= 3; n++ {
			events = append(events,
				audit.Event{Kind: audit.CommitBegin, Action: id(n), Root: "/r"},
				audit.Event{Kind: audit.CommitEnd, Action: id(n), Root: "/r", Reason: reason(n)})
		}
		return events
	}
	whole := commits(func(n int) string { return audit.SavepointReason(sp(n)) })
	chain := []audit.Savepoint{{ID: sp(1), Attempt: id(1), Root: "/r"}, {ID: sp(2), Attempt: id(2), Root: "/r"}, {ID: sp(3), Attempt: id(3), Root: "/r"}}
	session := func(kind audit.Kind, actions ...string) audit.Event {
		return audit.Event{Kind: kind, Action: id(8), Root: "/r", Rollback: audit.Session, Actions: actions}
	}
	for _, test := range []struct {
		name   string
		events []audit.Event
		chain  []audit.Savepoint
		want   []audit.Fault
	}{
		{"whole", whole, chain, nil},
		{"nothing", nil, nil, nil},
		{"no log", nil, chain, []audit.Fault{audit.NotBegun, audit.NotBegun, audit.NotBegun}},
		{"last end cut", whole[:5], chain, []audit.Fault{audit.NotEnded}},
		{"last commit cut", whole[:4], chain, []audit.Fault{audit.NotBegun}},
		{"newest removed", whole, chain[:2], []audit.Fault{audit.NotKept}},
		{"middle removed", whole, slices.Delete(slices.Clone(chain), 1, 2), []audit.Fault{audit.NotKept}},
		{"all removed", whole, nil, []audit.Fault{audit.NotKept, audit.NotKept, audit.NotKept}},
		{"replaced", commits(func(n int) string { return audit.SavepointReason(sp(n + 1)) })[:2], chain[:1], []audit.Fault{audit.NotNamed, audit.NotKept}},
		{"not named", commits(func(int) string { return "" })[:2], chain[:1], []audit.Fault{audit.NotNamed}},
		{"order", slices.Concat(whole[2:4], whole[:2]), chain[:2], []audit.Fault{audit.NotInOrder}},
		{"order of two roots", whole[:4], []audit.Savepoint{{ID: sp(2), Attempt: id(2), Root: "/a"}, {ID: sp(1), Attempt: id(1), Root: "/b"}}, nil},
		{"last end replaced", append(slices.Clone(whole[:5]), audit.Event{Kind: audit.RolledBack, Action: id(3), Root: "/r", Rollback: audit.Emergency}), chain, []audit.Fault{audit.NotCompleted}},
		{"last end guessed first", slices.Insert(slices.Clone(whole), 5, audit.Event{Kind: audit.RolledBack, Action: id(3), Root: "/r", Rollback: audit.Emergency}), chain, nil},
		{"rolled back", append(slices.Clone(whole), session(audit.RolledBack, id(3))), chain[:2], nil},
		{"being rolled back", append(slices.Clone(whole), session(audit.RollbackBegin, id(3))), chain[:2], nil},
		{"rolled back by its own id", append(slices.Clone(whole), audit.Event{Kind: audit.RolledBack, Action: id(3), Root: "/r", Rollback: audit.Session}), chain[:2], nil},
		{"another rolled back", append(slices.Clone(whole), session(audit.RolledBack, id(2))), chain[:2], []audit.Fault{audit.NotKept}},
		{"rolled back before", append([]audit.Event{{Kind: audit.RolledBack, Action: id(3), Root: "/r", Rollback: audit.Emergency}}, whole...), chain[:2], []audit.Fault{audit.NotKept}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := ledgerOf(t, test.events)
			var got []audit.Fault
			for _, m := range slices.Concat(l.Unlogged(test.chain), l.Unkept(test.chain)) {
				got = append(got, m.Fault)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// ledgerOf reads a log of these events into a ledger.
func ledgerOf(t testing.TB, events []audit.Event) *audit.Ledger {
	t.Helper()
	var l audit.Ledger
	_, err := audit.Read(bytes.NewReader(loggedAll(t, events)), l.Add)
	must(t, err)
	return &l
}

// TestExcused: a rollback that was logged meanwhile accounts for a savepoint that
// is gone, and for nothing else.
func TestExcused(t *testing.T) {
	l := ledgerOf(t, undoing())
	gone := audit.Misfit{Savepoint: audit.Savepoint{ID: sp(1), Attempt: id(1)}, Fault: audit.NotKept}
	others := []audit.Misfit{
		{Savepoint: audit.Savepoint{ID: sp(4), Attempt: id(4)}, Fault: audit.NotKept},
		{Savepoint: audit.Savepoint{ID: sp(1), Attempt: id(1)}, Fault: audit.NotNamed},
	}
	if diff := cmp.Diff(others, l.Excused(append(slices.Clone(others), gone))); diff != "" {
		t.Error(diff)
	}
}

// TestMarks: a log that was written anew with its whole chain, behind what a savepoint
// signs, is found, with the first entry that no longer fits and the last that does.
func TestMarks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	write := func(reasons ...string) (marks []string) {
		t.Helper()
		must(t, os.RemoveAll(name))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		must(t, err)
		log := audit.New(f)
		defer log.Close()
		for n := 0; ; n++ {
			mark, err := log.Mark()
			must(t, err)
			marks = append(marks, mark)
			if n == len(reasons) {
				return marks
			}
			must(t, log.Append(audit.Event{Kind: audit.Halted, Action: id(n), Root: "/r", Reason: reasons[n]}))
		}
	}
	read := func() *audit.Ledger {
		t.Helper()
		f, err := os.Open(name)
		must(t, err)
		defer f.Close()
		var l audit.Ledger
		_, err = audit.Read(f, l.Add)
		must(t, err)
		return &l
	}
	marks := write("a", "b", "c", "d")
	chain := []audit.Savepoint{{ID: sp(0), Mark: marks[0]}, {ID: "old"}, {ID: sp(2), Mark: marks[2]}, {ID: sp(3), Mark: marks[3]}, {ID: sp(4), Mark: marks[4]}}
	if got := read().Unsealed(chain); len(got) > 0 {
		t.Errorf("the log as it was: %v", got)
	}
	for from, first := range map[int]int64{0: 2, 1: 2, 2: 3, 3: 4} { // times differ too: all from there on is new
		raw, err := os.ReadFile(name)
		must(t, err)
		lines := strings.SplitAfter(string(raw), "\n")
		must(t, os.WriteFile(name, []byte(strings.Join(lines[:from], "")), 0o600))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0o600)
		must(t, err)
		log := audit.New(f)
		for n := from; n < 5; n++ {
			must(t, log.Append(audit.Event{Kind: audit.Halted, Action: id(n), Root: "/r", Reason: "anew"}))
		}
		must(t, log.Close())
		got := read().Unsealed(chain)
		fits := map[int64]int64{2: 0, 3: 2, 4: 3}[first]
		if len(got) != int(5-first) || got[0].ID != sp(int(first)) || got[0].Entry != first || got[0].Fault != audit.Rewritten || got[0].Fits != fits {
			t.Errorf("anew from entry %d: %+v", from+1, got)
		}
		must(t, os.WriteFile(name, raw, 0o600))
	}
	must(t, os.WriteFile(name, nil, 0o600))
	if got := read().Unsealed(chain); len(got) != 3 || got[0].Fault != audit.NotReached || got[0].Entry != 2 {
		t.Errorf("an empty log: %+v", got)
	}
	for _, mark := range []string{"x", "1", "-1 " + strings.Repeat("0", 64), "01 " + strings.Repeat("0", 64), "0 " + strings.Repeat("1", 64)} {
		if got := read().Unsealed([]audit.Savepoint{{ID: sp(1), Mark: mark}}); len(got) != 1 {
			t.Errorf("%q: %+v", mark, got)
		}
	}
}
