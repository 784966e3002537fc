package preview_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"pgregory.net/rapid"
)

// mixed is a preview with all kinds of items: free, in the way, of several scopes, restricted, not
// proposed.
func mixed(t testing.TB) *preview.Preview {
	s := bareScene(t)
	files := map[string]string{".env": "SECRET=1", "z/.env": "SECRET=2", "taken": "new", "assumed": "x"}
	for n := range 12 {
		files[fmt.Sprintf("notes/n%02d", n)] = "note"
		files[fmt.Sprintf("src/f%02d", n)] = "source"
	}
	s.add("run-1", files)
	s.claim(map[string]any{"restore_scopes": map[string]any{"notes/": "decisions", "assumed": "assumptions"}})
	s.asked.Scopes = []scope.Scope{scope.ProjectState, scope.Decisions, scope.OpenQuestions, scope.RestrictedContext}
	must(t, os.WriteFile(filepath.Join(s.root, "taken"), []byte("old"), 0o644))
	return s.preview()
}

// TestDraft: whatever is chosen and decided, a draft approves exactly what is chosen of the items
// that can be approved, and says so when something has yet to be decided.
func TestDraft(t *testing.T) {
	p := mixed(t)
	over := p.Overview(0)
	record := kept(t, p)
	rapid.Check(t, func(rt *rapid.T) {
		c := preview.Choice{Decisions: map[int]statement.Verdict{}}
		want := map[string]bool{}
		many := rapid.IntRange(0, 4).Draw(rt, "of four")
		for _, i := range over.Items {
			if i.Free && rapid.IntRange(0, 3).Draw(rt, i.ID) < many {
				c.Items, want[i.Path] = append(c.Items, i.Number), true
			}
		}
		for _, x := range over.Conflicts {
			verdict := rapid.SampledFrom(append(statement.Verdicts(), "")).Draw(rt, x.ID)
			if verdict == statement.Rejected && len(x.Items) == 0 || verdict == "" {
				continue
			}
			c.Decisions[x.Number] = verdict
			for _, n := range x.Items {
				if verdict == statement.Rejected {
					delete(want, over.Items[n-1].Path)
				}
			}
		}
		d := p.Draft(c)
		if len(want) == 0 {
			if d.Statement != "" || d.Why == nil {
				rt.Fatalf("nothing is chosen: %+v", d)
			}
			return
		}
		if len(d.Items) != len(want) {
			rt.Fatalf("%d items, want %d: %+v", len(d.Items), len(want), d)
		}
		approval, err := approve(record, p, d.Statement)
		if len(d.Open) > 0 {
			if !errors.Is(d.Why, preview.ErrUndecided) {
				rt.Fatalf("%q lacks %v: %v", d.Statement, d.Open, d.Why)
			}
			for _, n := range d.Open {
				c.Decisions[n] = statement.Acknowledged
			}
			d = p.Draft(c)
			approval, err = approve(record, p, d.Statement)
		}
		if err != nil || d.Why != nil {
			rt.Fatalf("%q: %v, %v", d.Statement, err, d.Why)
		}
		got := map[string]bool{}
		parts, err := approval.Parts()
		if err != nil {
			rt.Fatal(err)
		}
		for _, part := range parts {
			for _, o := range part.Outputs {
				got[o.Path.String()] = true
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%q approves %v, want %v", d.Statement, got, want)
		}
	})
}

// TestDraftBegins: the first choice is what the preview recommends, and with all conflicts
// acknowledged it is approved as that.
func TestDraftBegins(t *testing.T) {
	for name, p := range map[string]*preview.Preview{"whole": newScene(t).preview(), "part": mixed(t)} {
		c := preview.Choice{Items: p.Chosen(), Decisions: map[int]statement.Verdict{}}
		d := p.Draft(c)
		if len(d.Open) == 0 || d.Why == nil {
			t.Errorf("%s: nobody has decided anything: %+v", name, d)
		}
		for _, n := range d.Open {
			c.Decisions[n] = statement.Acknowledged
		}
		d = p.Draft(c)
		if d.Why != nil || !slices.Equal(d.Items, p.Chosen()) || len(d.Plan) == 0 {
			t.Errorf("%s: %+v", name, d)
		}
		if whole := strings.HasPrefix(d.Statement, preview.Exactly); whole != (name == "whole") {
			t.Errorf("%s: %q", name, d.Statement)
		}
	}
}

// TestDraftHeld: what is in quarantine has no statement.
func TestDraftHeld(t *testing.T) {
	s := newScene(t)
	s.claim(map[string]any{"artifact_status": "deprecated"})
	p := s.preview()
	if d := p.Draft(preview.Choice{Items: []int{1, 2}}); d.Statement != "" || d.Why == nil || !p.Overview(0).Held {
		t.Errorf("%+v", d)
	}
}

// TestOverview: it has every item and every conflict, and each knows of the other.
func TestOverview(t *testing.T) {
	p := mixed(t)
	v := p.Overview(1 << 30)
	if v.ID != p.ID() || len(v.Items) != 28 || v.Word != "IN PART" || v.Grade != preview.Fair || !strings.Contains(fmt.Sprint(v.Facts), "free") {
		t.Errorf("%+v", v)
	}
	fates := map[string]preview.Fate{".env": preview.Created, "taken": preview.Conflicting, "assumed": preview.LeftAside, "src/f00": preview.Created}
	for n, i := range v.Items {
		if want, ok := fates[i.Path]; i.Number != n+1 || ok && i.Fate != want || i.Free != (i.Fate == preview.Created) {
			t.Errorf("%+v", i)
		}
		if i.Restricted != strings.HasSuffix(i.Path, ".env") {
			t.Errorf("restricted: %+v", i)
		}
		for _, c := range i.Conflicts {
			if !slices.Contains(v.Conflicts[c-1].Items, i.Number) {
				t.Errorf("%s and %+v", i.ID, v.Conflicts[c-1])
			}
		}
	}
	if got := strings.Join(p.Summary(), "\n"); strings.Contains(got, "\x1b") || !strings.Contains(got, "signed by") {
		t.Errorf("%q", got)
	}
}

// BenchmarkDraft is what a review does of 20,000 files, every tenth of which exists: once, and
// with each choice.
func BenchmarkDraft(b *testing.B) {
	s := bareScene(b)
	files := map[string]string{}
	for n := range 20_000 {
		files[fmt.Sprintf("d%03d/f%05d", n%100, n)] = "x"
		if n%10 == 0 {
			must(b, os.MkdirAll(s.at(fmt.Sprintf("d%03d", n%100)), 0o755))
			must(b, os.WriteFile(s.at(fmt.Sprintf("d%03d/f%05d", n%100, n)), []byte("y"), 0o644))
		}
	}
	s.add("run-1", files)
	p := s.preview()
	chosen := p.Chosen()
	b.Run("overview", func(b *testing.B) {
		for b.Loop() {
			p.Overview(0)
			p.Chosen()
		}
	})
	half := []int{}
	for n := 0; n < len(chosen); n += 2 {
		half = append(half, chosen[n])
	}
	for name, items := range map[string][]int{"recommended": chosen, "every second": half} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Draft(preview.Choice{Items: items})
			}
		})
	}
}

// TestFates: each fate that a summary has is one of an overview.
func TestFates(t *testing.T) {
	words := []string{"blocked", "conflict", "diverged", "remove", "replace", "create", "identical", "left out"}
	for f, want := range words {
		if got := preview.Fate(f).String(); got != want {
			t.Errorf("%d: %q, want %q", f, got, want)
		}
	}
	if preview.Diverged.String() != "diverged" || preview.Removed.String() != "remove" || int(preview.LeftAside) != len(words)-1 {
		t.Errorf("%d", preview.LeftAside)
	}
}
