package audit_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestLossAccepted: what a person has accepted is excused, and nothing else: not another record, nor
// one that was put back, nor that the log itself lacks something afterwards. Only this kind names
// what is lost, and only by whole ids, each once.
func TestLossAccepted(t *testing.T) {
	sp := func(n string) audit.Savepoint {
		return audit.Savepoint{ID: strings.Repeat(n, 64), Attempt: id(int(n[0] - '0')), Root: "/r", Mark: "7 " + strings.Repeat("e", 64)}
	}
	l := open(t, filepath.Join(t.TempDir(), "audit.log"))
	must(t, l.Append(audit.Event{Kind: audit.LossAccepted, Action: id(9), Root: "/r", Lost: []string{sp("1").ID, sp("3").ID}, Reason: "looked"}))
	must(t, l.Append(audit.Event{Kind: audit.RolledBack, Action: id(8), Root: "/r", Rollback: audit.Session, Snapshot: sp("4").ID, Actions: []string{id(3)}}))
	var ledger audit.Ledger
	head, err := l.Read(ledger.Add)
	if err != nil || len(head.Open) > 0 || ledger.Accepted() != 2 {
		t.Fatalf("%+v, %v, %d", head, err, ledger.Accepted())
	}
	all := []audit.Savepoint{sp("1"), sp("2"), sp("3")}
	for name, misfits := range map[string][]audit.Misfit{"unlogged": ledger.Unlogged(all), "unsealed": ledger.Unsealed(all), "not undone": ledger.NotUndone(all[:2])} {
		if len(misfits) != 1 || misfits[0].ID != sp("2").ID {
			t.Errorf("%s: %+v", name, misfits)
		}
	}
	if back := ledger.PutBack(all); len(back) != 1 || back[0].ID != sp("3").ID {
		t.Errorf("put back: %+v", back)
	}
	for _, n := range []string{"1", "2"} {
		if taken, pruned := ledger.KnowsSnapshot(sp(n).ID); taken != (n == "1") || pruned {
			t.Errorf("snapshot %s: %v, %v", n, taken, pruned)
		}
	}
	for _, bad := range []audit.Event{
		{Kind: audit.LossAccepted, Action: id(1), Root: "/r"},
		{Kind: audit.LossAccepted, Action: id(1), Root: "/r", Lost: []string{"abc"}},
		{Kind: audit.LossAccepted, Action: id(1), Root: "/r", Lost: []string{sp("1").ID, sp("1").ID}},
		{Kind: audit.Released, Action: id(1), Root: "/r", Lost: []string{sp("1").ID}},
	} {
		if err := l.Append(bad); err == nil {
			t.Errorf("%+v was logged", bad)
		}
	}
}
