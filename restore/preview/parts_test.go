package preview_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// partScene makes five items: two of them decisions, one of another scope, and
// something in the way of the first.
func partScene(t testing.TB) *scene {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha", "b": "beta", "d/1": "one", "d/2": "two", "x": "x"})
	s.Claim(map[string]any{"restore_scopes": map[string]any{"d/": "decisions", "x": "assumptions"}})
	for _, name := range []string{"a", "b", "d/1", "d/2", "x"} {
		must(t, os.Chtimes(filepath.Join(s.Root, name), time.Time{}, time.Unix(1_700_000_000, 0)))
	}
	must(t, os.WriteFile(s.At("a"), []byte("in the way"), 0o644))
	return s
}

// approvals are statements on partScene, and the items that they approve.
var approvals = []struct {
	text  string
	err   error
	items string
}{
	{"Approved: commit the restore preview exactly as proposed.", nil, "a b d/1 d/2"},
	{"Approved: commit the restore preview exactly as proposed. Acknowledge C-001 and C-002.", nil, "a b d/1 d/2"},
	{"Approved: commit the restore preview exactly as proposed. Reject C-002.", preview.ErrUnfit, ""},
	{"Approved: commit the restore preview exactly as proposed. Acknowledge C-003.", preview.ErrUnfit, ""},
	{"Approved: restore item R-002 only. Acknowledge C-001.", nil, "b"},
	{"Approved: restore item R-002 only.", preview.ErrUndecided, ""},
	{"Approved: restore item R-002 only. Resolve C-001.", nil, "b"},
	{"Approved: restore item R-002 only. Reject C-001.", preview.ErrUnfit, ""},
	{"Approved: restore items R-002 to R-004 only. Acknowledge C-001.", nil, "b d/1 d/2"},
	{"Approved: restore items R-001 and R-002 only. Acknowledge C-001.", preview.ErrUndecided, ""},
	{"Approved: restore items R-001 and R-002 only. Acknowledge C-001 and C-002.", nil, "a b"},
	{"Approved: restore items R-001 and R-002 only. Acknowledge C-001. Reject C-002.", nil, "b"},
	{"Approved: restore items R-001 only. Acknowledge C-001. Reject C-002.", preview.ErrUnfit, ""},
	{"Approved: restore item R-005 only. Acknowledge C-001.", preview.ErrUnfit, ""},
	{"Approved: restore item R-006 only. Acknowledge C-001.", preview.ErrUnfit, ""},
	{"Approved: restore items R-002 to R-99999999 only. Acknowledge C-001.", preview.ErrUnfit, ""},
	{"Approved: restore item R-002 only. Do not restore item R-006. Acknowledge C-001.", preview.ErrUnfit, ""},
	{"Approved: restore decisions only. Acknowledge C-001.", nil, "d/1 d/2"},
	{"Approved: restore decisions only. Do not restore item R-004. Acknowledge C-001.", nil, "d/1"},
	{"Approved: restore project state and decisions only. Acknowledge C-001. Reject C-002.", nil, "b d/1 d/2"},
	{"Approved: restore project state only. Do not restore identity-layer items. Acknowledge C-001 and C-002.", nil, "a b"},
	{"Approved: restore assumptions only. Acknowledge C-001.", preview.ErrUnfit, ""},
	{"Approved: restore items R-002 to R-004 only. Do not restore decisions items. Acknowledge C-001.", nil, "b"},
}

// TestApprovals checks the items that each statement approves, or its error.
func TestApprovals(t *testing.T) {
	s := partScene(t)
	p := s.Preview()
	record := kept(t, p)
	for _, c := range approvals {
		a, err := approve(record, p, c.text)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || (a == nil) != (err != nil) {
			t.Errorf("%q: %v, %v", c.text, a, err)
			continue
		}
		if err != nil {
			continue
		}
		var paths []string
		for _, part := range partsOf(t, a) {
			for _, o := range part.Outputs {
				paths = append(paths, o.Path.String())
			}
		}
		if got := strings.Join(paths, " "); got != c.items || a.Whole() {
			t.Errorf("%q approves %q", c.text, got)
		}
	}
}

// TestDecided: a decision of the preview counts as one of the statement, and
// cannot be taken back by it.
func TestDecided(t *testing.T) {
	s := partScene(t)
	s.Asked.Decisions = map[string]statement.Verdict{"C-001": statement.Acknowledged, "C-002": statement.Rejected}
	p := s.Preview()
	if labels := func() map[string]string { b := blockOf(t, p); return b.labels() }(); labels["a"] != "not operator_rejected" {
		t.Errorf("labels %v", labels)
	}
	record := kept(t, p)
	for text, want := range map[string]error{
		"Approved: restore item R-002 only.":                               nil,
		"Approved: commit the restore preview exactly as proposed.":        nil,
		"Approved: restore item R-002 only. Reject C-001.":                 preview.ErrUnfit,
		"Approved: restore item R-001 only.":                               preview.ErrUnfit,
		"Approved: restore item R-002 only. Acknowledge C-002.":            preview.ErrUnfit,
		"Approved: restore item R-002 only. Acknowledge C-001.":            nil,
		"Approved: restore items R-002 and R-003 only. Acknowledge C-001.": nil,
	} {
		if _, err := approve(record, p, text); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for id, verdict := range map[string]statement.Verdict{"C-003": statement.Acknowledged, "C-1": statement.Acknowledged, "": statement.Acknowledged, "C-001": "maybe"} {
		s.Asked.Decisions = map[string]statement.Verdict{id: verdict}
		p, err := preview.New(context.Background(), s.Restore(), s.Request())
		if err == nil || p != nil || !errors.Is(err, preview.ErrDecision) {
			t.Errorf("%s=%s: %v", id, verdict, err)
		}
	}
}

// derive seals the parts of an approval and plans them, as a commit does.
func derive(s *scene, a *preview.Approval) *restore.Restore {
	s.T.Helper()
	key, err := bundle.GenerateKey()
	must(s.T, err)
	place, dirs := s.T.TempDir(), []string{}
	for _, part := range partsOf(s.T, a) {
		dir := filepath.Join(place, part.RunID)
		opts := bundle.KnownOptions{RunDir: dir, Outputs: part.Outputs, Constraints: part.Constraints, Blocks: part.Blocks, Key: key, BuildID: "git:x"}
		if part.Changes != nil {
			opts.Extra = map[string][]byte{bundle.ChangesFile: part.Changes}
		}
		_, err := bundle.SealKnown(context.Background(), opts)
		must(s.T, err)
		dirs = append(dirs, dir)
	}
	c := restore.Candidate{Chain: len(s.Runs) > 1, Runs: restoretest.OpenRuns(s.T, s.Root, dirs...)}
	return restoretest.Plan(s.T, c, s.RestoreRoot)
}

// TestDerived checks that an approval of a part is bound to a restore of exactly that part.
func TestDerived(t *testing.T) {
	s := partScene(t)
	p := s.Preview()
	record := kept(t, p)
	part, err := approve(record, p, "Approved: restore decisions only. Acknowledge C-001.")
	must(t, err)
	less, err := approve(record, p, "Approved: restore item R-003 only. Acknowledge C-001.")
	must(t, err)
	ledger := state(t)
	for name, r := range map[string]*restore.Restore{"the whole": s.Restore(), "less": derive(s, less)} {
		if a, err := part.Accept(r, ledger); !isStale(err) || a != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	derived := derive(s, part)
	elsewhere := s.RestoreRoot
	s.RestoreRoot = t.TempDir()
	if a, err := part.Accept(derive(s, part), ledger); !isStale(err) || a != nil {
		t.Errorf("another root: %v, %v", a, err)
	}
	s.RestoreRoot = elsewhere
	must(t, os.Chmod(filepath.Join(s.Root, "d/1"), 0o755))
	if a, err := part.Accept(derive(s, part), ledger); !isStale(err) || a != nil {
		t.Errorf("another mode: %v, %v", a, err)
	}
	a, err := part.Accept(derived, ledger)
	must(t, err)
	restoretest.Golden(t, "outcome.md", s.Anywhere(p, string(report.Commit(a.Outcome()))), *update)
	raw, err := a.Outcome().JSON()
	must(t, err)
	restoretest.Golden(t, "outcome.json", strings.ReplaceAll(s.Anywhere(p, string(raw)), preview.SourceID(derived.Plan()), "DERIVED"), *update)
	targets, err := a.Targets()
	must(t, err)
	if len(targets) != 2 || targets[0].Path.String() != "d/1" || a.Completed().IsZero() {
		t.Errorf("targets %v, completed %v", targets, a.Completed())
	}
}

// TestDerivedChain checks that a run without an approved item is not in the derived chain.
func TestDerivedChain(t *testing.T) {
	s := bareScene(t)
	for _, id := range []string{"run-1", "run-2", "run-3"} {
		s.Add(id, map[string]string{id + ".txt": id, "x" + id: "x"})
	}
	p := s.Preview()
	ids := "Acknowledge C-001 to C-003."
	a, err := approve(kept(t, p), p, "Approved: restore items R-001, R-005, and R-006 only. "+ids)
	must(t, err)
	var got []string
	for _, part := range partsOf(t, a) {
		for _, o := range part.Outputs {
			got = append(got, part.RunID+"/"+o.Path.String())
		}
		from, _ := part.Constraints["derived_from"].(map[string]any)
		if from["preview_id"] != p.ID() || len(from["bundle_root"].(string)) != 64 || !strings.HasPrefix(from["approval"].(string), "Approved: ") {
			t.Errorf("constraints %v", part.Constraints)
		}
	}
	if diff := cmp.Diff([]string{"run-1/run-1.txt", "run-3/run-3.txt", "run-3/xrun-3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r := derive(s, a)
	if !r.Plan().IsChain() {
		t.Error("no chain")
	}
	accepted, err := a.Accept(r, state(t))
	must(t, err)
	if accepted.Restore() != r {
		t.Error("another restore")
	}
}

// TestNothingProposed checks that an empty proposal cannot be approved.
func TestNothingProposed(t *testing.T) {
	s := partScene(t)
	s.Asked.Scopes = []scope.Scope{scope.MachineReadableState}
	p := s.Preview()
	if p.Recommended() != "" {
		t.Errorf("recommended: %q", p.Recommended())
	}
	if a, err := approve(kept(t, p), p, preview.Exactly); !errors.Is(err, preview.ErrUnfit) || a != nil {
		t.Errorf("nothing is proposed: %v, %v", a, err)
	}
}

func partsOf(t testing.TB, a *preview.Approval) []preview.Part {
	t.Helper()
	parts, err := a.Parts()
	if err != nil {
		t.Fatal(err)
	}
	return parts
}
