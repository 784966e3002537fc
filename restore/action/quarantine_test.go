package action_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestVagueIsHeld: a vague answer for one run holds it, alone and in a chain, until a person
// releases it.
func TestVagueIsHeld(t *testing.T) {
	s := newScene(t, "chain")
	open := func(dirs ...string) (preview.Origin, *preview.Preview) {
		t.Helper()
		origin := preview.Origin{RunDirs: dirs, RestoreRoot: s.root, Chain: len(dirs) > 1}
		r := restoretest.Plan(t, restore.Candidate{Chain: len(dirs) > 1, Runs: restoretest.OpenRuns(t, s.Root, dirs...)}, s.root)
		p, err := preview.New(t.Context(), r, preview.Request{Origin: origin})
		must(t, err)
		return origin, p
	}
	place := t.TempDir()
	must(t, os.Chmod(place, 0o700))
	store, err := quarantine.Open(place, func(quarantine.Change) error { return nil })
	must(t, err)
	defer store.Close()
	one, p := open(s.runDirs()[0])
	chain, both := open(s.runDirs()...)
	must(t, action.CheckQuarantine(t.Context(), store, one, p))
	must(t, action.CheckQuarantine(t.Context(), store, chain, both))
	must(t, action.CheckRecorded(t.Context(), store, p.Source()))
	raw, err := p.Keep()
	must(t, err)
	record, err := preview.ParseRecord(raw, p.ID())
	must(t, err)
	vague := errors.New("looks good")
	err = action.HoldVague(t.Context(), store, record, "looks good", vague)
	var said *action.VagueError
	if !errors.As(err, &said) || !errors.Is(err, vague) || said.Source != p.Source() || said.Preview != record.ID() || said.Error() != vague.Error() {
		t.Errorf("%v", err)
	}
	for origin, p := range map[*preview.Origin]*preview.Preview{&one: p, &chain: both} {
		var held *quarantine.HeldError
		if err := action.CheckQuarantine(t.Context(), store, *origin, p); !errors.As(err, &held) || len(held.Marks) != 1 || held.Marks[0].Rule != quarantine.ApprovalVague {
			t.Errorf("%v", err)
		}
		if marks, changed, err := action.Assess(t.Context(), store, *origin, p); err != nil || len(marks) != 1 || changed {
			t.Errorf("%v, %v, %v", marks, changed, err)
		}
	}
	var held *quarantine.HeldError
	if err := action.CheckRecorded(t.Context(), store, p.Source()); !errors.As(err, &held) || held.Source != p.Source() || len(held.Marks) != 1 {
		t.Errorf("by its record: %v", err)
	}
	must(t, action.AssessUntrusted(t.Context(), store, one, p.Source(), nil))
	_, err = store.Release(t.Context(), p.Source(), "asked")
	must(t, err)
	must(t, action.CheckRecorded(t.Context(), store, p.Source()))
	must(t, action.CheckQuarantine(t.Context(), store, chain, both))
}

// TestDerive: the approved part of a run is a run of its own, sealed by the host.
func TestDerive(t *testing.T) {
	s := newScene(t, "single")
	r := restoretest.Plan(t, restore.Candidate{Runs: restoretest.OpenRuns(t, s.Root, s.runDirs()...)}, s.root)
	p, err := preview.New(t.Context(), r, preview.Request{Origin: preview.Origin{RunDirs: s.runDirs(), RestoreRoot: s.root}})
	must(t, err)
	raw, err := p.Keep()
	must(t, err)
	record, err := preview.ParseRecord(raw, p.ID())
	must(t, err)
	said, err := statement.Parse("Approved: restore items R-001 only. Acknowledge C-001.")
	must(t, err)
	approval, err := record.Approve(p, said)
	must(t, err)
	key, err := bundle.GenerateKey()
	must(t, err)
	host := action.Host{Key: key, BuildID: "git:abc1234"}
	place, heard := t.TempDir(), 0
	dirs, err := action.Derive(t.Context(), approval, host, place, func(string) { heard++ })
	if err != nil || len(dirs) != 1 || heard != 1 {
		t.Fatalf("%q, %d heard, %v", dirs, heard, err)
	}
	part := restoretest.Plan(t, restore.Candidate{Runs: restoretest.OpenRuns(t, s.Root, dirs...)}, s.root)
	if n := part.Plan().Files(); n != 1 || approval.Whole() {
		t.Errorf("%d files", n)
	}
	if _, err := action.Derive(t.Context(), approval, host, filepath.Join(dirs[0], "TASK_SPEC.json"), func(string) {}); err == nil {
		t.Error("sealed in a file")
	}
}

// TestQuarantineIsLogged: each change of a quarantine is in the audit log, with the rule, what was found and
// why it was released; a change that cannot be logged is an error.
func TestQuarantineIsLogged(t *testing.T) {
	w := newFixture(t)
	log := action.LogQuarantine(w.logger)
	source := strings.Repeat("a", 64)
	change := quarantine.Change{
		Kind: quarantine.Holds, Candidate: quarantine.Candidate{Source: source, RestoreRoot: w.root},
		Mark: quarantine.Mark{Finding: quarantine.Finding{Rule: quarantine.ApprovalVague, Detail: "sure"}},
	}
	for _, want := range []struct {
		change quarantine.ChangeKind
		kind   audit.Kind
		reason string
	}{
		{quarantine.Holds, audit.Quarantined, "approval_vague: sure"},
		{quarantine.Clears, audit.QuarantineCleared, "approval_vague: sure"},
		{quarantine.Releases, audit.QuarantineReleased, "asked (approval_vague: sure)"},
	} {
		change.Kind, change.Mark.Released = want.change, &quarantine.Release{Reason: "asked"}
		must(t, log(change))
		if e := w.lastEntry(); e.Kind != want.kind || e.Reason != want.reason || e.Candidate != source || audit.RootOf(e.Root) != w.root {
			t.Errorf("logged %+v, want %+v", e.Event, want)
		}
	}
	shut := action.LogQuarantine(func() (*audit.Log, error) { return nil, fs.ErrPermission })
	if err := shut(change); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("not logged: %v", err)
	}
}

// TestNewestHeld: of the candidates that are held, for one root or for all, the one that was quarantined last.
func TestNewestHeld(t *testing.T) {
	at := func(sec int64) quarantine.Mark { return quarantine.Mark{Since: time.Unix(sec, 0)} }
	cleared := at(9)
	cleared.Cleared = &cleared.Since
	records := []quarantine.Record{
		{Candidate: quarantine.Candidate{Source: "old", RestoreRoot: "/one"}, Marks: []quarantine.Mark{at(1), at(3)}},
		{Candidate: quarantine.Candidate{Source: "new", RestoreRoot: "/two"}, Marks: []quarantine.Mark{at(5)}},
		{Candidate: quarantine.Candidate{Source: "cleared", RestoreRoot: "/one"}, Marks: []quarantine.Mark{cleared}},
		{Candidate: quarantine.Candidate{Source: "older", RestoreRoot: "/one"}, Marks: []quarantine.Mark{at(2)}},
	}
	for root, want := range map[string]string{"": "new", "/one": "old", "/two": "new", "/three": ""} {
		if got := action.NewestHeld(records, root); got != want {
			t.Errorf("%q: %q, want %q", root, got, want)
		}
	}
}
