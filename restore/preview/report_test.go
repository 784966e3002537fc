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

// TestLongReport: a report has a row for each item while there are few, and
// groups them by directory when there are many; the JSON has all of them.
func TestLongReport(t *testing.T) {
	for _, c := range []struct{ n, dirs, rows int }{{1, 1, 1}, {40, 3, 40}, {41, 1, 1}, {1001, 7, 7}, {1001, 500, 40}} {
		s := bareScene(t)
		outputs := map[string]string{}
		for i := range c.n {
			outputs[fmt.Sprintf("d/%03d/%04d", i%c.dirs, i)] = "x"
		}
		s.add("run-1", outputs)
		p := s.preview()
		_, report, _ := strings.Cut(reportOf(t, p), "## 3.")
		report, _, _ = strings.Cut(report, "## 4.")
		if got := strings.Count(report, "\n| R-"); got != c.rows {
			t.Errorf("%d outputs in %d directories: %d rows\n%s", c.n, c.dirs, got, report)
		}
		all := fmt.Sprintf("\n%d items in all; `--json` lists each of them.\n", c.n)
		if strings.Contains(report, all) != (c.n > 40) {
			t.Errorf("%d outputs:\n%s", c.n, report)
		}
		last := fmt.Sprintf(`"restore_id":"R-%03d"`, c.n)
		if json := string(jsonOf(t, p)); strings.Count(json, `"restore_id"`) != c.n || !strings.Contains(json, last) {
			t.Errorf("%d outputs: %s is missing", c.n, last)
		}
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
