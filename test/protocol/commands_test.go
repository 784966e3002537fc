package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// commandChecks are those of section 4.
func commandChecks() map[string]check {
	return map[string]check{
		"4.1 a candidate is reviewed":                reviewed,
		"4.1 preview alters nothing":                 altersNothing,
		"4.1.1 reads the candidate":                  readsCandidate,
		"4.1.2 identifies the scope":                 identifiesScope,
		"4.1.3 classifies all items":                 classifiesAll,
		"4.1.4 compares with current state":          compares,
		"4.1.5 produces a conflict register":         registers,
		"4.1.6 flags stale, restricted and identity": flags,
		"4.1.7 recommends a plan":                    recommends,
		"4.1.8 requests approval":                    requestsApproval,

		"4.2 applies only what was approved":          appliesOnlyApproved,
		"4.2 needs a preview":                         needsPreview,
		"4.2 needs an approval":                       needsApproval,
		"4.2 needs a scope":                           needsScope,
		"4.2 needs conflicts decided":                 needsDecisions,
		"4.2 restricted context approved or excluded": restrictedExcluded,
		"4.2 identity layer approved or excluded":     identityExcluded,
		"4.2 checklist passed":                        checklistPassed,
		"4.2 a savepoint at once":                     savepointAtOnce,
	}
}

func reviewed(t *testing.T, s *stage) {
	var answer struct {
		Root string `json:"bundle_root"`
	}
	harness.Must(t, json.Unmarshal([]byte(s.full.Must(t, "verify", "--json", s.full.runs[0]).Stdout), &answer))
	if answer.Root == "" || s.plain.Source != answer.Root {
		t.Errorf("the preview is of %q, the candidate is %q", s.plain.Source, answer.Root)
	}
}

func altersNothing(t *testing.T, _ *stage) {
	w := newFull(t)
	w.crowd(t)
	before, project := w.tree(t), harness.FilesIn(t, w.Dir)
	stamp, err := harness.Stamp(w.root)
	harness.Must(t, err)
	w.show(t)
	w.preview(t, append(everyScope(), "--agent", "builder", "--html", filepath.Join(t.TempDir(), "page.html"))...)
	after, err := harness.Stamp(w.root)
	harness.Must(t, err)
	if diff := harness.Diff(before, w.tree(t)); diff != "" || stamp != after {
		t.Errorf("times %s, then %s\n%s", stamp, after, diff)
	}
	for _, page := range []string{"page.html", "state/page.html", "../root/page.html"} {
		if r := w.ask(t, "--html", filepath.Join(w.root, page)); r.Status != 1 || r.Answer.Code != "REFUSED" || harness.Diff(before, w.tree(t)) != "" {
			t.Errorf("a page beneath the root: %v", r)
		}
	}
	if !maps.Equal(project, harness.FilesIn(t, w.Dir)) {
		t.Error("the candidate has changed")
	}
	if len(w.savepoints(t)) != 0 {
		t.Error("there is a savepoint")
	}
}

func readsCandidate(t *testing.T, _ *stage) {
	for name, damage := range map[string]func(w *fixture) string{
		"an output":   func(w *fixture) string { return w.Source("state/1.txt") },
		"an artifact": func(w *fixture) string { return filepath.Join(w.runs[0], "TASK_SPEC.json") },
	} {
		w := newFull(t)
		path := damage(w)
		raw, err := os.ReadFile(path)
		harness.Must(t, err)
		raw[len(raw)/2] ^= 1
		harness.Must(t, os.WriteFile(path, raw, 0o644))
		if r := w.ask(t); r.Status != 1 || r.Answer.Phase != "PREFLIGHT" || strings.Contains(r.Stdout, "preview_id") {
			t.Errorf("%s: %v", name, r)
		}
	}
}

func identifiesScope(t *testing.T, s *stage) {
	for _, b := range []block{s.plain.block, s.wide.block, s.knot.block} {
		if len(b.Scope) == 0 {
			t.Error("no scope")
		}
		for _, i := range b.all() {
			if !slices.ContainsFunc(scopes, func(s struct{ name, dir string }) bool { return s.name == i.Scope }) {
				t.Errorf("%+v", i)
			}
		}
	}
}

func classifiesAll(t *testing.T, s *stage) {
	want := fullForgery().files.Names()
	for name, b := range map[string]block{"plain": s.plain.block, "wide": s.wide.block, "foreign": s.foreign.block, "crowded": s.crowded.block} {
		var paths []string
		for n, i := range b.all() {
			paths = append(paths, i.Path)
			if i.ID != fmt.Sprintf("R-%03d", n+1) || i.Label == "" || i.Class == "" {
				t.Errorf("%s: %+v", name, i)
			}
		}
		if !slices.Equal(paths, want) {
			t.Errorf("%s: %q, want %q", name, paths, want)
		}
	}
}

func compares(t *testing.T, s *stage) {
	for path, class := range map[string]string{"state/1.txt": "create", "state/same.txt": "identical", "state/taken.txt": "conflict"} {
		if i := s.crowded.item(t, path); i.Class != class {
			t.Errorf("want %s: %+v", class, i)
		}
	}
}

func registers(t *testing.T, s *stage) {
	for _, b := range []block{s.crowded.block, s.knot.block, s.old.block, s.foreign.block} {
		if len(b.Conflicts) == 0 {
			t.Error("no conflict")
		}
		for n, c := range b.Conflicts {
			if c.ID != fmt.Sprintf("C-%03d", n+1) {
				t.Errorf("%+v is number %d", c, n+1)
			}
		}
	}
}

func flags(t *testing.T, s *stage) {
	for _, want := range []struct {
		block       block
		path, label string
	}{
		{s.old.block, "state/1.txt", "superseded"},
		{s.old.block, "questions/1.txt", "historical_only"},
		{s.plain.block, "vault/1.txt", "privacy_restricted"},
		{s.wide.block, "vault/1.txt", "privacy_restricted"},
		{s.foreign.block, "identity/1.txt", "identity_layer_nontransferable"},
		{s.wide.block, "identity/1.txt", "requires_operator_confirmation"},
	} {
		if i := want.block.item(t, want.path); i.Label != want.label {
			t.Errorf("want %s: %+v", want.label, i)
		}
	}
	if s.plain.Identity["identity_layer_present"] != true || s.plain.Privacy["restricted_context_present"] != true {
		t.Errorf("%v, %v", s.plain.Identity, s.plain.Privacy)
	}
}

// The recommended plan can be carried out as it is, where it does not go all the
// way too.
func recommends(t *testing.T, s *stage) {
	if s.plain.Approval.Statement != exactly {
		t.Errorf("%q", s.plain.Approval.Statement)
	}
	w := newFull(t)
	w.crowd(t)
	b := w.preview(t)
	if b.Approval.Statement == exactly || b.Approval.Statement == "" {
		t.Fatalf("%q", b.Approval.Statement)
	}
	if r := w.commit(t, b.ID, b.Approval.Statement); r.Status != 0 {
		t.Error(r)
	}
	files := w.files(t)
	for _, i := range b.Proposed {
		if _, there := files[i.Path]; !there {
			t.Errorf("%+v is not there", i)
		}
	}
	if files["state/taken.txt"] != "not yours\n" {
		t.Errorf("%q", files["state/taken.txt"])
	}
}

func requestsApproval(t *testing.T, s *stage) {
	for _, b := range []block{s.plain.block, s.crowded.block, s.knot.block} {
		var want []string
		for _, i := range b.Proposed {
			want = append(want, i.ID)
		}
		for _, c := range b.Conflicts {
			want = append(want, c.ID)
		}
		if b.Approval.Status != "pending" || !slices.Equal(b.Approval.Required, want) {
			t.Errorf("want %v: %+v", want, b.Approval)
		}
	}
}

func appliesOnlyApproved(t *testing.T, s *stage) {
	got := s.commit.fixture.files(t)
	want := harness.Files{
		"state/1.txt": "project_state\n", "decided/1.txt": "decisions\n",
		"state/same.txt": "same\n", "state/taken.txt": "not yours\n",
		"RESTORE_MANIFEST.json": got["RESTORE_MANIFEST.json"], "RESTORE_REPORT.json": got["RESTORE_REPORT.json"],
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || want["RESTORE_REPORT.json"] == "" {
		t.Errorf("%q, want %q", got, want)
	}
}

func needsPreview(t *testing.T, _ *stage) {
	w := newFull(t)
	w.refused(t, strings.Repeat("0", 64), exactly, 4, "APPROVAL_REQUIRED")
	if r := w.Run(t, nil, "commit", "--json", "--approve", exactly); r.Status != 64 {
		t.Error(r)
	}
	b := w.preview(t)
	other := newFixture(t)
	other.State = filepath.Join(t.TempDir(), "state")
	harness.Must(t, os.Mkdir(other.State, 0o700))
	other.refused(t, b.ID, exactly, 4, "APPROVAL_REQUIRED")
}

func needsApproval(t *testing.T, _ *stage) {
	w := newFull(t)
	before := w.tree(t)
	b := w.preview(t)
	for _, args := range [][]string{
		{"commit", "--json", "--preview", b.ID},
		append([]string{"commit", "--json", "--restore-root", w.root}, w.runs...),
	} {
		if r := w.Run(t, nil, args...); r.Status != 4 || harness.Diff(before, w.tree(t)) != "" {
			t.Error(r)
		}
	}
}

func needsScope(t *testing.T, _ *stage) {
	w := newFull(t)
	b := w.preview(t)
	w.refused(t, b.ID, "Approved: restore assumptions only.", 4, "APPROVAL_UNFIT")
	w.refused(t, b.ID, "Approved: restore everything only.", 4, "APPROVAL_VAGUE")
}

func needsDecisions(t *testing.T, _ *stage) {
	w := newFixture(t).forge(t, "run-1", forgery{files: harness.Files{"a.txt": "a\n"}})
	b := w.preview(t)
	c := b.conflict(t, "authority_conflict")
	w.refused(t, b.ID, "Approved: restore item R-001 only.", 4, "APPROVAL_INCOMPLETE")
	if r := w.commit(t, b.ID, "Approved: restore item R-001 only. Acknowledge "+c.ID+"."); r.Status != 0 {
		t.Error(r)
	}
}

// excluded: what is in a protected scope is not in a default restore, cannot be
// named in its approval, and is there when it was asked for and approved.
func excluded(t *testing.T, path string, flags ...string) {
	w := newFull(t)
	b := w.preview(t, "--agent", "builder")
	i := b.item(t, path)
	if has(b.Proposed, path) {
		t.Errorf("%+v is proposed", i)
	}
	w.refused(t, b.ID, "Approved: restore item "+i.ID+" only.", 4, "APPROVAL_UNFIT")
	if r := w.commit(t, b.ID, exactly); r.Status != 0 {
		t.Fatal(r)
	}
	if _, there := w.files(t)[path]; there {
		t.Errorf("%s was restored", path)
	}
	w.clear(t)
	b = w.preview(t, flags...)
	i = b.item(t, path)
	statement := exactly
	if i.Scope == "restricted_context" { // only a statement that names it restores it
		w.refused(t, b.ID, exactly, 4, "APPROVAL_UNFIT")
		statement = "Approved: restore item " + i.ID + " only. Acknowledge " + b.conflict(t, "privacy_conflict").ID + "."
	}
	if r := w.commit(t, b.ID, statement); r.Status != 0 {
		t.Fatal(r)
	}
	if _, there := w.files(t)[path]; !there {
		t.Errorf("%s was not restored", path)
	}
}

func restrictedExcluded(t *testing.T, _ *stage) {
	excluded(t, "vault/1.txt", "--scope", "restricted_context")
}

func identityExcluded(t *testing.T, _ *stage) {
	excluded(t, "identity/1.txt", "--scope", "same_agent_identity_layer", "--agent", "builder")
}

// Nothing that can be asked for makes the program answer "no": what the check
// would stop is not proposed in the first place. That a "no" stops a commit is
// tested with the package (TestNoStops).
func checklistPassed(t *testing.T, s *stage) {
	for name, b := range map[string]block{
		"plain": s.plain.block, "wide": s.wide.block, "foreign": s.foreign.block, "crowded": s.crowded.block, "knot": s.knot.block, "old": s.old.block,
	} {
		if len(b.Checks) < 8 {
			t.Errorf("%s: %d checks", name, len(b.Checks))
		}
		for _, c := range b.Checks {
			if c.Answer != "yes" && c.Answer != "after the commit" {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

func savepointAtOnce(t *testing.T, s *stage) {
	all := s.commit.fixture.savepoints(t)
	if len(all) != 1 || all[0].Files != 2 {
		t.Errorf("%+v", all)
	}
	if !strings.Contains(s.commit.reply.Stderr, "savepoint "+all[0].ID) {
		t.Errorf("%v does not name %s", s.commit.reply, all[0].ID)
	}
}
