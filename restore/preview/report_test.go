package preview_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spectrumfs/spectrum/restore/preview"
)

const goldenReport = `# Restore Preview Report

## Source reviewed

| Field | Value |
|---|---|
| chain root | af4d27a7de0615dd23e431d80199520870d6378b2575fa4fca78bd2e2eb76929 |
| run | "run-1" |
| bundle root | 0c13a7c334b653306f0ff1b8dc2e81b2df56540d307b92d999a65806aa98eae4 |
| signed by validator | ec5586a986f88604eb06419bdaa1994b64c22788ed1b8fd96fbc7f011fa06478 |
| run | "run-2" |
| bundle root | b202e9449edd7506af9dcdb9564319e7a2bc89f386058f0dce27b8747b3da24c |
| signed by validator | ec5586a986f88604eb06419bdaa1994b64c22788ed1b8fd96fbc7f011fa06478 |
| not covered by the signature | PROOF.json |
| project root | "/project" |
| restore root | "/restore" |
| files | 3 |
| bytes | 10 |

## Proposed restorations

| Restore ID | Item | Bytes | Label |
|---|---|---:|---|
| R-001 | "run-1/a" | 6 | restore_active |
| R-002 | "run-1/dir/b c" | 0 | restore_active |
| R-003 | "run-2/\|" | 4 | restore_active |

## Conflict register

| Conflict ID | Type | Item | Current state | Recommended resolution |
|---|---|---|---|---|
| C-001 | authority_conflict | "ec5586a986f88604eb06419bdaa1994b64c22788ed1b8fd96fbc7f011fa06478" | no validator is pinned | compare this validator_id with the one you expect, then spectrum trust add it |

Approving this preview acknowledges them.

## Approval needed

Nothing has been written. The restore is carried out only after this exact statement:

    Approved: commit the restore preview exactly as proposed.

preview_id ID
`

func TestGoldenReport(t *testing.T) {
	s := bareScene(t)
	s.add("run-1", map[string]string{"a": "alpha\n", "dir/b c": ""})
	s.add("run-2", map[string]string{"|": "pipe"})
	p := s.preview()
	got := strings.ReplaceAll(reportOf(t, p), p.ID(), "ID")
	if got != goldenReport {
		t.Errorf("got\n%s\nwant\n%s", got, goldenReport)
	}
}

const goldenConflicts = `
| Restore ID | Item | Bytes | Label |
|---|---|---:|---|
| R-001 | "a" | 6 | conflict_with_current_state |
| R-002 | "b" | 0 | restore_active |

## Conflict register

| Conflict ID | Type | Item | Current state | Recommended resolution |
|---|---|---|---|---|
| C-001 | authority_conflict | "ec5586a986f88604eb06419bdaa1994b64c22788ed1b8fd96fbc7f011fa06478" | no validator is pinned | compare this validator_id with the one you expect, then spectrum trust add it |
| C-002 | state_conflict | "RESTORE_REPORT.json" | a directory | move the existing entry away, then preview again |
| C-003 | state_conflict | "a" | a regular file of 3 bytes | move the existing entry away, then preview again |

Approving a preview with a state_conflict leads to RESTORE_TARGET_PATH_EXISTS.

`

func TestGoldenConflicts(t *testing.T) {
	s := bareScene(t)
	s.add("run-1", map[string]string{"a": "alpha\n", "b": ""})
	must(t, os.WriteFile(s.at("a"), []byte("old"), 0o644))
	must(t, os.Mkdir(s.at("RESTORE_REPORT.json"), 0o755))
	_, got, _ := strings.Cut(reportOf(t, s.preview()), "## Proposed restorations\n")
	got, _, _ = strings.Cut(got, "## Approval")
	if got != goldenConflicts {
		t.Errorf("got\n%s\nwant\n%s", got, goldenConflicts)
	}
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
			s.origin.RestoreRoot += name + `\|` + "\\`" + name
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
			for _, name := range hostileNames {
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
		bare := escaped.ReplaceAllString(line, "")
		if strings.HasPrefix(line, "| ") && strings.ContainsAny(bare, "`<*[&") {
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
		"plain/name-1_2.txt": `"plain/name-1_2.txt"`,
		"é 名":                `"é 名"`,
		"a|b":                `"a\|b"`,
		"a\nb":               `"a\nb"`,
		"<b>":                `"\<b>"`,
		"&#x202e;":           `"\&#x202e;"`,
		"\u202e":             `"\u202e"`,
	} {
		if got := preview.Quote(name); got != want {
			t.Errorf("Quote(%q) = %s, want %s", name, got, want)
		}
	}
}

// TestLongReport: a report lists the first rows and says how many more there
// are; the JSON has all of them.
func TestLongReport(t *testing.T) {
	for _, c := range []struct{ n, shown, more int }{{1, 1, 0}, {40, 40, 0}, {41, 40, 1}, {1001, 40, 961}} {
		s := bareScene(t)
		outputs := map[string]string{}
		for i := range c.n {
			outputs[fmt.Sprintf("d/%04d", i)] = "x"
		}
		s.add("run-1", outputs)
		p := s.preview()
		report := reportOf(t, p)
		if got := strings.Count(report, "| R-"); got != c.shown {
			t.Errorf("%d outputs: %d shown", c.n, got)
		}
		more := fmt.Sprintf("\n%d more; `--json` lists all.\n", c.more)
		if strings.Contains(report, "more;") != (c.more > 0) || c.more > 0 && !strings.Contains(report, more) {
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
