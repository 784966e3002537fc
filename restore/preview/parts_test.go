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
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// partScene makes five items: two of them decisions, one of another scope, and
// something in the way of the first.
func partScene(t testing.TB) *scene {
	s := bareScene(t)
	s.add("run-1", map[string]string{"a": "alpha", "b": "beta", "d/1": "one", "d/2": "two", "x": "x"})
	s.claim(map[string]any{"restore_scopes": map[string]any{"d/": "decisions", "x": "assumptions"}})
	for _, name := range []string{"a", "b", "d/1", "d/2", "x"} {
		must(t, os.Chtimes(filepath.Join(s.Root, name), time.Time{}, time.Unix(1_700_000_000, 0)))
	}
	must(t, os.WriteFile(s.at("a"), []byte("in the way"), 0o644))
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

// TestApprovals: what each statement approves, or why it does not.
func TestApprovals(t *testing.T) {
	s := partScene(t)
	p := s.preview()
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
	s.asked.Decisions = map[string]statement.Verdict{"C-001": statement.Acknowledged, "C-002": statement.Rejected}
	p := s.preview()
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
		s.asked.Decisions = map[string]statement.Verdict{id: verdict}
		p, err := preview.New(context.Background(), s.restore(), s.request())
		if err == nil || p != nil || !errors.Is(err, preview.ErrDecision) {
			t.Errorf("%s=%s: %v", id, verdict, err)
		}
	}
}

// derive seals the parts of an approval and plans them, as a commit does.
func (s *scene) derive(a *preview.Approval) *restore.Restore {
	s.t.Helper()
	key, err := bundle.GenerateKey()
	must(s.t, err)
	place, dirs := s.t.TempDir(), []string{}
	for _, part := range partsOf(s.t, a) {
		dir := filepath.Join(place, part.RunID)
		opts := bundle.KnownOptions{RunDir: dir, Outputs: part.Outputs, Constraints: part.Constraints, Key: key, BuildID: "git:x"}
		if part.Changes != nil {
			opts.Extra = map[string][]byte{bundle.ChangesFile: part.Changes}
		}
		_, err := bundle.SealKnown(context.Background(), opts)
		must(s.t, err)
		dirs = append(dirs, dir)
	}
	c := restore.Candidate{Chain: len(s.runs) > 1, Runs: restoretest.OpenRuns(s.t, s.Root, dirs...)}
	return restoretest.Plan(s.t, c, s.root)
}

// TestDerived: an approval of a part is bound to a restore of exactly that part.
func TestDerived(t *testing.T) {
	s := partScene(t)
	p := s.preview()
	record := kept(t, p)
	part, err := approve(record, p, "Approved: restore decisions only. Acknowledge C-001.")
	must(t, err)
	less, err := approve(record, p, "Approved: restore item R-003 only. Acknowledge C-001.")
	must(t, err)
	ledger := state(t)
	for name, r := range map[string]*restore.Restore{"the whole": s.restore(), "less": s.derive(less)} {
		if a, err := part.Accept(r, ledger); !isStale(err) || a != nil {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	derived := s.derive(part)
	elsewhere := s.root
	s.root = t.TempDir()
	if a, err := part.Accept(s.derive(part), ledger); !isStale(err) || a != nil {
		t.Errorf("another root: %v, %v", a, err)
	}
	s.root = elsewhere
	must(t, os.Chmod(filepath.Join(s.Root, "d/1"), 0o755))
	if a, err := part.Accept(s.derive(part), ledger); !isStale(err) || a != nil {
		t.Errorf("another mode: %v, %v", a, err)
	}
	a, err := part.Accept(derived, ledger)
	must(t, err)
	golden(t, "outcome.md", s.anywhere(p, string(a.Outcome().Markdown())))
	raw, err := a.Outcome().JSON()
	must(t, err)
	golden(t, "outcome.json", strings.ReplaceAll(s.anywhere(p, string(raw)), preview.SourceID(derived.Plan()), "DERIVED"))
	targets, err := a.Targets()
	must(t, err)
	if len(targets) != 2 || targets[0].Path.String() != "d/1" || a.Completed().IsZero() {
		t.Errorf("targets %v, completed %v", targets, a.Completed())
	}
}

// TestDerivedChain: a run of which nothing is approved is not part of it.
func TestDerivedChain(t *testing.T) {
	s := bareScene(t)
	for _, id := range []string{"run-1", "run-2", "run-3"} {
		s.add(id, map[string]string{id + ".txt": id, "x" + id: "x"})
	}
	p := s.preview()
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
	r := s.derive(a)
	if !r.Plan().IsChain() {
		t.Error("no chain")
	}
	accepted, err := a.Accept(r, state(t))
	must(t, err)
	if accepted.Restore() != r {
		t.Error("another restore")
	}
}

// TestNothingProposed: there is nothing to approve.
func TestNothingProposed(t *testing.T) {
	s := partScene(t)
	s.asked.Scopes = []scope.Scope{scope.MachineReadableState}
	p := s.preview()
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
