package preview_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// changeScene has a change set that makes app of "old", and more, and removes gone, and .env. What the
// producer started from is there.
func changeScene(t *testing.T) *scene {
	t.Helper()
	s := bareScene(t)
	run := s.add("run-1", map[string]string{"app": "new\n", "more": "more\n"})
	run.SetChanges(fmt.Sprintf(`{"base":{".env":%q,"app":%q,"gone":%q,"more":null},"executable":[],"form":1,"removes":[".env","gone"]}`,
		bundletest.Hash("KEY=1\n"), bundletest.Hash("old\n"), bundletest.Hash("bye\n")))
	for path, content := range map[string]string{".env": "KEY=1\n", "app": "old\n", "gone": "bye\n"} {
		must(t, os.WriteFile(s.at(path), []byte(content), 0o644))
	}
	return s
}

// TestChangesShown: removals have numbers among the outputs, in the order of their paths, and one of a
// name that usually holds secrets is not proposed unasked.
func TestChangesShown(t *testing.T) {
	s := changeScene(t)
	p := s.preview()
	var report bytes.Buffer
	must(t, p.WriteReport(&report))
	for _, want := range []string{
		"restore R-002 to R-004; do not restore R-001; replace what is at the targets of R-002, which a rollback brings back; remove what is at the targets of R-003, which a rollback brings back",
		"the existing file of 4 bytes is removed; a rollback brings it back",
	} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report does not have %q", want)
		}
	}
}

// TestChangesVoid: a change at a removed path voids the approval, one elsewhere in the root does not.
func TestChangesVoid(t *testing.T) {
	s := changeScene(t)
	record := kept(t, s.preview())
	must(t, os.WriteFile(s.at("elsewhere"), []byte("log"), 0o600))
	if _, err := approve(record, s.preview(), exactly); err != nil {
		t.Error(err)
	}
	must(t, os.WriteFile(s.at("gone"), []byte("mine"), 0o600))
	if _, err := approve(record, s.preview(), exactly); !isStale(err) {
		t.Error(err)
	}
}

// TestDivergedDecisions: what has diverged is never approved until it was decided with =replace.
func TestDivergedDecisions(t *testing.T) {
	s := changeScene(t)
	must(t, os.WriteFile(s.at("app"), []byte("mine\n"), 0o644))
	p := s.preview()
	if _, err := approve(kept(t, p), s.preview(), "Approved: restore items R-002 only. Acknowledge C-001."); err == nil {
		t.Error("what has diverged was approved")
	}
	const conflict = "C-002" // the first is that no validator is pinned
	for verdict, want := range map[statement.Verdict]string{preview.Keep: "gone more", preview.Replace: "app gone more"} {
		s.asked.Decisions = map[string]statement.Verdict{conflict: verdict}
		p := s.preview()
		a, err := approve(kept(t, p), s.preview(), exactly)
		must(t, err)
		parts, err := a.Parts()
		must(t, err)
		var paths []string
		for _, path := range []string{"app", "gone", "more"} {
			if bytes.Contains(parts[0].Changes, []byte(`"`+path+`":`)) {
				paths = append(paths, path)
			}
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s approves %s, want %s", verdict, got, want)
		}
		if r := s.derive(a); r.Blocked() != nil != (verdict == preview.Replace) {
			t.Errorf("%s: %v", verdict, r.Blocked())
		} else if a.Overrule(r); r.Blocked() != nil {
			t.Errorf("%s: %v", verdict, r.Blocked())
		}
	}
	s.asked.Decisions = map[string]statement.Verdict{"C-001": preview.Replace}
	if _, err := preview.New(t.Context(), s.restore(), s.request()); err == nil {
		t.Error("a conflict that is about no file was decided as one")
	}
}

// TestDivergedSummary: a screen of 80 columns says how a file that has diverged is decided, and
// later how it was.
func TestDivergedSummary(t *testing.T) {
	s := changeScene(t)
	must(t, os.WriteFile(s.at("app"), []byte("mine\n"), 0o644))
	for verdict, want := range map[statement.Verdict]string{
		"":              "C-002 state_conflict: preview with --decide C-002=replace or =keep",
		preview.Keep:    "C-002 state_conflict: decided: keep",
		preview.Replace: "C-002 state_conflict: decided: replace",
	} {
		s.asked.Decisions = nil
		if verdict != "" {
			s.asked.Decisions = map[string]statement.Verdict{"C-002": verdict}
		}
		if text := summary(t, s.preview(), preview.Screen{Columns: 80, Lines: 24}); !strings.Contains(text, want+"\n") {
			t.Errorf("%s: no %q in\n%s", verdict, want, text)
		}
	}
}

// TestDivergedPage: the page is for those who may read the file that has diverged, whose lines it shows.
func TestDivergedPage(t *testing.T) {
	s := changeScene(t)
	must(t, os.Chmod(s.root, 0o755))
	if perm := s.preview().PagePerm(); perm != 0o644 {
		t.Errorf("without a private file: %v", perm)
	}
	must(t, os.WriteFile(s.at("app"), []byte("mine\n"), 0o644))
	must(t, os.Chmod(s.at("app"), 0o600))
	p := s.preview()
	var page bytes.Buffer
	must(t, p.WritePage(t.Context(), &page, ""))
	if !strings.Contains(page.String(), "mine") {
		t.Error("the page does not show the file")
	}
	if perm := p.PagePerm(); perm != 0o600 {
		t.Errorf("with a private file: %v", perm)
	}
}
