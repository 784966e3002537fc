package report_test

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
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/test/sample"
)

func TestGoldenReport(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha\n", "dir/b c": ""})
	s.Add("run-2", map[string]string{"|": "pipe"})
	p := s.Preview()
	golden(t, "report.md", s.Anywhere(p, reportOf(t, p)))
}

func TestGoldenConflicts(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha\n", "b": "", "c": "same"})
	must(t, os.WriteFile(s.At("a"), []byte("old"), 0o644))
	must(t, os.WriteFile(s.At("c"), []byte("same"), 0o644))
	p := s.Preview()
	golden(t, "conflicts.md", s.Anywhere(p, reportOf(t, p)))
	must(t, os.Mkdir(s.At("RESTORE_REPORT.json"), 0o755))
	p = s.Preview()
	golden(t, "noroom.md", s.Anywhere(p, reportOf(t, p)))
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
		{"output", func(s *scene, name string) { s.Add("run-1", map[string]string{name: "x"}) }},
		{"run id", func(s *scene, name string) {
			s.Add(strings.ReplaceAll(name, "/", "_"), map[string]string{"x": "x"})
		}},
		{"conflict", func(s *scene, name string) {
			s.Add("run-1", map[string]string{name: "x"})
			must(s.T, os.MkdirAll(filepath.Dir(s.At(name)), 0o755))
			must(s.T, os.WriteFile(s.At(name), nil, 0o644))
		}},
		{"restore root", func(s *scene, name string) {
			s.Add("run-1", map[string]string{"x": "x"})
			s.Named(name + `\|` + "\\`" + name)
		}},
		{"project root", func(s *scene, name string) {
			s.Add("run-1", map[string]string{"x": "x"})
			s.Origin.ProjectRoot += name
		}},
	} {
		t.Run(where.name, func(t *testing.T) {
			harmless := bareScene(t)
			where.put(harmless, "harmless")
			want := cells(reportOf(t, harmless.Preview()))
			for _, name := range sample.Pick(t, 8, hostileNames) {
				s := bareScene(t)
				where.put(s, name)
				shown := reportOf(t, s.Preview())
				if got := cells(shown); got != want {
					t.Errorf("%q: cells %s, want %s\n%s", name, got, want, shown)
				}
				checkShown(t, name, shown)
			}
		})
	}
}

// cells counts the cells of each line.
func cells(shown string) string {
	var counts []int
	for line := range strings.Lines(shown) {
		counts = append(counts, strings.Count(escaped.ReplaceAllString(line, ""), "|"))
	}
	return fmt.Sprint(counts)
}

// escaped is a character that Markdown takes for itself.
var escaped = regexp.MustCompile(`\\[!-/:-@\[-\x60{-~]`)

// checkShown requires that all text is visible, and that the cells have no markup.
func checkShown(t *testing.T, name, shown string) {
	t.Helper()
	for _, r := range shown {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q: the report has %U", name, r)
		}
	}
	for line := range strings.Lines(shown) {
		_, bare, ok := report.Rendered(line)
		if strings.HasPrefix(line, "| ") && (!ok || strings.ContainsAny(bare, `<*[&#@$\`)) {
			t.Errorf("%q: markup in %s", name, line)
		}
	}
}

// TestQuote checks that two names are never quoted alike.
func TestQuote(t *testing.T) {
	seen := map[string]string{}
	for _, name := range append(hostileNames, "", "a", `a\`, `a\|`, `a|`, `a\\|`, "é", "名", "a b", `\n`, "\n", `\u202e`) {
		quoted := report.Quote(name)
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
		if got := report.Quote(name); got != want {
			t.Errorf("Quote(%q) = %s, want %s", name, got, want)
		}
	}
}

// TestBracketsOfCode: a bracket that was opened before a word is not part of the code that it is.
func TestBracketsOfCode(t *testing.T) {
	for words, want := range map[string]string{
		"it is immutable (chattr +i)": "it is immutable (chattr `+i`)",
		"see (f(x))":                  "see `(f(x))`",
		"a (b) c":                     "a (b) c",
	} {
		if got := report.Text(words); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
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
		s.Add("run-1", outputs)
		p := s.Preview()
		_, shown, _ := strings.Cut(reportOf(t, p), "## 3.")
		shown, _, _ = strings.Cut(shown, "## 4.")
		if got := strings.Count(shown, "\n| R-"); got != c.n {
			t.Errorf("%d outputs in %d directories: %d rows\n%s", c.n, c.dirs, got, shown)
		}
		for name := range outputs {
			if !strings.Contains(shown, report.Quote(name)) {
				t.Errorf("%s is not named", name)
			}
		}
		last := fmt.Sprintf(`"restore_id":"R-%03d"`, c.n)
		if json := string(restoretest.JSONOf(t, p)); strings.Count(json, `"restore_id"`) != c.n || !strings.Contains(json, last) {
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
			must(t, os.WriteFile(s.At(name), []byte("same"), 0o644))
		}
	}
	outputs["Makefile"], outputs["g"] = "same", "new"
	named := []string{"Makefile", ".gitignore", ".config/x", "a\u200bb", "g"}
	must(t, os.Mkdir(s.At(".config"), 0o755))
	for _, name := range named[:4] {
		outputs[name] = "same"
		must(t, os.WriteFile(s.At(name), []byte("same"), 0o644))
	}
	must(t, os.WriteFile(s.At("g"), []byte("old"), 0o644))
	s.Add("run-1", outputs)
	shown := reportOf(t, s.Preview())
	for _, want := range []string{"| 30 identical files | 120 |", "| state_conflict | 30 identical files | regular files, the same byte for byte |"} {
		if strings.Count(shown, want) != 1 {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	_, items, _ := strings.Cut(shown, "## 3.")
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
	for _, name := range named {
		if !strings.Contains(items, report.Quote(name)) || !strings.Contains(rest, report.Quote(name)) {
			t.Errorf("%s is not named", name)
		}
	}
}

// TestRunsByItself: what runs by itself, and what agents follow, is named with why, in the
// report and on the page, however many other files there are; it is not a low risk.
func TestRunsByItself(t *testing.T) {
	s := bareScene(t)
	outputs := map[string]string{"tool": "#!/bin/sh\n"}
	automatic := []string{".git/hooks/pre-commit", ".github/workflows/ci.yml", "Makefile", "package.json", "home/.bashrc", "x.service", ".vscode/tasks.json", "tool", "su", "sg", "both", ".gitea/workflows/ci.yaml", ".mcp.json", "sub/.claude/settings.json"}
	followed := []string{"CLAUDE.md", "sub/AGENTS.md", "system_prompt.txt", ".cursorrules"}
	for _, name := range append(automatic, followed...) {
		outputs[name] = "x"
	}
	for n := range 300 {
		outputs[fmt.Sprintf("plain/%03d", n)] = "x"
	}
	s.Add("run-1", outputs)
	must(t, os.Chmod(filepath.Join(s.Root, "tool"), 0o755))
	for name, bits := range map[string]os.FileMode{"su": os.ModeSetuid | 0o755, "sg": os.ModeSetgid | 0o644, "both": os.ModeSetuid | os.ModeSetgid | 0o600} {
		must(t, os.Chmod(filepath.Join(s.Root, name), bits))
	}
	p := s.Preview()
	shown, page := reportOf(t, p), pageOf(t, p)
	rows := map[string]string{}
	for line := range strings.Lines(shown) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| R-") && len(cells) > 5 {
			rows[cells[1]] = line
		}
	}
	kinds := page[strings.Index(page, `<h2 id="s3">`):strings.Index(page, `<div class="tree">`)]
	for _, name := range automatic {
		if row := rows[report.Quote(name)]; !strings.Contains(row, "it may run by itself") || strings.Contains(row, "low:") || !strings.Contains(kinds, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s: %s", name, row)
		}
	}
	for _, name := range followed {
		if row := rows[report.Quote(name)]; !strings.Contains(row, "agents follow it") || !strings.Contains(row, "requires_operator_confirmation") || !strings.Contains(kinds, "<bdi>"+name+"</bdi>") {
			t.Errorf("%s: %s", name, row)
		}
	}
	for name, bits := range map[string]string{"su": "the set-user-ID bit", "sg": "the set-group-ID bit", "both": "the set-user-ID and set-group-ID bits"} {
		if row := rows[report.Quote(name)]; !strings.Contains(row, "its source has "+bits) || !strings.Contains(row, "not restored") {
			t.Errorf("%s: %s", name, row)
		}
	}
	if row := rows[report.Quote("tool")]; strings.Contains(row, "its source has") {
		t.Errorf("tool: %s", row)
	}
	if row := rows[report.Quote("plain/000")]; !strings.Contains(row, "low: nothing is there") {
		t.Errorf("a plain file: %s", row)
	}
	if len(p.Findings()) > 0 || !strings.Contains(shown, "| Identity Bearing | unknown |") {
		t.Errorf("names alone are findings: %+v", p.Findings())
	}
}

// TestNewlyExecutable: of an existing file, the report shows whether it would become
// executable.
func TestNewlyExecutable(t *testing.T) {
	s := bareScene(t)
	outputs := map[string]string{}
	for _, name := range []string{"new", "same-plain", "same-tool", "other-plain", "other-tool"} {
		outputs[name] = "#!/bin/sh\n"
		kind, mode, _ := strings.Cut(name, "-")
		content := map[string]string{"same": outputs[name], "other": "x"}[kind]
		perm := os.FileMode(0o644)
		if mode == "tool" {
			perm = 0o755
		}
		if content != "" {
			must(t, os.WriteFile(s.At(name), []byte(content), perm))
		}
	}
	s.Add("run-1", outputs)
	for name := range outputs {
		must(t, os.Chmod(filepath.Join(s.Root, name), 0o755))
	}
	shown := reportOf(t, s.Preview())
	for name := range outputs {
		at := strings.Index(shown, "| "+report.Quote(name)+" | 10 |")
		if at < 0 {
			t.Fatalf("%s is not named", name)
		}
		row, _, _ := strings.Cut(shown[at:], "\n")
		newly := strings.Contains(row, "it is executable, which the existing file is not")
		if !strings.Contains(row, "it may run by itself: it is executable") || newly != strings.HasSuffix(name, "plain") {
			t.Errorf("%s", row)
		}
	}
}

// TestManyAreNamed: of 2,400 files in one directory, half of them in conflict, the page names
// each, and section 9 is as long as there are different decisions.
func TestManyAreNamed(t *testing.T) {
	s := bareScene(t)
	outputs := map[string]string{}
	must(t, os.Mkdir(s.At("lib"), 0o755))
	for n := range 2400 {
		path := fmt.Sprintf("lib/mod%d.txt", n)
		outputs[path] = "new"
		switch {
		case n%2 == 0:
			must(t, os.WriteFile(s.At(path), []byte("old"), 0o644))
		case n%3 == 0:
			must(t, os.WriteFile(s.At(path), []byte("new"), 0o644))
		}
	}
	s.Add("run-1", outputs)
	p := s.Preview()
	shown, page := reportOf(t, p), pageOf(t, p)
	_, register, _ := strings.Cut(page, `<h2 id="s6">`)
	register, _, _ = strings.Cut(register, `<h3 id="diffs">`)
	for n := range 2400 {
		path := fmt.Sprintf("mod%d.txt", n)
		if !strings.Contains(page, "<bdi>"+path+"</bdi>") && !strings.Contains(page, ">"+path+"<") {
			t.Fatalf("the page does not name %s", path)
		}
		if n%2 == 0 && !strings.Contains(register, "<bdi>lib/"+path+"</bdi>") {
			t.Fatalf("the register of the page does not name %s", path)
		}
	}
	if strings.Count(register, "400 identical files") != 1 || strings.Contains(register, "not shown here") {
		t.Error("the register of the page does not have the identical files in one row")
	}
	_, approval, _ := strings.Cut(shown, "## 9.")
	approval, _, _ = strings.Cut(approval, "## 10.")
	want := []string{"R-001 to R-2400 | approve / reject / modify |", "| C-001 | choose resolution: acknowledge / resolve |", "| C-002 to C-1601 | choose resolution: acknowledge / resolve / reject |"}
	for _, row := range want {
		if strings.Count(approval, row) != 1 {
			t.Errorf("no %q in\n%s", row, approval)
		}
	}
	if n := strings.Count(approval, "\n|"); n != 2+len(want) {
		t.Errorf("%d rows:\n%s", n, approval)
	}
}

// TestUndeclaredIsNotNo: where a form has only yes and no, an answer that was not declared
// says so, and that names are all there is to go by.
func TestUndeclaredIsNotNo(t *testing.T) {
	review := func(constraints map[string]any, names ...string) string {
		s := bareScene(t)
		outputs := map[string]string{}
		for _, name := range names {
			outputs[name] = "x"
		}
		s.Add("run-1", outputs)
		s.Claim(constraints)
		shown := reportOf(t, s.Preview())
		_, part, _ := strings.Cut(shown, "## 7.")
		part, _, _ = strings.Cut(part, "## 8.")
		return part
	}
	declared := map[string]any{"restore_scopes": map[string]any{"*": "project_state"}}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing declared": {review(map[string]any{}, "a"), []string{
			"- Identity-layer items present? no (the signer has not declared scopes)\n", "- Cross-agent identity risk? no\n",
			"- Restricted context present? no (none by name; the signer has not declared scopes)\n",
		}},
		"nothing declared, a name": {review(map[string]any{}, "a", "CLAUDE.md", "AGENTS.md"), []string{
			"- Identity-layer items present? no (the signer has not declared scopes; 2 items may be, by name)\n", "- Cross-agent identity risk? yes (2 items may be identity layer, by name)\n",
		}},
		"declared": {review(declared, "a"), []string{"- Identity-layer items present? no\n", "- Cross-agent identity risk? no\n", "- Restricted context present? no\n"}},
		"declared, a name": {review(declared, "CLAUDE.md"), []string{
			"- Identity-layer items present? no (1 item may be, by name)\n", "- Cross-agent identity risk? yes (1 item may be identity layer, by name)\n",
		}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, c.text)
			}
		}
	}
}

// TestPageSaysNotRestored: the page does not say "create" of what is not restored.
func TestPageSaysNotRestored(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{".env": "x"})
	page := pageOf(t, s.Preview())
	part := page[strings.Index(page, `<h2 id="s5">`):strings.Index(page, `<h2 id="s1">`)]
	if strings.Contains(part, "create") || !strings.Contains(part, "not restored") {
		t.Errorf("Do Not Restore:\n%s", part)
	}
}

// TestReportCannotBeWritten checks that the first error of a write is returned.
func TestReportCannotBeWritten(t *testing.T) {
	p := newScene(t).Preview()
	n := strings.Count(reportOf(t, p), "\n")
	failed := 0
	for i := range n {
		w := &failingWriter{left: i}
		if err := report.Of(p).WriteMarkdown(w); err != nil {
			if failed++; !errors.Is(err, errFull) || w.after > 0 {
				t.Errorf("write %d: %v, then %d more", i, err, w.after)
			}
		}
	}
	if failed == 0 || report.Of(p).WriteMarkdown(&failingWriter{left: n}) != nil {
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

// TestNothingToApprove: where nothing is proposed and nothing is in conflict, section 9 has no
// table, in the report and on the page.
func TestNothingToApprove(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{".env": "x"})
	s.Policy = restoretest.PolicyOf(t, []string{restoretest.ValidatorOf(s.Runs[0])}, nil)
	p := s.Preview()
	_, part, _ := strings.Cut(reportOf(t, p), "## 9. Operator Approval Needed\n")
	part, _, _ = strings.Cut(part, "## 10.")
	if part != "\nNone.\n\n" {
		t.Errorf("%q", part)
	}
	_, part, _ = strings.Cut(pageOf(t, p), `<h2 id="s9">`)
	part, _, _ = strings.Cut(part, `<h2 id="s10">`)
	if !strings.Contains(part, "<p>None.</p>") || strings.Contains(part, "<table") {
		t.Errorf("%q", part)
	}
}

// TestAgentsAreNamed: an identity conflict names both agents, or says which is not named.
func TestAgentsAreNamed(t *testing.T) {
	for _, c := range []struct{ operator, signer, current, claim string }{
		{"", "", "the operator's agent is not named", "the identity layer is that of an agent that is not named"},
		{"", "pilot", "the operator's agent is not named", `the identity layer is that of "pilot"`},
		{"harbour master", "", `the operator's agent is "harbour master"`, "the identity layer is that of an agent that is not named"},
		{"harbour master", "pilot", `the operator's agent is "harbour master"`, `the identity layer is that of "pilot"`},
	} {
		s := bareScene(t)
		s.Add("run-1", map[string]string{"role.md": "x", "a": "x"})
		constraints := map[string]any{"restore_scopes": map[string]any{"role.md": "same_agent_identity_layer"}}
		if c.signer != "" {
			constraints["agent_id"] = c.signer
		}
		s.Claim(constraints)
		s.Asked = preview.Requested{Agent: c.operator, Scopes: []scope.Scope{scope.ProjectState, scope.SameAgentIdentityLayer}}
		shown := strings.ReplaceAll(reportOf(t, s.Preview()), "`", "")
		for _, want := range []string{c.current, c.claim} {
			if !strings.Contains(shown, "| "+want+" |") {
				t.Errorf("no %q in\n%s", want, shown)
			}
		}
	}
}

// TestNumbersAgree: one file of one byte is "1 file" and "1 byte" wherever it is counted.
func TestNumbersAgree(t *testing.T) {
	s := bareScene(t)
	must(t, os.WriteFile(s.At("there"), []byte("x"), 0o644))
	s.Add("run-1", map[string]string{"there": "y"})
	shown, page := reportOf(t, s.Preview()), pageOf(t, s.Preview())
	must(t, os.Remove(s.At("there")))
	p := s.Preview()
	approved, err := s.Accept(restoretest.Kept(t, p), preview.Exactly, restoretest.Forgetful{})
	must(t, err)
	done := string(report.Commit(approved.Outcome()))
	for _, text := range []string{shown, page, reportOf(t, p), pageOf(t, p), done} {
		text = strings.ReplaceAll(text, "1 of 1 ", "")
		if wrong := regexp.MustCompile(`(^|[^0-9,.-])1 (bytes|files|items|conflicts|runs|findings)\b`).FindString(text); wrong != "" {
			t.Errorf("%q in\n%s", wrong, text)
		}
	}
	if !strings.Contains(shown, "a regular file of 1 byte |") || !strings.Contains(done, "1 file (1 byte) is in place") {
		t.Errorf("%s\n%s", shown, done)
	}
}
