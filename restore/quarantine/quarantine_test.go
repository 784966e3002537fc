package quarantine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/quarantine"
)

// private is a directory that a store can be in.
func private(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	return dir
}

// open opens a store, any number of times; log may be nil.
func open(t testing.TB, path string, log quarantine.Log) *quarantine.Store {
	t.Helper()
	if log == nil {
		log = func(quarantine.Change) error { return nil }
	}
	s, err := quarantine.Open(path, log)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// candidate is one whose source id is made of a hex digit.
func candidate(digit string) quarantine.Candidate {
	return quarantine.Candidate{Source: strings.Repeat(digit, 64), RestoreRoot: "/root", RunDirs: []string{"/p/r1", "/p/r2"}}
}

// findings reads "rule detail" for each.
func findings(words ...string) (found []quarantine.Finding) {
	for _, w := range words {
		rule, detail, _ := strings.Cut(w, " ")
		found = append(found, quarantine.Finding{Rule: quarantine.Rule(rule), Detail: detail})
	}
	return found
}

// words are marks as findings reads them.
func words(marks []quarantine.Mark) (words []string) {
	for _, m := range marks {
		words = append(words, string(m.Rule)+" "+m.Detail)
	}
	return words
}

// changeWords are changes with "kind rule detail" for each.
func changeWords(changes []quarantine.Change) (out []string) {
	for _, c := range changes {
		out = append(out, string(c.Kind)+" "+words([]quarantine.Mark{c.Mark})[0])
	}
	return out
}

func want(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// judge requires a judgement to hold by these marks.
func judge(t testing.TB, s *quarantine.Store, c quarantine.Candidate, found []quarantine.Finding, holds ...string) []quarantine.Change {
	t.Helper()
	asked, err := s.Held(t.Context(), c, found)
	must(t, err)
	want(t, "asked", words(asked), holds...)
	held, changed, err := s.Update(t.Context(), c, found)
	must(t, err)
	want(t, "judged", words(held), holds...)
	return changed
}

// TestMarksComeAndGo: what is computed comes and goes, what is sticky stays, a release covers
// these words.
func TestMarksComeAndGo(t *testing.T) {
	path, c, vague := private(t), candidate("a"), findings("approval_vague sure")[0]
	s := open(t, path, nil)
	if changed := judge(t, s, c, nil); len(changed) > 0 {
		t.Errorf("changed %v", changed)
	}
	if names, err := os.ReadDir(path); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	both := findings("artifact_status rejected", "cross_agent_identity b")
	want(t, "new", changeWords(judge(t, s, c, both, "cross_agent_identity b", "artifact_status rejected")), "hold artifact_status rejected", "hold cross_agent_identity b")
	must(t, s.Hold(t.Context(), c, vague))
	must(t, s.Hold(t.Context(), c, vague))
	want(t, "same", changeWords(judge(t, s, c, both, "cross_agent_identity b", "artifact_status rejected", "approval_vague sure")))
	want(t, "one less", changeWords(judge(t, s, c, both[:1], "artifact_status rejected", "approval_vague sure")), "clear cross_agent_identity b")
	released, err := s.Release(t.Context(), c.Source, "looked at")
	must(t, err)
	want(t, "released", words(released.Marks), "artifact_status rejected", "approval_vague sure")
	if _, err := s.Release(t.Context(), c.Source, "again"); !errors.Is(err, quarantine.ErrNotHeld) {
		t.Errorf("released twice: %v", err)
	}
	s = open(t, path, nil)
	judge(t, s, c, both[:1])
	judge(t, s, c, nil)
	judge(t, s, c, both[:1]) // covered also after it was gone
	want(t, "back", changeWords(judge(t, s, c, both, "cross_agent_identity b")), "hold cross_agent_identity b")
	judge(t, s, c, findings("artifact_status deprecated"), "artifact_status deprecated")
	must(t, s.Hold(t.Context(), c, vague))
	judge(t, s, c, nil, "approval_vague sure")
	judge(t, s, candidate("b"), nil)
}

// TestShow: a record has all marks with what became of them, and who did it.
func TestShow(t *testing.T) {
	s, c := open(t, private(t), nil), candidate("a")
	c.RestoreRoot = "/\xff"
	judge(t, s, c, findings("artifact_status x", "machine_readable_contradiction y"), "machine_readable_contradiction y", "artifact_status x")
	judge(t, s, c, findings("artifact_status x"), "artifact_status x")
	released, err := s.Release(t.Context(), "aaaaaaaa", "ok")
	must(t, err)
	r, err := s.Show(t.Context(), "aaaaaaaaa")
	must(t, err)
	if diff := cmp.Diff(r.Candidate, released.Candidate); diff != "" || r.RestoreRoot != `"/\xff"` || r.Source != c.Source || len(r.RunDirs) != 2 {
		t.Errorf("%+v %s", r.Candidate, diff)
	}
	if diff := cmp.Diff(r.Marks[:1], released.Marks); diff != "" {
		t.Error(diff)
	}
	m := r.Marks[0]
	if m.State() != "released" || m.Released.Reason != "ok" || m.Released.Operator == "" || m.Released.Time.Before(m.Since) || m.Since.IsZero() {
		t.Errorf("%+v", m)
	}
	if m := r.Marks[1]; m.State() != "cleared" || m.Cleared.Before(m.Since) || m.Held() {
		t.Errorf("%+v", m)
	}
	if len(r.Held()) != 0 {
		t.Errorf("held by %v", r.Held())
	}
	all, err := s.List(t.Context())
	if diff := cmp.Diff([]quarantine.Record{r}, all); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestNames: a candidate is named by its source id or a beginning that only it has.
func TestNames(t *testing.T) {
	s := open(t, private(t), nil)
	one, two := candidate("a"), candidate("a")
	two.Source = strings.Repeat("a", 63) + "b"
	for _, c := range []quarantine.Candidate{two, one} {
		judge(t, s, c, findings("artifact_status x"), "artifact_status x")
	}
	all, err := s.List(t.Context())
	must(t, err)
	if len(all) != 2 || all[0].Source != one.Source || all[1].Source != two.Source {
		t.Errorf("%+v", all)
	}
	for name, known := range map[string]error{
		one.Source: nil, two.Source: nil, one.Source[:63]: quarantine.ErrAmbiguous, "aaaaaaaa": quarantine.ErrAmbiguous, "aaaa": quarantine.ErrAmbiguous,
		"aaa": quarantine.ErrUnknown, "": quarantine.ErrUnknown, "aaaaaaab": quarantine.ErrUnknown, one.Source + "a": quarantine.ErrUnknown,
		"AAAAAAAA": quarantine.ErrUnknown, "../aaaaaaaa": quarantine.ErrUnknown, strings.Repeat("b", 64): quarantine.ErrUnknown,
	} {
		r, err := s.Show(t.Context(), name)
		if !errors.Is(err, known) || known == nil && r.Source != name || known != nil && r.Source != "" {
			t.Errorf("%q: %q, %v", name, r.Source, err)
		}
		if known == nil {
			continue
		}
		if r, err := s.Release(t.Context(), name, "ok"); !errors.Is(err, known) || r.Source != "" {
			t.Errorf("release of %q: %v", name, err)
		}
	}
}

// TestRejected: what makes no sense is not kept, and is not a judgement.
func TestRejected(t *testing.T) {
	path := private(t)
	s, good := open(t, path, nil), findings("artifact_status x")
	vague := findings("approval_vague x")
	long := quarantine.Finding{Rule: quarantine.ArtifactStatus, Detail: strings.Repeat("x", quarantine.MaxDetail+1)}
	relative, upper, nowhere, runs := candidate("a"), candidate("A"), candidate("a"), candidate("a")
	relative.RestoreRoot, nowhere.RestoreRoot, runs.RunDirs = "root", "", []string{"r1"}
	for name, test := range map[string]struct {
		c     quarantine.Candidate
		found []quarantine.Finding
	}{
		"relative": {relative, good}, "upper case": {upper, good}, "no root": {nowhere, good}, "run": {runs, good}, "no source": {quarantine.Candidate{}, good},
		"rule": {candidate("a"), findings("status x")}, "no detail": {candidate("a"), findings("artifact_status")}, "long": {candidate("a"), []quarantine.Finding{long}},
		"bytes": {candidate("a"), findings("artifact_status \xff")}, "not so": {candidate("a"), vague},
	} {
		if held, changed, err := s.Update(t.Context(), test.c, test.found); err == nil || held != nil || changed != nil {
			t.Errorf("%s: judged %v, %v", name, held, changed)
		}
		if held, err := s.Held(t.Context(), test.c, test.found); err == nil || held != nil {
			t.Errorf("%s: held by %v", name, held)
		}
	}
	for name, f := range map[string]quarantine.Finding{"computed": good[0], "no detail": {Rule: quarantine.ApprovalVague}} {
		if s.Hold(t.Context(), candidate("a"), f) == nil {
			t.Errorf("%s is kept", name)
		}
	}
	if s.Hold(t.Context(), relative, vague[0]) == nil {
		t.Error("a relative root is kept")
	}
	if names, err := os.ReadDir(path); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestReasons: a release has a reason, on one line.
func TestReasons(t *testing.T) {
	s, c := open(t, private(t), nil), candidate("a")
	for _, reason := range []string{"", " ", "a\nb", "a\rb", "a\u2028b", "a\x00", "a\x1b[2J", "\xff", strings.Repeat("x", 1001)} {
		must(t, s.Hold(t.Context(), c, findings("approval_vague x")[0]))
		if _, err := s.Release(t.Context(), c.Source, reason); !errors.Is(err, quarantine.ErrReason) {
			t.Errorf("%q: %v", reason, err)
		}
	}
	_, err := s.Release(t.Context(), c.Source, strings.Repeat("\u00e9", 500))
	must(t, err)
}

// TestOpenRejects: the directory is there, ours and private, and no link.
func TestOpenRejects(t *testing.T) {
	dir := private(t)
	must(t, os.Mkdir(filepath.Join(dir, "open"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Symlink(private(t), filepath.Join(dir, "link")))
	for _, name := range []string{"open", "file", "link", "none"} {
		if s, err := quarantine.Open(filepath.Join(dir, name), nil); err == nil || s != nil {
			t.Errorf("%s was opened", name)
		}
	}
	t.Chdir(dir)
	if s, err := quarantine.Open("../"+filepath.Base(dir), nil); err == nil || s != nil {
		t.Error("a relative path was opened")
	}
}

// TestMarksAreLimited: a record has room for a limited number of marks. Marks that hold are never dropped,
// and a dropped mark never frees a candidate.
func TestMarksAreLimited(t *testing.T) {
	s, c := open(t, private(t), nil), candidate("a")
	var found []quarantine.Finding
	for i := range quarantine.MaxMarks {
		found = append(found, quarantine.Finding{Rule: quarantine.ArtifactStatus, Detail: fmt.Sprint(i)})
	}
	held, _, err := s.Update(t.Context(), c, found)
	if err != nil || len(held) != len(found) {
		t.Fatalf("%d marks, %v", len(held), err)
	}
	if _, _, err := s.Update(t.Context(), c, append(found, findings("artifact_status more")...)); err == nil {
		t.Error("one more was kept")
	}
	if err := s.Hold(t.Context(), c, findings("approval_vague x")[0]); err == nil {
		t.Error("one more was held")
	}
	_, err = s.Release(t.Context(), c.Source, "all of them")
	must(t, err)
	must(t, s.Hold(t.Context(), c, findings("approval_vague x")[0]))
	judge(t, s, c, found[1:], "approval_vague x")
	held, _, err = s.Update(t.Context(), c, found[:1])
	must(t, err)
	want(t, "forgotten", words(held), "artifact_status 0", "approval_vague x")
}

// TestConcurrentChanges: many change one directory at once, through two stores: nothing is
// lost, and nothing is logged twice.
func TestConcurrentChanges(t *testing.T) {
	path := private(t)
	var mu sync.Mutex
	logged := map[string]int{}
	log := func(c quarantine.Change) error {
		mu.Lock()
		defer mu.Unlock()
		logged[c.Candidate.Source[:1]+" "+changeWords([]quarantine.Change{c})[0]]++
		return nil
	}
	stores := []*quarantine.Store{open(t, path, log), open(t, path, log)}
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for i := range 8 {
				s, c := stores[(n+i)%2], candidate([]string{"a", "b"}[i%2])
				if err := s.Hold(t.Context(), c, quarantine.Finding{Rule: quarantine.ApprovalVague, Detail: fmt.Sprint(n, i)}); err != nil {
					t.Error(err)
				}
				if held, _, err := s.Update(t.Context(), c, findings("artifact_status x")); err != nil || len(held) < 2 {
					t.Errorf("held by %q, %v", words(held), err)
				}
				if _, err := s.List(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	all, err := stores[0].List(t.Context())
	must(t, err)
	for _, r := range all {
		if len(r.Held()) != 33 {
			t.Errorf("candidate %s is held by %d marks", r.Source, len(r.Held()))
		}
	}
	if len(all) != 2 || len(logged) != 66 {
		t.Errorf("%d candidates, %d changes", len(all), len(logged))
	}
	for change, n := range logged {
		if n != 1 {
			t.Errorf("%q was logged %d times", change, n)
		}
	}
}

// TestHeldLockBlocksNoOther: a process that has the lock and does not release it cannot block others for ever.
func TestHeldLockBlocksNoOther(t *testing.T) {
	path := private(t)
	s, c := open(t, path, nil), candidate("a")
	holder, err := pathsafe.OpenRoot(path)
	must(t, err)
	must(t, holder.TryLock())
	if _, _, err := quarantine.Hurried(s).Update(t.Context(), c, nil); !errors.Is(err, pathsafe.ErrLocked) {
		t.Errorf("judged: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Held(ctx, c, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("asked: %v", err)
	}
	holder.Close()
	judge(t, s, c, nil)
}

// TestClosedStoreFreesNothing: a store that was closed judges no candidate free.
func TestClosedStoreFreesNothing(t *testing.T) {
	s := open(t, private(t), nil)
	must(t, s.Close())
	_, _, judgeErr := s.Update(t.Context(), candidate("a"), nil)
	_, heldErr := s.Held(t.Context(), candidate("a"), nil)
	_, listErr := s.List(t.Context())
	for what, err := range map[string]error{"judge": judgeErr, "held": heldErr, "list": listErr} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestHeldError(t *testing.T) {
	s, c := open(t, private(t), nil), candidate("a")
	held, _, err := s.Update(t.Context(), c, findings("artifact_status y", "artifact_status x\n", "source_unknown_high_impact z"))
	must(t, err)
	want(t, "error", []string{(&quarantine.HeldError{Source: c.Source, Marks: held}).Error()},
		"candidate "+c.Source+" is quarantined: source_unknown_high_impact, artifact_status")
}
