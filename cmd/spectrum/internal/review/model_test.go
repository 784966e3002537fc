package review

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
	"pgregory.net/rapid"
)

// source is a source of a test: a statement of items, and one patch for all.
type source struct {
	over   *report.Overview
	patch  string
	err    error
	read   []int // items whose changes were read
	drafts int
}

func (s *source) Changes(_ context.Context, number int) ([]byte, string, error) {
	s.read = append(s.read, number)
	return []byte(s.patch), "", s.err
}

func (s *source) Page(context.Context, int) error { return nil }

func (s *source) Draft(c preview.Choice) (d preview.Draft) {
	s.drafts++
	out := map[int]bool{}
	var acknowledged []int
	for n, v := range c.Decisions {
		if v == statement.Acknowledged {
			acknowledged = append(acknowledged, n)
		}
		if v == statement.Rejected {
			for _, i := range s.over.Conflicts[n-1].Items {
				out[i] = true
			}
		}
	}
	for _, n := range c.Items {
		if !out[n] {
			d.Items = append(d.Items, n)
		}
	}
	if len(d.Items) == 0 {
		d.Why = errors.New("no item is chosen")
		return d
	}
	d.Statement = "Approved: restore items " + statement.FormatItems(d.Items) + " only."
	if len(acknowledged) > 0 {
		d.Statement += " Acknowledge " + statement.FormatConflicts(acknowledged) + "."
	}
	for _, x := range s.over.Conflicts {
		if c.Decisions[x.Number] == "" && len(x.Items) == 0 {
			d.Open = append(d.Open, x.Number)
		}
	}
	if len(d.Open) > 0 {
		d.Why = preview.ErrUndecided
	}
	return d
}

// hostile is a name, a text and a content that would do harm to a terminal.
const hostile = "e\x1b[2J\x1b]0;x\x07\u202evil\u200b\r\n\x9b31m\u2028é"

const patchText = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n-old\n+new " + hostile + "\n+a line that is so long that it has to be broken on a narrow screen, more than once, wherever it is shown\n\\ No newline at end of file\n"

// sitting is a review of a test.
type sitting struct {
	*Model
	t     testing.TB
	src   *source
	ended bool

	hold bool // no screen is drawn: held are the messages that one was
	held []drawn
}

func overview(paths ...string) report.Overview {
	v := report.Overview{
		ID: strings.Repeat("ab", 32), Source: "run r", Word: "READY", Verdict: "Nothing is in the way.", Grade: report.Good, Root: "/root", Counts: "some", Size: "1 KiB",
		Signers: []string{"0123456789abcdef… (not pinned)"}, Facts: []report.Row{{Name: "can run", Value: "x"}},
		Conflicts: []report.Conflict{
			{Number: 1, ID: "C-001", Type: "authority_conflict", Path: hostile, Current: hostile, Claim: "c", Authority: "a", Risk: "r", Resolution: "s"},
			{Number: 2, ID: "C-002", Type: "state_conflict", Path: paths[0], Items: []int{1}, Current: "there", Claim: "c", Authority: "a", Risk: "r", Resolution: "s"},
			{Number: 3, ID: "C-003", Type: "authority_conflict", Path: "/way", OnlyAcknowledge: true},
		},
	}
	for n, path := range paths {
		v.Items = append(v.Items, report.Item{Number: n + 1, ID: fmt.Sprintf("R-%03d", n+1), Path: path, Scope: "project_state", Mode: "0644", Bytes: 5, Fate: report.Created, Free: true})
	}
	v.Items[0].Conflicts, v.Items[0].Runs, v.Items[0].Reason = []int{2}, hostile, hostile
	return v
}

// some are files in directories, one of them with a hostile name.
func some() []string {
	return []string{"README.md", "a/b/c/deep.go", "a/b/c/other.go", "a/top.go", "docs/" + hostile, "docs/guide.md", "z"}
}

func sit(t testing.TB, over report.Overview, width, height int) *sitting {
	s := &sitting{t: t, src: &source{over: &over, patch: patchText}}
	var chosen []int
	for _, i := range over.Items {
		if i.Free {
			chosen = append(chosen, i.Number)
		}
	}
	s.Model = New(context.Background(), Config{Overview: over, Chosen: chosen, Recap: []string{"READY: all"}, Source: s.src, Color: true})
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

// send gives a message to the model, and returns the result.
func (s *sitting) send(msg tea.Msg) {
	_, cmd := s.Update(msg)
	for cmd != nil {
		next := cmd()
		if answer, is := next.(drawn); is && s.hold {
			s.held, next = append(s.held, answer), nil
		}
		if _, quit := next.(tea.QuitMsg); quit {
			s.ended = true
			return
		}
		switch next.(type) {
		case changed, drawn:
		default:
			return
		}
		_, cmd = s.Update(next)
	}
}

var special = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
	"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "backspace": {Code: tea.KeyBackspace}, "space": {Code: ' ', Text: " "},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
}

// press presses keys by their names.
func (s *sitting) press(keys ...string) *sitting {
	for _, key := range keys {
		k, ok := special[key]
		if !ok {
			k = tea.Key{Code: []rune(key)[0], Text: key}
		}
		s.send(tea.KeyPressMsg(k))
	}
	return s
}

// enter types a text.
func (s *sitting) enter(text string) *sitting { return s.press(strings.Split(text, "")...) }

// text is what is on the screen, without styles.
func (s *sitting) text() string { return ansi.Strip(s.View().Content) }

func (s *sitting) shows(wants ...string) {
	s.t.Helper()
	for _, want := range wants {
		if !strings.Contains(s.text(), want) {
			s.t.Errorf("%q is not on the screen:\n%s", want, s.text())
		}
	}
}

var styles = regexp.MustCompile(`\x1b\[\d*m`)

// checkScreen compares a screen with its size, and requires that it has no invisible characters.
func (s *sitting) checkScreen(t interface{ Fatalf(string, ...any) }) {
	content := s.View().Content
	rows := strings.Split(content, "\n")
	if len(rows) > s.height {
		t.Fatalf("%d rows on %dx%d", len(rows), s.width, s.height)
	}
	for _, row := range rows {
		row = styles.ReplaceAllString(row, "")
		if w := width(row); w > s.width || w < s.width && !s.isSmall() {
			t.Fatalf("%d columns on %dx%d: %q", w, s.width, s.height, row)
		}
		if at := strings.IndexFunc(row, func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
			t.Fatalf("it cannot be seen: %q", row)
		}
	}
}

// TestScreens: whatever is pressed on whatever screen, the screen is filled and no more, and what
// is shown of names and contents is what can be seen. Nothing is given that was not typed.
func TestScreens(t *testing.T) {
	names := []string{"enter", "esc", "tab", "up", "down", "left", "right", "pgup", "pgdown", "home", "end", "backspace", "space", "a", "r", "s", "u", "E", "c", "f", "/", "n", "N", "i", "?", "A", "x", "J", "K", "R", "v", "é"}
	rapid.Check(t, func(rt *rapid.T) {
		s := sit(t, overview(some()...), 80, 24)
		for range rapid.IntRange(1, 40).Draw(rt, "keys") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				s.send(tea.WindowSizeMsg{Width: rapid.IntRange(1, 210).Draw(rt, "width"), Height: rapid.IntRange(1, 70).Draw(rt, "height")})
			case 1:
				s.send(tea.PasteMsg{Content: hostile})
			default:
				s.press(rapid.SampledFrom(names).Draw(rt, "key"))
			}
			s.checkScreen(rt)
			if s.given != "" && s.slips < maxSlips {
				rt.Fatalf("given: %q", s.given)
			}
		}
	})
}

// TestPanes: on a wide screen both sides are shown, on a narrow one the one that the keys are for.
func TestPanes(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {60, 20}, {79, 24}, {80, 24}, {200, 60}} {
		s := sit(t, overview("a.txt", "b.txt"), size[0], size[1])
		wide := size[0] >= 80
		if both := strings.Contains(s.text(), "b.txt") && strings.Contains(s.text(), "project_state"); both != wide {
			t.Errorf("%v:\n%s", size, s.text())
		}
		s.press("down", "enter", "end")
		s.shows("No newline")
		s.press("esc")
		s.shows("b.txt")
		if s.isTall() {
			s.shows("signed by 0123456789abcdef… (not pinned)", "3 conflicts, 2 to decide", "Nothing is in the way")
		}
		s.shows("READY", "Approved: restore items R-001 and", "to decide: C-001 and C-003")
	}
}

// TestSmallScreenDecidesNothing: on a screen that is too small nothing can be decided, and q leaves.
func TestSmallScreenDecidesNothing(t *testing.T) {
	s := sit(t, overview(some()...), 39, 12).press("c", "E", "A", "space")
	if len(s.verdicts) > 0 || s.cover != nothing {
		t.Errorf("%+v", s.verdicts)
	}
	s.shows("40x12")
	if s.press("q"); !s.ended || s.given != "" {
		t.Error("it does not end")
	}
}

// TestTree: directories fold, and what is in them comes and goes; a way without branches is one row.
func TestTree(t *testing.T) {
	s := sit(t, overview(some()...), 100, 30)
	s.shows("v a/ (3)", "v b/c/ (2)", "deep.go", `u202evil`)
	s.press("down", "left")
	s.shows("> a/ (3)")
	if strings.Contains(s.text(), "deep.go") {
		t.Errorf("it is folded:\n%s", s.text())
	}
	s.press("right", "down", "down", "left")
	s.shows("v b/c/ (2)")
	if r := s.tree.rows[s.at[files]]; r.path != "a/b/c/" {
		t.Errorf("left goes to the directory: %+v", r)
	}
}

// TestSearch: what is searched is found in folded directories too, again and again.
func TestSearch(t *testing.T) {
	s := sit(t, overview(some()...), 100, 30).press("down", "left", "home", "/").enter("OTHER").press("enter")
	s.shows("no listed file has OTHER")
	s.press("/").enter("other").press("enter")
	if i := s.item(); i == nil || i.Path != "a/b/c/other.go" {
		t.Fatalf("%+v", i)
	}
	s.press("/").enter("R-00").press("enter")
	first := s.item()
	for range len(some()) {
		s.press("n")
	}
	if s.item() != first || s.press("N").item() == first {
		t.Errorf("%+v", s.item())
	}
	s.press("/").enter("zz").press("esc", "c", "/").enter("state").press("enter")
	if c := s.conflict(); c == nil || c.ID != "C-002" {
		t.Errorf("%+v", c)
	}
}

// TestFilter: each filter lists some of the files, and the one that is looked at stays so.
func TestFilter(t *testing.T) {
	over := overview("a", "b", "c")
	over.Items[1].Fate, over.Items[1].Free = report.Conflicting, false
	s := sit(t, over, 100, 30).press("end", "f")
	if got := s.item().Path; len(s.tree.rows) != 2 || got != "c" {
		t.Errorf("%d rows, at %s", len(s.tree.rows), got)
	}
	s.press("f")
	s.shows("files with a conflict")
	s.press("f", "f")
	if len(s.tree.rows) != 3 {
		t.Errorf("%d rows", len(s.tree.rows))
	}
}

// TestChoose: files and directories are left out and chosen again; what cannot be approved is not.
func TestChoose(t *testing.T) {
	over := overview("a/1", "a/2", "a/secret", "b", "aside")
	over.Items[2].Restricted = true
	over.Items[3].Fate, over.Items[3].Free = report.Blocked, false
	over.Items[4].Fate, over.Items[4].Free = report.LeftAside, false
	s := sit(t, over, 100, 30)
	s.in[3] = false
	s.compose()
	s.press("space")
	s.shows("no item is chosen")
	s.press("space", "down", "x")
	s.shows("Approved: restore items R-002 only.")
	s.press("end", "space")
	s.shows("R-004 is blocked")
	s.press("up", "space")
	s.shows("R-005 is not proposed")
	s.press("up", "space")
	s.shows("Approved: restore items R-002 and R-003 only.", "may hold a secret")
	if slices.Contains(s.src.read, 3) {
		t.Error("the changes of a secret were read")
	}
}

// TestDecideDiverged: whatever the statement says of the conflict of a file that has diverged,
// that file is left out, and the last row says what restores it.
func TestDecideDiverged(t *testing.T) {
	over := overview(some()...)
	over.Items[0].Fate, over.Items[0].Free, over.Conflicts[1].Resolution = report.Diverged, false, "how"
	s := sit(t, over, 80, 24)
	s.press("c", "down")
	s.shows("recommended: how")
	s.press("a")
	s.shows("C-002: acknowledged, and left out; R makes a preview that replaces it")
	s.press("R")
	s.shows("R makes the new preview")
	s.press("up", "R")
	s.shows("not about a file that has diverged")
	if s.replace != "" {
		t.Errorf("a key that did not ask for it replaces in %s", s.replace)
	}
	s.press("down", "R", "R")
	if s.replace != "R-001" {
		t.Errorf("it replaces in %q", s.replace)
	}
}

// TestReplaceUntouched: where nothing was chosen or decided, one R is enough.
func TestReplaceUntouched(t *testing.T) {
	over := overview(some()...)
	over.Items[0].Fate, over.Items[0].Free = report.Diverged, false
	s := sit(t, over, 80, 24)
	s.press("u")
	s.shows("C-002: not decided")
	s.press("R")
	if s.replace != "R-001" {
		t.Errorf("it replaces in %q", s.replace)
	}
}

// TestDecide: each verdict goes into the statement, and comes out again.
func TestDecide(t *testing.T) {
	s := sit(t, overview(some()...), 100, 30)
	s.press("r")
	s.shows("Approved: restore items R-002 to R-007 only.", "C-002: rejected")
	s.press("space", "space", "u", "a")
	s.shows("Approved: restore items R-001 to R-007 only. Acknowledge C-002.")
	s.press("c", "r")
	s.shows("C-001 concerns the whole candidate")
	s.press("s", "end", "s")
	s.shows("C-003 can only be acknowledged", "to decide: C-003")
	s.press("a", "esc", "down", "a")
	s.shows("no conflict is selected", "ready, 7 files")
	s.press("E")
	s.shows("in their list")
	if got := s.verdicts; got[1] != statement.Resolved || got[2] != statement.Acknowledged || got[3] != statement.Acknowledged {
		t.Errorf("%v", got)
	}
}

// TestLeave: q and Ctrl-C end a review with nothing given, wherever they are pressed.
func TestLeave(t *testing.T) {
	for _, before := range [][]string{{}, {"?"}, {"i"}, {"/", "x"}, {"A"}, {"A", "A"}, {"c"}, {"tab"}} {
		s := decidedSitting(t, 80, 24).press(before...).press("ctrl+c")
		if !s.ended || !s.interrupted || s.given != "" {
			t.Errorf("%q, then Ctrl-C: %q", before, s.given)
		}
	}
	for _, before := range [][]string{{}, {"A"}, {"c"}, {"tab"}, {"?", "q"}, {"i", "q"}} {
		s := decidedSitting(t, 80, 24).press(before...).press("q")
		if s.ended {
			t.Errorf("%q, then q: it leaves with what was decided, and does not ask", before)
		}
		s.shows("what was chosen and decided is lost: q leaves")
		if s.press("up", "q"); s.ended {
			t.Errorf("%q: another key is not an answer", before)
		}
		s.press("q")
		if !s.ended || s.interrupted || s.given != "" || s.draft.Why != nil || s.draft.Statement != wholeStatement {
			t.Errorf("%q, then q: %q", before, s.given)
		}
	}
	if s := sit(t, overview(some()...), 80, 24).press("x", "x", "q"); !s.ended {
		t.Error("nothing was chosen, and it asks")
	}
}

// TestChangesOnce: the changes of a file are read when it is looked at, once, and an error of it
// is shown.
func TestChangesOnce(t *testing.T) {
	s := sit(t, overview("a", "b", "c"), 80, 24).press("down", "up", "down", "tab", "tab")
	if !slices.Equal(s.src.read, []int{1, 2}) {
		t.Errorf("%v", s.src.read)
	}
	s.src.err = errors.New("it has " + hostile)
	s.press("down")
	s.shows(`e\x1b[2J`)
	for range 2 * maxChanges {
		s.press("up", "down")
	}
	if len(s.src.read) != 3 {
		t.Errorf("%v", s.src.read)
	}
}

// TestNoColor: without colors there is none, and what is looked at can still be seen.
func TestNoColor(t *testing.T) {
	s := sit(t, overview(some()...), 100, 30)
	colored := s.View().Content
	s.config.Color = false
	plain := s.View().Content
	if regexp.MustCompile(`\x1b\[3\d`).MatchString(plain) || ansi.Strip(plain) != ansi.Strip(colored) || plain == colored {
		t.Errorf("%q", plain)
	}
	s.shows("\n>[x] A README.md")
}

// TestHelp names every key that does something.
func TestHelp(t *testing.T) {
	s := sit(t, overview(some()...), 80, 50).press("?")
	for _, key := range []string{"Enter", "Tab", "space", "Esc", "PgUp", "E", "Ctrl-L", "q"} {
		s.shows(key)
	}
	s.press("x").shows("README.md")
	s.press("é")
	s.shows("key é has no function here; press ? for help")
}

// TestMessagesWhole: a message is shown to its end, also where it is longer than a line, and says
// what to do next; the foot says how a conflict is decided.
func TestMessagesWhole(t *testing.T) {
	for _, size := range [][2]int{{40, 12}, {60, 20}, {80, 24}} {
		over := overview(some()...)
		s := sit(t, over, size[0], size[1])
		s.shows("to decide: C-001 and C-003; c, then a")
		over.Held = true
		s = sit(t, over, size[0], size[1])
		s.shows("in quarantine")
		s.press("A")
		if got := strings.Join(strings.Fields(s.text()), " "); !strings.Contains(got, "until a person has released it; q leaves, and names the \"spectrum quarantine release\" that does") {
			t.Errorf("%v:\n%s", size, s.text())
		}
		s.checkScreen(t)
		s = decidedSitting(t, size[0], size[1]).press("A", "pgdown", "pgdown").enter("sure").press("enter").enter("sure").press("enter")
		if got := strings.Join(strings.Fields(s.text()), " "); !strings.Contains(got, "quarantine: \"sure\" is not \"Approved\"") {
			t.Errorf("%v:\n%s", size, s.text())
		}
		s.checkScreen(t)
	}
}

// TestBegin: a review begins with the first file that changes, and v says what it does not open.
func TestBegin(t *testing.T) {
	v := overview(".env", "a", "b/c", "b/d")
	v.Items[0].Fate = report.LeftAside
	s := sit(t, v, 100, 30)
	if i := s.item(); i == nil || i.Path != "a" {
		t.Errorf("it begins with %+v", i)
	}
	s.press("down", "v").shows("this is a directory")
	if s.press("q"); s.ended {
		t.Error("q, which would have ended the pager, ends the review")
	}
	s.press("c", "v").shows("this is a conflict")
}

// TestPartHasToDecide: where a file is left out, and what the whole statement acknowledges has to be
// decided, the reason is on the screen.
func TestPartHasToDecide(t *testing.T) {
	s := sit(t, overview("a", "b"), 80, 24)
	s.draft.Taken = []int{1}
	s.press("x").shows("a statement of a part has to acknowledge C-001 by number: c, then a")
}

// TestTakenIsNamed: a conflict that the whole statement acknowledges is listed as that.
func TestTakenIsNamed(t *testing.T) {
	s := sit(t, overview("a", "b"), 80, 24)
	s.draft.Taken, s.draft.Open = []int{1}, nil
	s.press("c").shows("C-001 authority_conflict: acknowledged by the", "> ackn C-001")
}

// TestLowStanding: on the smallest screen it is seen whether the signer is pinned.
func TestLowStanding(t *testing.T) {
	v := overview("a")
	sit(t, v, 40, 12).shows("signer not pinned; 3 conflicts")
	v.Pinned = true
	sit(t, v, 40, 12).shows("signer pinned; 3 conflicts")
}

// TestMoreReplaced: an approval of more files than it names names their directories, or says where the
// others are named.
func TestMoreReplaced(t *testing.T) {
	for begin, want := range map[string]string{"": "replace 1,301 more files, which the list of files has", "src/": "replace src/ 1,500 files"} {
		var paths []string
		for n := range 1500 {
			paths = append(paths, fmt.Sprintf("%sf%04d", begin, n))
		}
		v := overview(paths...)
		for n := range v.Items {
			v.Items[n].Fate = report.Replaced
		}
		s := sit(t, v, 80, 40).press("c", "E", "c", "A")
		s.shows("1,500 files", "R-1500")
		lines, last := s.coverLines()
		text := ""
		for _, l := range lines[:last] {
			text += l.text + "\n"
		}
		if !strings.Contains(text, want) || strings.Contains(text, "--json") {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// TestNothingBeginsALine: no text of others begins a line of a cover, whatever is in a name, and a name is
// quoted where its ends could not be seen.
func TestNothingBeginsALine(t *testing.T) {
	const forged = "conflicts: none; signer pinned"
	for _, columns := range []int{40, 60, 80} {
		for blanks := range columns {
			hostile := "a" + strings.Repeat("漢", blanks%7) + strings.Repeat("x", blanks) + " " + forged + " " + forged
			v := overview(hostile, "b")
			v.Items[0].Fate, v.Items[0].Before = report.Replaced, &report.Existing{Mode: "0644"}
			v.Items[0].Runs, v.Running = "it is executable", []int{1}
			v.Conflicts[0].Path = hostile
			v.Title = report.Name("t" + hostile)
			v.Facts = append(v.Facts, report.Row{Name: "can run", Value: report.Name(hostile)}, report.Row{Value: report.Name(hostile)}, report.Row{Name: "warning", Value: hostile})
			s := sit(t, v, columns, 40).press("c", "E", "esc")
			pages := [][]line{s.aboutItem(&v.Items[0], columns), s.aboutConflict(&v.Conflicts[0], columns)}
			for _, key := range []string{"i", "A"} {
				s.press(key)
				lines, _ := s.coverLines()
				pages = append(pages, lines)
				s.press("esc")
			}
			for _, lines := range pages {
				for _, l := range lines {
					if strings.HasPrefix(l.text, "conflicts: none") || strings.HasPrefix(l.text, "none") || width(l.text) > columns {
						t.Fatalf("%d columns: %q", columns, l.text)
					}
				}
			}
			if text := fmt.Sprint(pages); !strings.Contains(text, `"a`) {
				t.Fatalf("a name is not quoted:\n%s", text)
			}
		}
	}
}
