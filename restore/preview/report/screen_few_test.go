package report_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// TestSummaryNamesFew: the names of a few files that change are there on a screen of any size, before
// the advice on conflicts, the files that stay as they are, and the empty lines.
func TestSummaryNamesFew(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{"report/notes.md": "new", "report/summary.md": "new", "data/07/station-2001.csv": "new", "deploy/.env": "secret"}
	for n := range 500 {
		name := fmt.Sprintf("data/station-%04d.csv", n)
		files[name] = "same"
		must(t, os.MkdirAll(s.At("data"), 0o755))
		must(t, os.WriteFile(s.At(name), []byte("same"), 0o644))
	}
	s.Add("run-1", files)
	s.Asked.Replace = true
	p := s.Preview()
	command := strings.Repeat("word ", 20)
	next := []report.Row{{Name: "approve", Value: command}, {Name: "trust", Value: command}, {Name: "see more", Value: command}, {Name: "report", Value: command}}
	for _, columns := range []int{40, 60, 80, 120} {
		for _, lines := range []int{5, 20, 24, 30, 40, 100} {
			text := summary(t, p, report.Screen{Columns: columns, Lines: lines, Free: 1 << 30, Next: next, After: 1})
			if n := strings.Count(text, "  create     "); n != 3 || !strings.Contains(text, "notes.md") || !strings.Contains(text, "summary.md") || !strings.Contains(text, "2001.csv") {
				t.Errorf("%dx%d: not every file that is made has a row:\n%s", columns, lines, text)
			}
		}
	}
	longer := screenLines("  to         "+s.RestoreRoot, 80) - 1 // the lines that a long TMPDIR takes
	fits, err := report.Of(p).WriteSummary(context.Background(), &strings.Builder{}, report.Screen{Columns: 80, Lines: 24 + longer, Free: 1 << 30, Next: next, After: 1})
	must(t, err)
	if !fits {
		t.Error("it does not fit on 24 lines")
	}
}

// TestSummaryResolves: a way to resolve conflicts of each type is there on a screen of any size, and
// what has no room is counted.
func TestSummaryResolves(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{}
	for n := range 11 {
		name := fmt.Sprintf("src/file-%02d", n)
		files[name] = "new"
		must(t, os.MkdirAll(s.At("src"), 0o755))
		must(t, os.WriteFile(s.At(name), []byte([]string{"old", "old", "new"}[n%3]), 0o644))
	}
	s.Add("run-1", files)
	p := s.Preview()
	long := strings.TrimSpace(strings.Repeat("word ", 16))
	next := []report.Row{{Name: "replace", Value: long}, {Name: "trust", Value: long}, {Name: "see more", Value: long}, {Name: "report", Value: long}}
	for _, columns := range []int{40, 60, 80, 120} {
		for _, lines := range []int{5, 20, 24, 30, 40, 100} {
			text := strings.Join(strings.Fields(summary(t, p, report.Screen{Columns: columns, Lines: lines, Next: next})), " ")
			_, kinds, _ := strings.Cut(text, " resolve ")
			shown := 0
			for _, kind := range []string{": compare this validator_id", ": preview again with --replace", ": leave these files"} {
				if strings.Contains(kinds, kind) {
					shown++
				}
			}
			if !strings.Contains(kinds, ": compare this validator_id") || !strings.Contains(kinds, ": preview again with --replace") {
				t.Errorf("%dx%d: a type of conflict has no row:\n%s", columns, lines, text)
			}
			if shown < 3 && !strings.Contains(kinds, fmt.Sprintf("and %d more: --report", 3-shown)) {
				t.Errorf("%dx%d: %d of 3 rows, and no number of others:\n%s", columns, lines, shown, text)
			}
		}
	}
}

// TestSummaryCutsNoCommand: a command is there whole, or in its short form, on a screen of any size.
func TestSummaryCutsNoCommand(t *testing.T) {
	p := changedScene(t, 300)
	next := []report.Row{
		{Name: "approve", Value: "spectrum commit " + strings.Repeat("statement ", 12) + "end", Short: "spectrum commit --preview 0a1b2c3d"},
		{Name: "trust", Value: "spectrum trust add " + strings.Repeat("0a1b2c3d", 8), Short: "spectrum trust add 0a1b2c3d0a1b2c3d"},
		{Name: "see more", Value: "spectrum diff " + strings.Repeat("/directory", 25), Short: "spectrum diff 20261127T014749.865Z-nightly-run"},
		{Name: "report", Value: "/" + strings.Repeat("state/", 18) + "end.md"},
	}
	for _, columns := range []int{40, 50, 60, 80} {
		for _, lines := range []int{12, 20, 24, 40} {
			text := summary(t, p, report.Screen{Columns: columns, Lines: lines, Next: next, After: 1})
			if n := screenLines(text, columns); n > report.MaxLines {
				t.Errorf("%dx%d: %d lines", columns, lines, n)
			}
			for _, row := range next[:3] {
				if !strings.Contains(text, row.Value+"\n") && !strings.Contains(text, row.Short+"\n") {
					t.Errorf("%dx%d: %s is cut:\n%s", columns, lines, row.Name, text)
				}
			}
		}
	}
}
