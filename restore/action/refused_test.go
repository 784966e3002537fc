package action_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestRejectedIsLogged: a rollback or a restore that could not begin is in the log, with what
// it was of and why (rollback contract, sections 11 and 12); one that is done is not there
// as rejected.
func TestRejectedIsLogged(t *testing.T) {
	w := newFixture(t)
	first := w.mustCommit(map[string]string{"a": "alpha"})
	taken := w.take()
	w.remove("RESTORE_REPORT.json")
	w.remove("RESTORE_MANIFEST.json")
	second := w.mustCommit(map[string]string{"b": "beta"})
	if _, err := w.undo(first, false); err == nil {
		t.Fatal("a commit that others build on was undone alone")
	}
	if _, err := w.restoreSome(taken, w.some("nothing")); err == nil {
		t.Fatal("nothing was restored")
	}
	w.checkRefused(map[int]string{0: second, 1: "the snapshot has no entry there"}, first)
	_, err := w.undo(first, true)
	must(t, err)
	w.checkRefused(map[int]string{0: second, 1: "the snapshot has no entry there"}, first)
}

// checkRefused requires these reasons of refusals in the log, and the first to be about a commit.
func (w *fixture) checkRefused(reasons map[int]string, of string) {
	w.t.Helper()
	state := w.state()
	defer state.Close()
	f, err := state.AuditLog()
	must(w.t, err)
	log := audit.New(f)
	defer log.Close()
	n := 0
	head, err := log.Read(func(e audit.Entry) error {
		if e.Kind != audit.RollbackRefused {
			return nil
		}
		if !strings.Contains(e.Reason, reasons[n]) || e.Rollback != audit.Session || n == 0 && !slices.Equal(e.Actions, []string{of}) {
			w.t.Errorf("refusal %d: %+v, want %q", n, e.Event, reasons[n])
		}
		n++
		return nil
	})
	if err != nil || n != len(reasons) || len(head.Open) > 0 {
		w.t.Errorf("%d refusals in the log, want %d; %d open, %v", n, len(reasons), len(head.Open), err)
	}
}
