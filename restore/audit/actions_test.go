package audit_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestHistory: each action with how it ended, and whether it was undone since.
func TestHistory(t *testing.T) {
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }
	events := []audit.Event{
		{Kind: audit.CommitBegin, Action: "done", Root: "/r", Preview: "p", Snapshot: "s1", Reason: "why"},
		{Kind: audit.SnapshotTaken, Action: "else", Root: "/r", Snapshot: "s1"},
		{Kind: audit.CommitEnd, Action: "done", Root: "/r", Reason: audit.SavepointReason("sp") + "; why"},
		{Kind: audit.CommitBegin, Action: "failed", Root: "/r"},
		{Kind: audit.RolledBack, Action: "failed", Root: "/r", Rollback: audit.Micro, Reason: "disk full"},
		{Kind: audit.CommitBegin, Action: "undone", Root: "/r"},
		{Kind: audit.CommitEnd, Action: "undone", Root: "/r"},
		{Kind: audit.RollbackBegin, Action: "back", Root: "/r", Rollback: audit.Session, Snapshot: "s2", Actions: []string{"undone", "done"}},
		{Kind: audit.RolledBack, Action: "back", Root: "/r", Rollback: audit.Session, Snapshot: "s2", Actions: []string{"undone", "done"}},
		{Kind: audit.RollbackBegin, Action: "again", Root: "/r", Rollback: audit.Session, Snapshot: "s3", Brings: []string{"done"}, Reason: "back"},
		{Kind: audit.RolledBack, Action: "again", Root: "/r", Rollback: audit.Session, Snapshot: "s3", Brings: []string{"done"}, Reason: "back"},
		{Kind: audit.RollbackRefused, Action: "refused", Root: "/r", Rollback: audit.Emergency, Reason: "no snapshot"},
		{Kind: audit.RollbackBegin, Action: "killed", Root: "/r", Rollback: audit.Emergency, Snapshot: "s4", Actions: []string{"done"}},
		{Kind: audit.RolledBack, Action: "killed", Root: "/r", Rollback: audit.Emergency, Reason: "it was found unfinished"},
		{Kind: audit.Halted, Action: "lost beginning", Root: "/q", Reason: "foreign file"},
		{Kind: audit.CommitBegin, Action: "let go", Root: "/r"},
		{Kind: audit.Halted, Action: "let go", Root: "/r", Reason: "foreign file"},
		{Kind: audit.Released, Action: "let go", Root: "/r", Reason: "left: a"},
		{Kind: audit.CommitBegin, Action: "open", Root: "/r"},
		{Kind: audit.Released, Action: "refused", Root: "/r", Reason: "its halt has ended"},
		{Kind: audit.Released, Action: "killed", Root: "/r", Reason: "its halt has ended"},
	}
	var h audit.History
	for i, e := range events {
		h.See(&audit.Entry{Event: e, Sequence: int64(i + 1), Time: at(i), UID: 7, Operator: "me"})
	}
	want := []audit.Action{
		{ID: "done", State: audit.Done, Began: at(0), Ended: at(2), Preview: "p", Savepoint: "sp", Snapshot: "s1", Reason: "why"},
		{ID: "failed", State: audit.Failed, Began: at(3), Ended: at(4), Reason: "disk full"},
		{ID: "undone", State: audit.Done, Began: at(5), Ended: at(6), UndoneBy: "back"},
		{ID: "back", State: audit.Done, Began: at(7), Ended: at(8), Rollback: audit.Session, Snapshot: "s2", Undoes: []string{"undone", "done"}},
		{ID: "again", State: audit.Done, Began: at(9), Ended: at(10), Rollback: audit.Session, Snapshot: "s3", Brings: []string{"done"}, Reason: "back"},
		{ID: "refused", State: audit.Refused, Began: at(11), Ended: at(11), Rollback: audit.Emergency, Reason: "no snapshot"},
		{ID: "killed", State: audit.Failed, Began: at(12), Ended: at(13), Rollback: audit.Emergency, Snapshot: "s4", Undoes: []string{"done"}, Reason: "it was found unfinished"},
		{ID: "lost beginning", Root: "/q", State: audit.Unresolved, Reason: "foreign file"},
		{ID: "let go", State: audit.LeftAsIs, Began: at(15), Ended: at(17), Reason: "left: a"},
		{ID: "open", State: audit.Open, Began: at(18)},
	}
	for i := range want {
		want[i].UID, want[i].Operator = 7, "me"
		if want[i].Root == "" {
			want[i].Root = "/r"
		}
	}
	got := []audit.Action{}
	for _, a := range h.Actions() {
		got = append(got, *a)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
