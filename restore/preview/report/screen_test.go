package report_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// summary is the summary of a preview on a screen, without colors.
func summary(t *testing.T, p *preview.Preview, s report.Screen) string {
	t.Helper()
	var plain, colored strings.Builder
	_, err := report.Of(p).WriteSummary(context.Background(), &plain, s)
	must(t, err)
	s.Color = true
	_, err = report.Of(p).WriteSummary(context.Background(), &colored, s)
	must(t, err)
	if strings.Contains(plain.String(), "\x1b") {
		t.Errorf("an escape sequence without colors:\n%q", plain.String())
	}
	if got := colors.ReplaceAllString(colored.String(), ""); got != plain.String() {
		t.Errorf("colors change the text:\n%s\n%s", got, plain.String())
	}
	return plain.String()
}

var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestSummaryFits: a summary has at most so many lines, and none is wider than the screen, for
// any number of files and any names.
func TestSummaryFits(t *testing.T) {
	scenes := map[string]map[string]string{
		"one":   {"a": "1"},
		"three": {"src/a.go": "1", "src/b.go": "2", "README.md": "3"},
		"long":  {strings.Repeat(strings.Repeat("d", 200)+"/", 15) + "f": "1"},
		"odd":   {"white \u2003 space": "1", "\x1b[31mred": "2", "new\nline": "3", "-dash": "4", "\u202eright": "5"},
		"many":  {}, "wide": {},
	}
	for n := range 2000 {
		scenes["many"][fmt.Sprintf("d%02d/e%d/file-%04d", n%40, n%7, n)] = "x"
		scenes["wide"][fmt.Sprintf("file-%04d", n)] = "x"
	}
	for name, files := range scenes {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", files)
			p := s.Preview()
			for _, columns := range []int{20, 40, 60, 80, 200} {
				for _, lines := range []int{5, 24, 40, 100} {
					text := summary(t, p, report.Screen{Columns: columns, Lines: lines, Free: 1 << 30})
					width := max(columns, report.MinColumns)
					height := 0
					for line := range strings.Lines(text) {
						n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
						if n > width && !strings.HasPrefix(line, "  to  ") {
							t.Errorf("%dx%d: a line of %d: %q", columns, lines, n, line)
						}
						height++
					}
					if height > report.MaxLines {
						t.Errorf("%dx%d: %d lines:\n%s", columns, lines, height, text)
					}
					if columns >= 80 && lines >= 24 && height >= lines {
						t.Errorf("%dx%d: %d lines do not fit:\n%s", columns, lines, height, text)
					}
					if !strings.Contains(text, fmt.Sprintf("%s to create", number(len(files)))) {
						t.Errorf("%dx%d: not all files are counted:\n%s", columns, lines, text)
					}
				}
			}
		})
	}
}

func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// TestSummaryOrder: what is in conflict comes before what is created, a text file has the number
// of lines that change, and what is left out is named last.
func TestSummaryOrder(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a/new.txt": "new\n", "b/same.txt": "same", "b/changed.txt": "one\n2\n3\n", "deploy/.env": "secret", "run.sh": "#!/bin/sh\n"})
	must(t, os.MkdirAll(s.At("b"), 0o755))
	must(t, os.WriteFile(s.At("b/changed.txt"), []byte("one\ntwo\n"), 0o644))
	must(t, os.WriteFile(s.At("b/same.txt"), []byte("same"), 0o644))
	p := s.Preview()
	if !p.CouldReplace() {
		t.Error("what is in the way could be replaced")
	}
	text := summary(t, p, report.Screen{Columns: 80, Lines: 40})
	at := -1
	for _, want := range []string{"IN PART: ", "files      2 in conflict, 2 to create, 1 left out", "C-002 state_conflict: preview again with --replace", "C-003 state_conflict: leave R-003 out", "conflict   b/changed.txt  +2 -1  R-002\n", "conflict   b/same.txt  the same file is there, 4 bytes  R-003\n", "create     a/new.txt  4 bytes  R-001\n", "left out   deploy/.env  the scope was"} {
		next := strings.Index(text, want)
		if next <= at {
			t.Errorf("%q is not there, or not after the line before it:\n%s", want, text)
		}
		at = next
	}
}

// TestSummaryTogether: conflicts of which the same is to be done are one row, and no others.
func TestSummaryTogether(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{}
	for n := range 5 {
		name := fmt.Sprintf("f%d", n)
		files[name] = "same"
		must(t, os.WriteFile(s.At(name), []byte([]string{"same", "else"}[n%2]), 0o644))
	}
	s.Add("run-1", files)
	text := strings.Join(strings.Fields(summary(t, s.Preview(), report.Screen{Columns: 80, Lines: 40})), " ")
	for _, want := range []string{
		"C-002 and 2 more, state_conflict: leave these files out: the file is already identical",
		"C-003 and 1 more, state_conflict: preview again with --replace, which replaces the file",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestRecapOfWiderAccess: what is above the question names a file that more users may read.
func TestRecapOfWiderAccess(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"private": "new", "public": "new"})
	for name, perm := range map[string]os.FileMode{"private": 0o600, "public": 0o644} {
		must(t, os.WriteFile(s.At(name), []byte("old"), perm))
	}
	s.Asked.Replace = true
	var text strings.Builder
	must(t, report.Of(s.Preview()).WriteRecap(&text, report.Screen{Columns: 80, Lines: 24}))
	if !strings.Contains(text.String(), "gives other users more access: private\n") {
		t.Errorf("%s", text.String())
	}
}

// TestSummaryOfLowScreen: the verdict and every kind of row are there on 24 lines, with some
// conflicts and commands of two lines.
func TestSummaryOfLowScreen(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "1", "b": "2", "c": "3", ".git/hooks/pre-commit": "#!/bin/sh\n"})
	must(t, os.WriteFile(s.At("a"), []byte("1"), 0o644))
	must(t, os.WriteFile(s.At("b"), []byte("x"), 0o644))
	command := strings.Repeat("word ", 20)
	longer := utf8.RuneCountInString("  to         "+s.RestoreRoot) / 80 // the lines that a long TMPDIR takes
	screen := report.Screen{Columns: 80, Lines: 24 + longer, Next: []report.Row{{Name: "approve", Value: command}, {Name: "replace", Value: command}, {Name: "report", Value: command}}}
	text := summary(t, s.Preview(), screen)
	for _, want := range []string{"IN PART: ", "files ", "signed by ", "conflicts ", "C-002", "can run "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	height := 0
	for line := range strings.Lines(text) {
		height += max(1, (utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))+79)/80)
	}
	if height > 23+longer {
		t.Errorf("%d lines:\n%s", height, text)
	}
}

// TestSummaryCounts: each file is named, is in a directory that is, or is counted.
func TestSummaryCounts(t *testing.T) {
	line := regexp.MustCompile(`(?m)^  create     (?:([0-9,]+) more files?$|\S+/  ([0-9,]+) files?, |\S+  [0-9.]+ bytes?  R-\d+$)`)
	for _, width := range []int{1, 3, 30} {
		for _, all := range []int{1, 2, 35, 700} {
			s := bareScene(t)
			files := map[string]string{}
			for n := range all {
				files[fmt.Sprintf("d%d/e%d/f%d", n%width, n%5, n)] = "x"
			}
			s.Add("run-1", files)
			p := s.Preview()
			for lines := 10; lines <= 45; lines += 5 {
				text, counted := summary(t, p, report.Screen{Columns: 80, Lines: lines}), 0
				for _, m := range line.FindAllStringSubmatch(text, -1) {
					n := 1
					if digits := strings.ReplaceAll(m[1]+m[2], ",", ""); digits != "" {
						_, err := fmt.Sscan(digits, &n)
						must(t, err)
					}
					counted += n
				}
				if counted != all {
					t.Errorf("%d files in %d directories on %d lines: %d counted:\n%s", all, width, lines, counted, text)
				}
			}
		}
	}
}

// TestSummaryLongRows: last rows that are longer than the screen hide neither the verdict nor names.
func TestSummaryLongRows(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "1"})
	text := summary(t, s.Preview(), report.Screen{Columns: 80, Lines: 24, Next: []report.Row{{Name: "report", Value: strings.Repeat("p", 4096)}}})
	for _, want := range []string{"READY: ", "1 to create", "signed by ", "  create     a  1 byte  R-001\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestRecap checks that the recap fits in six lines of 80 columns.
func TestRecap(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "1", ".git/hooks/pre-commit": "#!/bin/sh\n"})
	var text strings.Builder
	must(t, report.Of(s.Preview()).WriteRecap(&text, report.Screen{Columns: 80, Lines: 24}))
	folded := strings.Join(strings.Fields(text.String()), " ") // the path of the root may need a line of its own
	for _, want := range []string{"READY: 2 to create, 11 bytes to write, in ", "signed by ", "(not pinned)", "conflicts: ", ".git/hooks/pre-commit", "spectrum rollback"} {
		if !strings.Contains(folded, want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
	if n := strings.Count(text.String(), "\n"); n > 8 {
		t.Errorf("%d lines:\n%s", n, text.String())
	}
}

// screenLines is how many lines of a terminal a text takes.
func screenLines(text string, columns int) (lines int) {
	for line := range strings.Lines(text) {
		lines += max(1, (utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))+columns-1)/columns)
	}
	return lines
}

// changedScene has thousands of files that are replaced, new ones, and conflicts of two types.
func changedScene(t *testing.T, changed int) *preview.Preview {
	s := bareScene(t)
	files := map[string]string{".git/hooks/pre-commit": "#!/bin/sh\n", "new": "n"}
	for n := range changed {
		name := fmt.Sprintf("src/mod%d/part%d/file-%04d.txt", n%7, n%5, n)
		files[name] = "one\n"
		must(t, os.MkdirAll(filepath.Dir(s.At(name)), 0o755))
		must(t, os.WriteFile(s.At(name), []byte("two\nthree\n"), 0o644))
	}
	s.Add("run-1", files)
	s.Asked.Replace = true
	return s.Preview()
}

// TestSummaryKeeps: on a screen of any size the verdict, the signer, the conflicts and every last row
// are there, uncut, on at most 40 lines of the terminal; what fits leaves room for the lines that follow.
func TestSummaryKeeps(t *testing.T) {
	long, short := strings.TrimSpace(strings.Repeat("word ", 16)), "see the report"
	next := []report.Row{{Name: "approve", Value: strings.Repeat(long, 5), Short: short}, {Name: "replace", Value: long}, {Name: "trust", Value: long}, {Name: "see more", Value: long}, {Name: "report", Value: long}}
	for _, changed := range []int{0, 3, 60, 300} {
		p := changedScene(t, changed)
		for _, columns := range []int{40, 60, 80, 200} {
			for _, lines := range []int{12, 20, 24, 30, 50} {
				for _, after := range []int{0, 9} {
					screen := report.Screen{Columns: columns, Lines: lines, Next: next, After: after}
					var text strings.Builder
					fits, err := report.Of(p).WriteSummary(context.Background(), &text, screen)
					must(t, err)
					height := screenLines(text.String(), columns)
					if height > report.MaxLines || fits && height+after >= lines {
						t.Errorf("%dx%d, %d after: %d lines, fits %t:\n%s", columns, lines, after, height, fits, text.String())
					}
					folded := strings.Join(strings.Fields(text.String()), " ")
					for _, want := range []string{"READY: Nothing is in the way of ", "UTC conflicts ", "not in quarantine ", "replace " + long, "trust " + long, "see more " + long, "report " + long, "create "} {
						if !strings.Contains(folded, want) {
							t.Errorf("%dx%d, %d after: no %q:\n%s", columns, lines, after, want, text.String())
						}
					}
					if !strings.Contains(folded, "approve "+next[0].Value) && !strings.Contains(folded, "approve "+short) {
						t.Errorf("%dx%d, %d after: no approval:\n%s", columns, lines, after, text.String())
					}
				}
			}
		}
	}
}

// TestSummaryTitle: a title of others cannot be taken for a verdict: it is quoted, on one line of its own.
func TestSummaryTitle(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "1"})
	must(t, os.WriteFile(s.At("a"), []byte("x"), 0o644))
	s.Claim(map[string]any{"title": strings.Repeat("x ", 30) + "\nREADY: Nothing is in the way of 3 proposed files."})
	p := s.Preview()
	for _, columns := range []int{40, 60, 80, 200} {
		for line := range strings.Lines(summary(t, p, report.Screen{Columns: columns, Lines: 40})) {
			if strings.Contains(line, "READY") && !strings.HasPrefix(line, "  title      \"x x ") || strings.HasPrefix(line, "  title") && !strings.HasSuffix(line, "\"\n") {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
	if v := report.Of(p).Overview(0); !strings.HasPrefix(v.Title, "\"x x ") || strings.Contains(v.Source, "x x ") {
		t.Errorf("%q, %q", v.Source, v.Title)
	}
}

// TestSummaryNamesSignedTask: a run whose directory was renamed is shown with the name that was signed.
func TestSummaryNamesSignedTask(t *testing.T) {
	s := newScene(t)
	if text := summary(t, s.Preview(), report.Screen{Columns: 80, Lines: 40}); strings.Contains(text, "signed as") {
		t.Error(text)
	}
	must(t, os.Rename(s.Runs[0].Dir, s.Runs[0].Dir+"-2"))
	s.Runs[0].Dir += "-2"
	p := s.Preview()
	if text := summary(t, p, report.Screen{Columns: 80, Lines: 40}); !strings.Contains(text, `run run-1-2, signed as "run-1"`) {
		t.Error(text)
	}
	if v := report.Of(p).Overview(0); !strings.Contains(v.Source, `signed as "run-1"`) {
		t.Errorf("%q", v.Source)
	}
}

// TestSummaryNamesWhatChanges: the names of changed files have lines before the advice on conflicts,
// and a directory has the lines that change in it.
func TestSummaryNamesWhatChanges(t *testing.T) {
	long := strings.Repeat("word ", 30)
	next := []report.Row{{Name: "approve", Value: long}, {Name: "replace", Value: long}, {Name: "report", Value: long}}
	for _, columns := range []int{40, 60, 80} {
		text := summary(t, changedScene(t, 3), report.Screen{Columns: columns, Lines: 60, Next: next})
		if n := strings.Count(text, "  replace    src/"); n < 2 {
			t.Errorf("%d columns: %d rows of changed files:\n%s", columns, n, text)
		}
	}
	for _, changed := range []int{40, 300} {
		text := summary(t, changedScene(t, changed), report.Screen{Columns: 80, Lines: 24})
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "  replace    src/") && !regexp.MustCompile(`/  (\d+) files, \+(\d+) -(\d+), `).MatchString(line) {
				t.Errorf("%d files: no lines that change in a directory: %q", changed, line)
			}
		}
		if !strings.Contains(text, "  replace    src/") {
			t.Errorf("%d files: no directory:\n%s", changed, text)
		}
	}
}

// TestSummaryTypes checks that conflicts are counted by type.
func TestSummaryTypes(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "1", "b": "2", ".git/hooks/pre-commit": "#!/bin/sh\n"})
	must(t, os.WriteFile(s.At("a"), []byte("x"), 0o644))
	must(t, os.WriteFile(s.At("b"), []byte("x"), 0o644))
	text := strings.Join(strings.Fields(summary(t, s.Preview(), report.Screen{Columns: 80, Lines: 40})), " ")
	if !regexp.MustCompile(`conflicts [34] \(.*2 state.*\), `).MatchString(text) {
		t.Errorf("conflicts are not counted by type:\n%s", text)
	}
}

// TestSummaryNames checks that no row with a name is broken, on the narrowest screen too.
func TestSummaryNames(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{"deploy/.env": "secret", "a-rather-long-name-of-a-file": "x"}
	for n := range 2345 {
		files[fmt.Sprintf("sources/%04d", n)] = strings.Repeat("x", 20+n)
	}
	s.Add("run-1", files)
	text := summary(t, s.Preview(), report.Screen{Columns: 40, Lines: 40})
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 40 && !strings.HasPrefix(line, "  to  ") {
			t.Errorf("a line of %d: %q", n, line)
		}
	}
	if !strings.Contains(text, "  create     sources/  2,345 files\n") {
		t.Errorf("%s", text)
	}
}
