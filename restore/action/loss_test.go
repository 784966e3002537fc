package action_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestAcceptLoss: the log excuses exactly the records of which the loss was accepted.
func TestAcceptLoss(t *testing.T) {
	w := newFixture(t)
	state := w.state()
	defer state.Close()
	f, err := state.AuditLog()
	must(t, err)
	log := audit.New(f)
	defer log.Close()
	lost := []string{strings.Repeat("a", 64), strings.Repeat("b", 64)}
	must(t, action.AcceptLoss(log, w.root, lost, "the loss stays", "the disk broke"))
	var ledger audit.Ledger
	var entry audit.Entry
	_, err = log.Read(func(e audit.Entry) error { entry = e; return ledger.Add(e) })
	must(t, err)
	if !slices.Equal(entry.Lost, lost) || entry.Root != w.root || entry.Reason != `the loss stays; "the disk broke"` || entry.Action == "" {
		t.Errorf("%+v", entry)
	}
	if !ledger.Accepts(lost[0]) || !ledger.Accepts(lost[1]) || ledger.Accepts(strings.Repeat("c", 64)) {
		t.Error("the ledger accepts another loss")
	}
	if err := action.AcceptLoss(log, w.root, nil, "nothing is lost", ""); err == nil {
		t.Error("the loss of nothing was accepted")
	}
}
