package preview_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
	"pgregory.net/rapid"
)

// TestDraft: whatever is chosen and decided, a draft approves exactly what is chosen of the items
// that can be approved, and says so when something has yet to be decided.
func TestDraft(t *testing.T) {
	p := restoretest.Mixed(t)
	over := report.Of(p).Overview(0)
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
	for name, p := range map[string]*preview.Preview{"whole": newScene(t).Preview(), "part": restoretest.Mixed(t)} {
		c := preview.Choice{Items: p.Chosen(), Decisions: map[int]statement.Verdict{}}
		d := p.Draft(c)
		if whole := name == "whole"; whole != (len(d.Open) == 0 && d.Why == nil && len(d.Taken) > 0) {
			t.Errorf("%s: exactly what is proposed acknowledges its conflicts, a part does not: %+v", name, d)
		}
		if name == "whole" && (d.Statement != preview.Exactly || !strings.Contains(strings.Join(d.Plan, " "), "acknowledge C-001")) {
			t.Errorf("%+v", d)
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

// TestDraftHeld checks that a candidate in quarantine has no statement.
func TestDraftHeld(t *testing.T) {
	s := newScene(t)
	s.Claim(map[string]any{"artifact_status": "deprecated"})
	p := s.Preview()
	if d := p.Draft(preview.Choice{Items: []int{1, 2}}); d.Statement != "" || d.Why == nil || !report.Of(p).Overview(0).Held {
		t.Errorf("%+v", d)
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
			must(b, os.MkdirAll(s.At(fmt.Sprintf("d%03d", n%100)), 0o755))
			must(b, os.WriteFile(s.At(fmt.Sprintf("d%03d/f%05d", n%100, n)), []byte("y"), 0o644))
		}
	}
	s.Add("run-1", files)
	p := s.Preview()
	chosen := p.Chosen()
	b.Run("overview", func(b *testing.B) {
		for b.Loop() {
			report.Of(p).Overview(0)
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
