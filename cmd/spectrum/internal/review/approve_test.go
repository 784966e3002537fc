package review

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

const wholeStatement = "Approved: restore items R-001 to R-007 only. Acknowledge C-001 and C-003."

// decidedSitting is one of which only the approval is missing.
func decidedSitting(t testing.TB, width, height int) *sitting {
	return sit(t, overview(some()...), width, height).press("c", "E", "esc")
}

// TestApprove: the statement is given once its first word was typed, or all of it.
func TestApprove(t *testing.T) {
	for _, typed := range []string{"Approved", " Approved ", wholeStatement} {
		s := decidedSitting(t, 80, 24).press("A")
		s.shows(wholeStatement, "also writes RESTORE_MANIFEST.json and RESTORE_REPORT.json")
		if s.enter(typed).press("enter"); !s.ended || s.given != wholeStatement || s.interrupted {
			t.Errorf("%q: %q", typed, s.given)
		}
	}
	s := decidedSitting(t, 80, 24).press("A")
	s.send(tea.PasteMsg{Content: wholeStatement})
	s.shows("a pasted text approves nothing")
	if s.press("enter"); s.given != "" {
		t.Errorf("pasted: %q", s.given)
	}
}

// TestApproveNot: nothing else gives it: no other word, no other statement, no refusal, and no
// statement that lacks a decision.
func TestApproveNot(t *testing.T) {
	s := sit(t, overview(some()...), 80, 24).press("A")
	s.shows("first decide C-001 and C-003")
	for _, typed := range []string{"", "no", "N", "reject.", "exit", "fg"} {
		if s := decidedSitting(t, 80, 24).press("A").enter(typed).press("enter"); s.ended || s.slips > 0 || s.cover != nothing {
			t.Errorf("%q: %+v", typed, s.given)
		}
	}
	s = decidedSitting(t, 80, 24).press("A").enter("Approved: restore item R-001 only.").press("enter")
	s.shows("this differs from the statement")
	for _, typed := range []string{"yes", "Approval"} {
		if s.enter(typed).press("enter"); s.ended || s.given != "" {
			t.Errorf("%q gives %q", typed, s.given)
		}
	}
	s.shows("one more and the candidate is put in quarantine")
	s.press("esc", "A").enter("sure").press("enter")
	if _, err := statement.Parse(s.given); !s.ended || !errors.Is(err, statement.ErrVague) {
		t.Errorf("the third line is given as it is: %q", s.given)
	}
}

// TestApproveLong: a statement that is longer than the screen has to be read to its end.
func TestApproveLong(t *testing.T) {
	var paths []string
	for n := range 400 {
		paths = append(paths, fmt.Sprintf("f%03d", n))
	}
	s := sit(t, overview(paths...), 40, 12)
	for n := range paths {
		if n%2 == 0 {
			s.in[n+1] = false
		}
	}
	s.compose()
	s.press("c", "E", "A").enter("Approved").press("enter")
	if s.ended || s.given != "" {
		t.Fatalf("given unread: %.80q", s.given)
	}
	s.shows("first read this to its end")
	for range 60 {
		s.press("pgdown")
	}
	if s.enter("Approved").press("enter"); s.given != s.draft.Statement {
		t.Errorf("%.80q", s.given)
	}
}

// TestApprovedIsSeen: what is removed, replaced and created, and where, has to be on the screen before the
// word counts, on every screen, and comes first; a screen that is resized is read anew.
func TestApprovedIsSeen(t *testing.T) {
	var paths []string
	for n := range 22 {
		paths = append(paths, fmt.Sprintf("f%02d", n))
	}
	over := overview(paths...)
	over.Items[4].Fate, over.Items[4].Before, over.Items[4].Path = report.Replaced, &report.Existing{Mode: "0644"}, "replaced.txt"
	over.Items[20].Fate, over.Items[20].Removal, over.Items[20].Path = report.Removed, true, "gone.txt"
	over.Root = "/the/root"
	for _, size := range [][2]int{{40, 12}, {60, 20}, {80, 24}} {
		s := sit(t, over, size[0], size[1])
		s.shows("/the/root")
		s.press("down", "x", "c", "E", "A")
		read := s.text()
		for range 20 {
			if strings.Contains(s.text(), "type "+firstWord) {
				break
			}
			if s.enter(firstWord).press("enter"); s.given != "" {
				t.Fatalf("%v: given unread:\n%s", size, read)
			}
			s.press("pgdown")
			read += s.text()
		}
		removed, replaced, created := strings.Index(read, "remove 1 file: gone.txt"), strings.Index(read, "replace 1 file: replaced.txt"), strings.Index(read, "create 19 files")
		if removed < 0 || replaced < removed || created < replaced || !strings.Contains(read, "f00") || !strings.Contains(read, "f21") || !strings.Contains(read, "in /the/root") {
			t.Errorf("%v: %d %d %d:\n%s", size, removed, replaced, created, read)
		}
		s.send(tea.WindowSizeMsg{Width: 40, Height: 12})
		if s.enter(firstWord).press("enter"); s.given != "" {
			t.Errorf("%v: given unread after it was resized", size)
		}
	}
}

// TestVerdictsOfApproval: the question says of the conflicts what was decided, and nothing else.
func TestVerdictsOfApproval(t *testing.T) {
	s := decidedSitting(t, 80, 24).press("A")
	s.shows("Acknowledge C-001 and C-003.", "conflicts: C-001 and C-003 acknowledged; C-002 not decided")
	s.press("esc", "home", "r", "A")
	s.shows("conflicts: C-001 and C-003 acknowledged; C-002 rejected")
}

// TestTypedUnseen: what is typed or pasted before the question was drawn does not answer it.
func TestTypedUnseen(t *testing.T) {
	s := decidedSitting(t, 80, 24)
	s.hold = true
	s.press("A").enter("Approved").press("enter")
	s.send(tea.PasteMsg{Content: "Approved"})
	s.press("enter")
	if s.given != "" || s.input != "" || s.slips > 0 || s.cover != approval || strings.Contains(s.text(), "type "+firstWord) {
		t.Fatalf("%q was given, %q typed:\n%s", s.given, s.input, s.text())
	}
	first := s.held[0]
	last := s.held[len(s.held)-1]
	if s.send(first); s.drawn {
		t.Error("keys have arrived since")
	}
	s.press("esc", "A")
	if s.send(last); s.drawn {
		t.Error("the screen of another question counts")
	}
	for _, input := range []tea.Msg{tea.FocusMsg{}, tea.MouseMotionMsg{}, tea.PasteMsg{Content: "x"}, tea.KeyReleaseMsg{}, "what the reader does not know"} {
		for range quietTimes - 1 {
			s.send(s.held[len(s.held)-1])
		}
		before := len(s.held)
		if s.send(input); s.drawn || len(s.held) == before {
			t.Errorf("%T does not begin the wait anew", input)
		}
	}
	pending := true
	s.config.Pending = func() bool { return pending }
	for range 2 * quietTimes {
		s.send(s.held[len(s.held)-1])
	}
	if s.drawn {
		t.Error("input waits to be read")
	}
	pending = false
	for range quietTimes {
		s.send(s.held[len(s.held)-1])
	}
	s.shows("type " + firstWord)
	if s.send(tea.PasteMsg{Content: "Approved"}); s.input != "" {
		t.Errorf("%q was pasted", s.input)
	}
	if s.enter("Approved").press("enter"); s.given != wholeStatement {
		t.Errorf("%q", s.given)
	}
}

// TestTypedInPart: a word of which the beginning was typed before the question is not a wrong word,
// and what is given as wrong is what was typed.
func TestTypedInPart(t *testing.T) {
	s := decidedSitting(t, 80, 24).press("A")
	for range maxSlips + 1 {
		if s.enter("pproved").press("enter"); s.ended || s.slips > 0 {
			t.Fatalf("%d slips, given %q", s.slips, s.given)
		}
		s.shows("type the whole word here: Approved")
	}
	for range maxSlips {
		s.enter("yes").press("enter")
	}
	if s.given != "yes" {
		t.Errorf("%q is recorded", s.given)
	}
}

// TestTypedInOtherForm: the word in another case, or with spaces or a full stop, approves nothing, and
// is not a vague answer.
func TestTypedInOtherForm(t *testing.T) {
	s := decidedSitting(t, 80, 24).press("A")
	for _, typed := range []string{"approved", "APPROVED", "Approved.", "Approved:", "Appr oved", strings.ToLower(s.draft.Statement), strings.TrimSuffix(s.draft.Statement, ".")} {
		if s.enter(typed).press("enter"); s.ended || s.slips > 0 || s.given != "" {
			t.Fatalf("%q: %d slips, given %q", typed, s.slips, s.given)
		}
		s.shows("not quite: type exactly")
	}
	if s.enter("Approved").press("enter"); s.given != s.draft.Statement {
		t.Errorf("%q is given", s.given)
	}
}

// TestTypedWhileRejected: the word of an approval that is rejected chooses and decides nothing, and
// opens nothing; the keys that the refusal names work.
func TestTypedWhileRejected(t *testing.T) {
	for _, typed := range []string{"Approved", "approved", "Approved: restore items R-001 only. Acknowledge C-001 to C-003."} {
		s := sit(t, overview(some()...), 80, 24).press("down", "end") // a file without a conflict
		was := s.draft.Statement
		s.enter(typed)
		s.shows("letters are ignored until Esc or Enter")
		if s.press("enter"); s.draft.Statement != was || len(s.verdicts) > 0 || s.detail || s.ended {
			t.Errorf("%q: %q, %v", typed, s.draft.Statement, s.verdicts)
		}
		s.press("c")
		s.shows("OPEN")
	}
	s := sit(t, overview(some()...), 80, 24).press("A")
	s.shows("first decide C-001")
	s.press("c", "E", "A")
	s.shows("The whole statement")
}

// TestApproveNames: a few files that are created are named, and several conflicts are them.
func TestApproveNames(t *testing.T) {
	over := overview("a", "b", "c")
	over.Conflicts = append(over.Conflicts, report.Conflict{Number: 4, ID: "C-004", Path: "c", Items: []int{3}}, report.Conflict{Number: 5, ID: "C-005", Path: "c", Items: []int{3}})
	s := sit(t, over, 100, 40).press("down", "down", "x", "c", "a", "down", "a", "down", "a", "esc", "A")
	s.shows("create 2 files: a, b", "C-004 and C-005 not decided, as nothing that is approved", "touches them")
}

// TestApproveResized: the message on a word that was typed too early goes with a screen that shows all.
func TestApproveResized(t *testing.T) {
	s := decidedSitting(t, 40, 12).press("A")
	s.enter(firstWord)
	s.shows("first read this to its end")
	s.send(tea.WindowSizeMsg{Width: 120, Height: 60})
	if text := s.text(); strings.Contains(text, "read this to its end") || !strings.Contains(text, "type "+firstWord) {
		t.Errorf("after the screen was made larger:\n%s", text)
	}
}

// TestNothingToDo: where every file is there already, no approval is invited; a preview without a title
// has no row for it.
func TestNothingToDo(t *testing.T) {
	over := overview("a", "b")
	over.Conflicts = nil
	for n := range over.Items {
		over.Items[n].Fate, over.Items[n].Conflicts = report.Unchanged, nil
	}
	s := sit(t, over, 100, 40)
	s.shows("nothing to do: 2 files of the statement, all there already")
	if s.press("i"); strings.Contains(s.text(), "title:") {
		t.Errorf("an empty title:\n%s", s.text())
	}
}
