package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/terminal"
)

// shownNames would forge something if they were shown as they are.
var shownNames = []string{
	"\x1b[2J\x1b]0;x\x07", "a\nb", "a\tb", "\u202egpj.exe", "a|b", "`a`", "<script>alert(1)<", "\"", "'", "\u2028", "\x7f", "\r", "\u009b2J",
	"\n| R-999 | \"forged\" | 1 | restore_active |", "\nspectrum: forged", "\nhint: forged", "[x](y)", "*b*", "&lt;", "e\u200b", "\ufeff", "# h", "\U000e0041",
	"\u3164", "\u115f", "\uffa0", "\u2800", "e\ufe0f", "e\u034f", "\u17b4", "\u180b", "e\u0301\u0301\u0301\u0301", "\u0085", "\u00ad",
	"__init__.py", "_b_", "~~s~~", "www.example.com", "mailto:a@example.com",
}

// hostileID is a run id that would forge something.
const hostileID = "r\x1b[2J\u202e|`\n| forged | x |"

// styles are the weights and colours of the program itself. No name has them.
var styles = regexp.MustCompile("\x1b\\[(0|1|2|(1;)?3[0-7])m")

// TestNothingIsForged: row 28, what people are shown of hostile names: on a
// terminal, in the Markdown of a preview, in messages and in JSON.
func TestNothingIsForged(t *testing.T) {
	p := newPlace(t)
	oddly(shownNames)(p)
	harness.Must(t, os.Rename(p.dirs[0], p.runDir(hostileID)))
	p.runs[0].id, p.runs[0].dir, p.dirs = hostileID, p.runDir(hostileID), []string{p.runDir(hostileID)}

	report := p.run("preview", "--restore-root", p.root, p.dirs[0])
	p.isReport("a preview", report.stderr, len(shownNames), 1)
	harness.Must(t, os.WriteFile(p.atRoot(shownNames[0]), nil, 0o644))
	harness.Must(t, os.WriteFile(p.atRoot(shownNames[4]), nil, 0o644))
	conflicts := p.run("preview", "--restore-root", p.root, p.dirs[0])
	p.isReport("a preview with conflicts", conflicts.stderr, len(shownNames), 3)
	harness.Must(t, os.Remove(p.atRoot(shownNames[0])))
	harness.Must(t, os.Remove(p.atRoot(shownNames[4])))

	said := p.onTerminal("statement:", harness.Statement, p.argv([]string{"commit", "--restore-root", p.root, p.dirs[0]}))
	p.isPlain("a terminal", styles.ReplaceAllString(strings.ReplaceAll(said, "\r\n", "\n"), ""))
	if got, err := contents(p.root); err != nil || difference(p.wanted(), got) != "" {
		t.Errorf("what was approved on a terminal was not restored: %v: %s", err, said)
	}
	p.namesInJSON()
	p.messages()
}

// namesInJSON requires the names in the decision block byte for byte, on one line without control
// characters.
func (p *place) namesInJSON() {
	p.Helper()
	harness.Must(p, os.Mkdir(p.top+"/other", 0o755))
	r := p.run("preview", "--json", "--restore-root", p.top+"/other", p.dirs[0])
	if strings.Contains(r.stdout, "\n") {
		p.Errorf("JSON on several lines: %v", r)
	}
	p.isPlain("JSON", r.stdout)
	var block struct {
		Items []struct {
			Item string `json:"item"`
		} `json:"proposed_restorations"`
	}
	harness.Must(p, json.Unmarshal([]byte(r.stdout), &block))
	var got []string
	for _, item := range block.Items {
		got = append(got, item.Item)
	}
	if want := sorted(p.runs[0].outputs); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		p.Errorf("JSON names %q, want %q", got, want)
	}
}

// messages breaks each output in turn, and looks at what is said about it.
func (p *place) messages() {
	p.Helper()
	for _, name := range shownNames {
		harness.Must(p, os.WriteFile(p.at(name), []byte("other"), 0o644))
		r := p.run("verify", p.dirs[0])
		p.isPlain(fmt.Sprintf("a message about %q", name), r.stderr)
		for line := range strings.Lines(r.stderr) {
			if !strings.HasPrefix(line, "spectrum: ") && !strings.HasPrefix(line, "hint: ") || strings.Count(r.stderr, "\n") > 2 {
				p.Errorf("a line was forged: %q", r.stderr)
			}
		}
		harness.Must(p, os.WriteFile(p.at(name), []byte("content of "+name), 0o644))
	}
}

// isPlain requires that no character moves a cursor, changes the direction of text, or is
// invisible.
func (p *place) isPlain(what, text string) {
	p.Helper()
	marks := 0
	for _, c := range text {
		marks++
		if !unicode.Is(unicode.M, c) {
			marks = 0
		}
		if c != '\n' && !unicode.IsPrint(c) || strings.ContainsRune(neverSeen, c) || marks > 2 {
			p.Errorf("%s shows %q: %.3000q", what, c, text)
			return
		}
	}
}

// neverSeen are characters that Go takes for printable, and no reader sees.
const neverSeen = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe0f\uffa0"

var (
	bare = regexp.MustCompile("[`<>*~@#$&\\\\]|\\[|\\]|(?i:[a-z]://|mailto:|www[.]|gh-[0-9])")
	pipe = regexp.MustCompile(`(^|[^\\])\|`)
)

// isReport requires a report of so many items and conflicts: in its tables every row has the
// cells of its head, and no line is there that is none of its own.
func (p *place) isReport(what, text string, items, conflicts int) {
	p.Helper()
	p.isPlain(what, text)
	rows, columns := map[string]int{}, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") {
			columns = 0
			if bare.MatchString(strings.TrimLeft(outsideCode(line), "#")) || !ownLine.MatchString(line) {
				p.Errorf("%s has the line %q", what, line)
			}
			continue
		}
		cells := len(pipe.FindAllString(line, -1))
		if columns == 0 {
			columns = cells
		}
		if cells != columns || bare.MatchString(outsideCode(line)) {
			p.Errorf("%s has the row %q with %d cells of %d", what, line, cells, columns)
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " ")
		rows[strings.TrimRight(first, "0123456789")]++
	}
	// the items are decided in one row, and conflicts in one of their own, or several in one
	if rows["R-"] != items+1 || rows["C-"] <= conflicts || rows["C-"] > 2*conflicts || strings.Contains(text, "R-999 |") && !strings.Contains(text, `R-999 \|`) {
		p.Errorf("%s has %d items and %d conflicts, not %d and %d:\n%s", what, rows["R-"], rows["C-"], items, conflicts, text)
	}
}

// outsideCode is what a line of Markdown has beside its code spans. One that has no end
// is not code: all from its backticks on stays.
func outsideCode(line string) string {
	var outside strings.Builder
	for {
		begin, rest, found := strings.Cut(line, "`")
		outside.WriteString(begin)
		if !found {
			return outside.String()
		}
		code := strings.TrimLeft(rest, "`")
		fence := "`" + rest[:len(rest)-len(code)]
		end := regexp.MustCompile("(^|[^`])" + fence + "([^`]|$)").FindStringIndex(code)
		if end == nil {
			return outside.String() + fence + code
		}
		line = strings.TrimLeft(code[end[0]+1:], "`")
	}
}

// ownLine are the lines of a report outside its tables.
var ownLine = regexp.MustCompile(`^$|^#|^ {4}Approved: |^Nothing has been written|^None: no target exists|^None\.$|^- [A-Z][a-z- ]+\? (yes|no|unknown)( \((none by name; )?the signer has not declared scopes\))?$|^Recommended: [a-z][-a-zCR0-9,:;_.A-Z ]+\.$|^A commit of the preview exactly as proposed will be rejected: |^To approve the preview exactly as proposed would be to [a-z][-a-zCR0-9,:; ]+\.$|^This is a part of the candidate: |^To change this, run preview again|^preview_id [0-9a-f]{64}$|^How this can be undone:$|^- (Rollback is supported\.|Before the commit writes anything,|What is edited after the commit|The snapshot before the commit) `)

// onTerminal runs a command on a terminal of its own, answers its question with a line, and
// returns what the terminal got. What is typed before the question answers nothing.
func (p *place) onTerminal(question, answer string, argv []string) string {
	p.Helper()
	tty := terminal.Sit(p, 200, 400)
	ctx, cancel := context.WithTimeout(p.Context(), harness.Patience)
	defer cancel()
	c := p.cmd(ctx, argv)
	c.Stdin, c.Stdout, c.Stderr = tty.Program, tty.Program, tty.Program
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	harness.Must(p, c.Start())
	tty.Await(p, question)
	tty.Type(p, answer+"\n")
	err := c.Wait()
	said := tty.Hang(p)
	if err != nil {
		p.Errorf("on a terminal: %v: %s", err, said)
	}
	return said
}
