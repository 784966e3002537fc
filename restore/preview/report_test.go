package preview_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/test/sample"
)

// golden compares with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

var update = flag.Bool("update", false, "write the goldens anew")

func TestGoldenReport(t *testing.T) {
	s := bareScene(t)
	s.add("run-1", map[string]string{"a": "alpha\n", "dir/b c": ""})
	s.add("run-2", map[string]string{"|": "pipe"})
	p := s.preview()
	golden(t, "report.md", s.anywhere(p, reportOf(t, p)))
}

func TestGoldenConflicts(t *testing.T) {
	s := bareScene(t)
	s.add("run-1", map[string]string{"a": "alpha\n", "b": "", "c": "same"})
	must(t, os.WriteFile(s.at("a"), []byte("old"), 0o644))
	must(t, os.WriteFile(s.at("c"), []byte("same"), 0o644))
	p := s.preview()
	golden(t, "conflicts.md", s.anywhere(p, reportOf(t, p)))
	must(t, os.Mkdir(s.at("RESTORE_REPORT.json"), 0o755))
	p = s.preview()
	golden(t, "noroom.md", s.anywhere(p, reportOf(t, p)))
}

// hostileNames are output names that would like to be more than a name.
var hostileNames = []string{
	"\x1b[2J\x1b[1;1H", "\x1b]0;title\x07", "a\nb", "a\r\n## Approval needed\n", "a\tb", "\v\f\b\x7f", "\u009b31m",
	"\u202egpj.exe", "\u2066a\u2069", "\u200b", "\ufeff", "\u2028", "\u2029", "\u00ad", "\U000e0041",
	"a | R-999 | b", "|", "||", "\n| R-002 | forged | 1 | restore_active |", "`a`", "```", "<script>alert(1)</script>", "<!--", "<b>",
	"**bold**", "* item", "[a](http:)", "![a](b)", "&#x202e;gpj", "&#10;", "&lt;", "&amp;", "\"", "'", "a\"|\"b", "---", "# head", "$x$",
}

// TestHostileNames: 28. None forges a line or a cell, hides itself, or says
// something to a terminal: beside a report of harmless names of the same number
// every line has the same cells, and no byte is one that is not shown.
func TestHostileNames(t *testing.T) {
	for _, where := range []struct {
		name string
		put  func(s *scene, name string)
	}{
		{"output", func(s *scene, name string) { s.add("run-1", map[string]string{name: "x"}) }},
		{"run id", func(s *scene, name string) {
			s.add(strings.ReplaceAll(name, "/", "_"), map[string]string{"x": "x"})
		}},
		{"conflict", func(s *scene, name string) {
			s.add("run-1", map[string]string{name: "x"})
			must(s.t, os.MkdirAll(filepath.Dir(s.at(name)), 0o755))
			must(s.t, os.WriteFile(s.at(name), nil, 0o644))
		}},
		{"restore root", func(s *scene, name string) {
			s.add("run-1", map[string]string{"x": "x"})
			s.named(name + `\|` + "\\`" + name)
		}},
		{"project root", func(s *scene, name string) {
			s.add("run-1", map[string]string{"x": "x"})
			s.origin.ProjectRoot += name
		}},
	} {
		t.Run(where.name, func(t *testing.T) {
			harmless := bareScene(t)
			where.put(harmless, "harmless")
			want := cells(reportOf(t, harmless.preview()))
			for _, name := range sample.Pick(t, 8, hostileNames) {
				s := bareScene(t)
				where.put(s, name)
				report := reportOf(t, s.preview())
				if got := cells(report); got != want {
					t.Errorf("%q: cells %s, want %s\n%s", name, got, want, report)
				}
				checkShown(t, name, report)
			}
		})
	}
}

// cells counts the cells of each line.
func cells(report string) string {
	var counts []int
	for line := range strings.Lines(report) {
		counts = append(counts, strings.Count(escaped.ReplaceAllString(line, ""), "|"))
	}
	return fmt.Sprint(counts)
}

// escaped is a character that Markdown takes for itself.
var escaped = regexp.MustCompile(`\\[!-/:-@\[-\x60{-~]`)

// checkShown wants nothing but what can be seen, and in the cells nothing that
// is markup.
func checkShown(t *testing.T, name, report string) {
	t.Helper()
	for _, r := range report {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q: the report has %U", name, r)
		}
	}
	for line := range strings.Lines(report) {
		_, bare, ok := preview.Rendered(line)
		if strings.HasPrefix(line, "| ") && (!ok || strings.ContainsAny(bare, `<*[&#@$\`)) {
			t.Errorf("%q: markup in %s", name, line)
		}
	}
}

// TestQuote: what is quoted can be told from everything else that is quoted.
func TestQuote(t *testing.T) {
	seen := map[string]string{}
	for _, name := range append(hostileNames, "", "a", `a\`, `a\|`, `a|`, `a\\|`, "é", "名", "a b", `\n`, "\n", `\u202e`) {
		quoted := preview.Quote(name)
		if other, ok := seen[quoted]; ok && other != name {
			t.Errorf("%q and %q are both %s", name, other, quoted)
		}
		seen[quoted] = name
	}
	for name, want := range map[string]string{
		"plain/name-1_2.txt": "`\"plain/name-1_2.txt\"`",
		"é 名":                "`\"é 名\"`",
		"a|b":                "`\"a\\|b\"`",
		"a\nb":               "`\"a\\nb\"`",
		"<b>":                "`\"<b>\"`",
		"&#x202e;":           "`\"&#x202e;\"`",
		"\u202e":             "`\"\\u202e\"`",
		"`a``b":              "```\"`a``b\"```",
	} {
		if got := preview.Quote(name); got != want {
			t.Errorf("Quote(%q) = %s, want %s", name, got, want)
		}
	}
}

// TestLongReport: however many items there are, each has a row with its name, and no row
// overlaps another; the JSON has all of them too.
func TestLongReport(t *testing.T) {
	for _, c := range []struct{ n, dirs int }{{1, 1}, {41, 1}, {1001, 7}, {1001, 500}} {
		s := bareScene(t)
		outputs := map[string]string{}
		for i := range c.n {
			outputs[fmt.Sprintf("d/%03d/%04d", i%c.dirs, i)] = "x"
		}
		s.add("run-1", outputs)
		p := s.preview()
		_, report, _ := strings.Cut(reportOf(t, p), "## 3.")
		report, _, _ = strings.Cut(report, "## 4.")
		if got := strings.Count(report, "\n| R-"); got != c.n {
			t.Errorf("%d outputs in %d directories: %d rows\n%s", c.n, c.dirs, got, report)
		}
		for name := range outputs {
			if !strings.Contains(report, preview.Quote(name)) {
				t.Errorf("%s is not named", name)
			}
		}
		last := fmt.Sprintf(`"restore_id":"R-%03d"`, c.n)
		if json := string(jsonOf(t, p)); strings.Count(json, `"restore_id"`) != c.n || !strings.Contains(json, last) {
			t.Errorf("%d outputs: %s is missing", c.n, last)
		}
	}
}

// TestIdenticalIsOneLine: what is there already is one line, among the items and among the
// conflicts; what runs by itself, or is different, is named all the same.
func TestIdenticalIsOneLine(t *testing.T) {
	s := bareScene(t)
	outputs := map[string]string{}
	for n := range 60 {
		name := fmt.Sprintf("f%02d", n)
		outputs[name] = "same"
		if n%2 == 0 {
			must(t, os.WriteFile(s.at(name), []byte("same"), 0o644))
		}
	}
	outputs["Makefile"], outputs["g"] = "same", "new"
	must(t, os.WriteFile(s.at("Makefile"), []byte("same"), 0o644))
	must(t, os.WriteFile(s.at("g"), []byte("old"), 0o644))
	s.add("run-1", outputs)
	report := reportOf(t, s.preview())
	for _, want := range []string{"| 30 identical files | 120 |", "| state_conflict | 30 identical files | regular files, the same byte for byte |"} {
		if strings.Count(report, want) != 1 {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
	_, items, _ := strings.Cut(report, "## 3.")
	items, rest, _ := strings.Cut(items, "## 4.")
	seen := map[string]bool{}
	for _, row := range strings.Split(items, "\n| R-")[1:] {
		ids, _, _ := strings.Cut("R-"+row, " |")
		said, err := statement.Parse("Approved: restore items " + ids + " only.")
		must(t, err)
		for _, r := range said.Items() {
			for n := r.From; n <= r.To; n++ {
				if id := fmt.Sprint(n); seen[id] {
					t.Errorf("item %d is in two rows", n)
				} else {
					seen[id] = true
				}
			}
		}
	}
	if len(seen) != len(outputs) {
		t.Errorf("%d items in the rows, want %d", len(seen), len(outputs))
	}
	for _, name := range []string{"Makefile", "g"} {
		if !strings.Contains(items, preview.Quote(name)) || !strings.Contains(rest, preview.Quote(name)) {
			t.Errorf("%s is not named", name)
		}
	}
}

// TestRunsByItself: what runs by itself, and what agents follow, is named with why, in the
// report and on the page, however many other files there are; it is no low risk.
func TestRunsByItself(t *testing.T) {
	s := bareScene(t)
	outputs := map[string]string{"tool": "#!/bin/sh\n"}
	automatic := []string{".git/hooks/pre-commit", ".github/workflows/ci.yml", "Makefile", "package.json", "home/.bashrc", "x.service", ".vscode/tasks.json", "tool"}
	followed := []string{"CLAUDE.md", "sub/AGENTS.md", "system_prompt.txt", ".cursorrules"}
	for _, name := range append(automatic, followed...) {
		outputs[name] = "x"
	}
	for n := range 300 {
		outputs[fmt.Sprintf("plain/%03d", n)] = "x"
	}
	s.add("run-1", outputs)
	must(t, os.Chmod(filepath.Join(s.Root, "tool"), 0o755))
	p := s.preview()
	report, page := reportOf(t, p), pageOf(t, p)
	rows := map[string]string{}
	for line := range strings.Lines(report) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| R-") && len(cells) > 5 {
			rows[cells[1]] = line
		}
	}
	kinds := page[strings.Index(page, `<h2 id="s3">`):strings.Index(page, `<div class="tree">`)]
	for _, name := range automatic {
		if row := rows[preview.Quote(name)]; !strings.Contains(row, "it may run by itself") || strings.Contains(row, "low:") || !strings.Contains(kinds, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s: %s", name, row)
		}
	}
	for _, name := range followed {
		if row := rows[preview.Quote(name)]; !strings.Contains(row, "agents follow it") || !strings.Contains(row, "requires_operator_confirmation") || !strings.Contains(kinds, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s: %s", name, row)
		}
	}
	if row := rows[preview.Quote("plain/000")]; !strings.Contains(row, "low: nothing is there") {
		t.Errorf("a plain file: %s", row)
	}
	if len(p.Findings()) > 0 || !strings.Contains(report, "| Identity Bearing | unknown |") {
		t.Errorf("names alone are findings: %+v", p.Findings())
	}
}

// TestPageSaysNotRestored: the page does not say "create" of what is not restored.
func TestPageSaysNotRestored(t *testing.T) {
	s := bareScene(t)
	s.add("run-1", map[string]string{".env": "x"})
	page := pageOf(t, s.preview())
	part := page[strings.Index(page, `<h2 id="s5">`):strings.Index(page, `<h2 id="s1">`)]
	if strings.Contains(part, "create") || !strings.Contains(part, "not restored") {
		t.Errorf("Do Not Restore:\n%s", part)
	}
}

// TestReportCannotBeWritten: the first error is the answer, wherever it is.
func TestReportCannotBeWritten(t *testing.T) {
	p := newScene(t).preview()
	n := strings.Count(reportOf(t, p), "\n")
	failed := 0
	for i := range n {
		w := &failingWriter{left: i}
		if err := p.WriteReport(w); err != nil {
			if failed++; !errors.Is(err, errFull) || w.after > 0 {
				t.Errorf("write %d: %v, then %d more", i, err, w.after)
			}
		}
	}
	if failed == 0 || p.WriteReport(&failingWriter{left: n}) != nil {
		t.Errorf("%d failed", failed)
	}
}

var errFull = errors.New("full")

// failingWriter fails after so many writes; after counts those that follow.
type failingWriter struct {
	left, after int
	failed      bool
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.failed {
		w.after++
	}
	if w.left--; w.left < 0 {
		w.failed = true
		return 0, errFull
	}
	return len(p), nil
}
