package statement_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/test/sample"
)

// meaning is all that a statement says.
type meaning struct {
	Whole     bool
	Items     []statement.Range
	NotItems  []statement.Range
	Scopes    []scope.Scope
	NotScopes []scope.Scope
	Decisions []statement.Decision
}

func meaningOf(s *statement.Statement) meaning {
	return meaning{s.Whole(), s.Items(), s.NotItems(), s.Scopes(), s.NotScopes(), s.Decisions()}
}

type (
	ranges    = []statement.Range
	scopes    = []scope.Scope
	decisions = []statement.Decision
)

func decided(from, to int, v statement.Verdict) statement.Decision {
	return statement.Decision{Range: statement.Range{From: from, To: to}, Verdict: v}
}

var accepted = []struct {
	text      string
	want      meaning
	canonical string // "" when it is the text
}{
	{statement.Exactly, meaning{Whole: true}, ""},
	{"Approved: restore items R-001, R-002, and R-004 only.", meaning{Items: ranges{{1, 2}, {4, 4}}}, ""},
	{"Approved: restore project state only. Do not restore identity-layer items.",
		meaning{Scopes: scopes{scope.ProjectState}, NotScopes: scopes{scope.SameAgentIdentityLayer}}, ""},
	{"Approved: restore item R-001 only.", meaning{Items: ranges{{1, 1}}}, ""},
	{"Approved: restore items R-001 only.", meaning{Items: ranges{{1, 1}}}, "Approved: restore item R-001 only."},
	{"Approved: restore item R-002 and R-001 only.", meaning{Items: ranges{{1, 2}}}, "Approved: restore items R-001 and R-002 only."},
	{"Approved: restore items R-001, R-002 and R-003 only.", meaning{Items: ranges{{1, 3}}}, "Approved: restore items R-001, R-002, and R-003 only."},
	{"Approved: restore items R-001 to R-020, R-031, and R-999 to R-1000 only.", meaning{Items: ranges{{1, 20}, {31, 31}, {999, 1000}}},
		"Approved: restore items R-001 to R-020, R-031, and R-999 to R-1000 only."},
	{"Approved: restore items R-001 to R-99999999 only.", meaning{Items: ranges{{1, 99999999}}}, ""},
	{"Approved: restore project state and decisions only.", meaning{Scopes: scopes{scope.ProjectState, scope.Decisions}}, ""},
	{"Approved: restore project state, decisions, and next actions only.", meaning{Scopes: scopes{scope.ProjectState, scope.Decisions, scope.NextActions}}, ""},
	{"Approved: restore Next-actions, decisions and project_state only.", meaning{Scopes: scopes{scope.ProjectState, scope.Decisions, scope.NextActions}},
		"Approved: restore project state, decisions, and next actions only."},
	{"Approved: restore restricted context only. Do not restore item R-003. Do not restore operator context and constraints items. Reject C-001.",
		meaning{Scopes: scopes{scope.RestrictedContext}, NotItems: ranges{{3, 3}}, NotScopes: scopes{scope.OperatorContext, scope.Constraints}, Decisions: decisions{decided(1, 1, statement.Rejected)}}, ""},
	{"Approved: restore item R-001 only. Do not restore items R-003. Do not restore item R-002.", meaning{Items: ranges{{1, 1}}, NotItems: ranges{{2, 3}}},
		"Approved: restore item R-001 only. Do not restore items R-002 and R-003."},
	{statement.Exactly + " Acknowledge C-001 to C-020 and C-030. Reject C-021. Resolve C-022, C-024, and C-025.", meaning{Whole: true, Decisions: decisions{
		decided(1, 20, statement.Acknowledged), decided(21, 21, statement.Rejected), decided(22, 22, statement.Resolved),
		decided(24, 25, statement.Resolved), decided(30, 30, statement.Acknowledged)}}, ""},
	{statement.Exactly + " Resolve C-002. Resolve C-001. Acknowledge C-003.", meaning{Whole: true, Decisions: decisions{
		decided(1, 2, statement.Resolved), decided(3, 3, statement.Acknowledged)}}, statement.Exactly + " Acknowledge C-003. Resolve C-001 and C-002."},
}

func TestAccepted(t *testing.T) {
	for _, test := range accepted {
		s, err := statement.Parse(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, meaningOf(s)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.text, diff)
		}
		if test.canonical == "" {
			test.canonical = test.text
		}
		if s.String() != test.canonical {
			t.Errorf("%q prints as %q", test.text, s)
		}
		again, err := statement.Parse(s.String())
		if err != nil || !cmp.Equal(meaningOf(again), meaningOf(s)) {
			t.Errorf("%q, read again: %v", s, err)
		}
	}
}

var rejected = []struct{ text, reason string }{
	{"", "empty"},
	{"Looks good.", `is not an approval`},
	{"Sure.", `is not an approval`},
	{"Proceed with whatever makes sense.", `is not an approval`},
	{"approved", `is not an approval`},
	{"Approved.", `is not an approval`},
	{"Approved:", `is not an approval`},
	{"Approved: ", `found nothing, want the preview`},
	{"Approved: yes.", `found "yes.", want the preview`},
	{"Approved: restore everything.", `"everything" is not a restore scope`},
	{"Approved: restore everything only.", `"everything" is not a restore scope`},
	{"Not " + statement.Exactly, `is not an approval`},
	{statement.Exactly[:len(statement.Exactly)-1], "the full stop is missing at the end"},
	{"Approved: restore item R-001 only", "the full stop is missing at the end"},
	{statement.Exactly + " Reject C-001", "the full stop is missing at the end"},
	{"Approved: restore item R-001.", `the word "only" is missing`},
	{"Approved: restore project state. Do not restore identity-layer items.", `the word "only" is missing`},
	{"Approved: restore R-001 and R-002 only.", `the word "items" is missing`},
	{" " + statement.Exactly, "white space before or after"},
	{statement.Exactly + " ", "white space before or after"},
	{"Approved:  restore item R-001 only.", "more than one space"},
	{statement.Exactly + "  Reject C-001.", "more than one space"},
	{strings.ToLower(statement.Exactly), "upper and lower case"},
	{strings.ToUpper(statement.Exactly), "upper and lower case"},
	{"Approved: restore item r-001 only.", "upper and lower case"},
	{statement.Exactly + " reject c-001.", "upper and lower case"},
	{"Approved: Restore item R-001 only.", "upper and lower case"},
	{statement.Exactly + "\n", `"\n" at byte 58`},
	{"Approved:\trestore item R-001 only.", `"\t" at byte 10`},
	{"Approved:\u00a0restore item R-001 only.", `"\u00a0" at byte 10`},
	{"\ufeff" + statement.Exactly, `"\ufeff" at byte 1`},
	{"\u0410pproved: restore item R-001 only.", `"\u0410" at byte 1`},
	{"Approved: restore item R\u2011001 only.", `"\u2011" at byte 25`},
	{"Approved: restore item R-\uff10\uff10\uff11 only.", `"\uff10"`},
	{"Approved: restore item R-001\u200b only.", `"\u200b"`},
	{"Approved: restore item R-001 only.\x00", `"\x00"`},
	{"Approved: restore item R-001 only.\xff", `"\xff"`},
	{"Approved: restore item R-001 only.\x7f", `"\x7f"`},
	{"Approved: restore item R-1 only.", `found "R-1", want an id`},
	{"Approved: restore item R-0001 only.", `found "R-0001", want an id`},
	{"Approved: restore item R-01000 only.", `want an id`},
	{"Approved: restore item R-000 only.", `want an id`},
	{"Approved: restore item R-+01 only.", `want an id`},
	{"Approved: restore item R-1_0 only.", `want an id`},
	{"Approved: restore item R- only.", `found "R-", want an id`},
	{"Approved: restore item C-001 only.", `found "C-001", want an id`},
	{"Approved: restore item R-100000000 only.", `is above R-99999999`},
	{"Approved: restore item R-99999999999999999999999 only.", `want an id`},
	{"Approved: restore items only.", "want an id"},
	{"Approved: restore items  only.", "want an id"},
	{"Approved: restore items R-001, R-002 only.", `join its last two parts`},
	{"Approved: restore items R-001, and R-002 only.", "want an id"},
	{"Approved: restore items R-001 and R-002 and R-003 only.", `want " only"`},
	{"Approved: restore items R-001 and only.", "want an id"},
	{"Approved: restore items R-001 R-002 only.", `want " only"`},
	{"Approved: restore items R-001-R-003 only.", "want an id"},
	{"Approved: restore items R-003 to R-001 only.", "does not ascend"},
	{"Approved: restore items R-003 to R-003 only.", "does not ascend"},
	{"Approved: restore items R-001 to R-003 to R-005 only.", `want " only"`},
	{"Approved: restore items R-001 to 003 only.", `found "003", want an id`},
	{"Approved: restore items R-001 and R-001 only.", "R-001 is named twice"},
	{"Approved: restore items R-001 to R-009 and R-003 only.", "R-003 is named twice"},
	{"Approved: restore items R-005 to R-009 and R-001 to R-005 only.", "R-005 is named twice"},
	{"Approved: restore items R-001 to R-009 only. Do not restore item R-004.", "R-004 is both restored and not"},
	{"Approved: restore item R-001 only. Do not restore item R-002. Do not restore items R-001 to R-003.", "named twice"},
	{"Approved: restore project state and project_state only.", `"project state" is named twice`},
	{"Approved: restore decisions only. Do not restore decisions items.", `"decisions" is both restored and not`},
	{"Approved: restore decisions only. Do not restore identity layer items. Do not restore identity-layer items.", "named twice"},
	{"Approved: restore decisions items only.", `want " only"`},
	{"Approved: restore decisions only. Do not restore constraints.", `want " items"`},
	{"Approved: restore decisions, constraints only.", `join its last two parts`},
	{"Approved: restore  only.", "is not a restore scope"},
	{"Approved: restore decisions only. Acknowledge.", "begins with neither"},
	{"Approved: restore decisions only. Restore item R-001.", "begins with neither"},
	{"Approved: restore decisions only. Acknowledge R-001.", `found "R-001", want an id`},
	{"Approved: restore decisions only. Acknowledge C-1.", `found "C-1", want an id`},
	{"Approved: restore decisions only. Acknowledge C-002 to C-001.", "does not ascend"},
	{"Approved: restore decisions only. Acknowledge C-001. Reject C-001.", "C-001 is decided twice"},
	{"Approved: restore decisions only. Acknowledge C-001 to C-009. Acknowledge C-004.", "C-004 is decided twice"},
	{"Approved: restore decisions only..", "want one space"},
	{"Approved: restore decisions only. ", "white space before or after"},
	{"Approved: restore decisions only.Reject C-001.", "want one space"},
	{"Approved: restore decisions only!", "want a full stop"},
	{statement.Exactly + " Do not restore item R-001.", "cannot also commit the preview exactly as proposed"},
	{statement.Exactly + " Do not restore identity-layer items.", "cannot also commit the preview exactly as proposed"},
	{statement.Exactly + " " + statement.Exactly, "begins with neither"},
	{"Approved: commit the restore preview exactly as proposed only.", "want a full stop"},
	{"Approved: restore item R-001 only. " + strings.Repeat("x", statement.MaxLength), "bytes; at most 1048576"},
}

func TestRejected(t *testing.T) {
	for _, test := range rejected {
		s, err := statement.Parse(test.text)
		var bad *statement.Error
		if s != nil || !errors.Is(err, statement.ErrVague) || !errors.As(err, &bad) {
			t.Errorf("%.80q: %v, %v", test.text, s, err)
			continue
		}
		if !strings.Contains(bad.Reason, test.reason) {
			t.Errorf("%.80q: %s, want %s", test.text, bad.Reason, test.reason)
		}
		checkWords(t, err)
	}
}

// checkWords: a refusal is short printable ASCII, and what it says would be
// understood is.
func checkWords(t testing.TB, err error) {
	t.Helper()
	var bad *statement.Error
	if !errors.As(err, &bad) {
		t.Fatal(err)
	}
	if _, err := statement.Parse(bad.Want); err != nil {
		t.Errorf("%q would not be understood: %v", bad.Want, err)
	}
	text := err.Error()
	if len(text) > 12<<10 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("an error in these words: %q", text)
	}
}

// TestEveryByte: every byte of every accepted statement changed, left out, and
// doubled, and every beginning: rejected, or what it then says prints as it was
// written, but for the words that may be written in several ways.
func TestEveryByte(t *testing.T) {
	tried := sample.Every(t, 5)
	for _, test := range accepted {
		for i := tried.First - 1; i < len(test.text); i += tried.Every {
			checkText(t, test.text[:i])
			checkText(t, test.text[:i]+test.text[i+1:])
			checkText(t, test.text[:i+1]+test.text[i:])
			for _, bit := range []int{0, 1, 3, 5, 7} {
				checkText(t, test.text[:i]+string([]byte{test.text[i] ^ 1<<bit})+test.text[i+1:])
			}
			for _, c := range []byte(" .,01R\t") {
				checkText(t, test.text[:i]+string([]byte{c})+test.text[i+1:])
			}
		}
	}
}

func checkText(t testing.TB, text string) {
	t.Helper()
	s, err := statement.Parse(text)
	if err != nil {
		if !errors.Is(err, statement.ErrVague) || s != nil {
			t.Fatalf("%q: %v, %v", text, s, err)
		}
		checkWords(t, err)
		return
	}
	checkMeaning(t, text, meaningOf(s))
	again, err := statement.Parse(s.String())
	if err != nil || again.String() != s.String() || !cmp.Equal(meaningOf(again), meaningOf(s)) {
		t.Fatalf("%q prints as %q, which reads as %v, %v", text, s, again, err)
	}
}

func TestLookups(t *testing.T) {
	s, err := statement.Parse("Approved: restore items R-002 and R-004 to R-99999999 only. Do not restore item R-003. Acknowledge C-005 to C-009. Reject C-010.")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{math.MinInt: false, 0: false, 1: false, 2: true, 3: false, 4: true, 5000: true, 99999999: true, 100000000: false, math.MaxInt: false} {
		if s.Names(n) != want || s.Excludes(n) != (n == 3) {
			t.Errorf("R-%03d: %t %t", n, s.Names(n), s.Excludes(n))
		}
	}
	for n, want := range map[int]statement.Verdict{0: "", 4: "", 5: "acknowledged", 9: "acknowledged", 10: "rejected", 11: ""} {
		if v, ok := s.Decided(n); v != want || ok != (want != "") {
			t.Errorf("C-%03d: %q, %t", n, v, ok)
		}
	}
}

// TestSealed: what the accessors give is a copy, and the zero statement
// approves nothing.
func TestSealed(t *testing.T) {
	s, err := statement.Parse("Approved: restore item R-001 only. Do not restore item R-002. Do not restore decisions items. Reject C-001.")
	if err != nil {
		t.Fatal(err)
	}
	before := s.String()
	s.Items()[0].To, s.NotItems()[0].From, s.NotScopes()[0], s.Decisions()[0].Verdict = 9, 1, scope.Constraints, statement.Resolved
	if s.String() != before {
		t.Errorf("now it says %q", s)
	}
	var zero statement.Statement
	if _, ok := zero.Decided(0); ok || zero.Whole() || zero.Names(0) || zero.Excludes(0) || zero.String() != "" || !cmp.Equal(meaningOf(&zero), meaning{}) {
		t.Error("the zero statement says something")
	}
}

// TestStatementOfNearlyFullLength: a statement of nearly the greatest length is read, and one that
// names an item twice in it is found.
func TestStatementOfNearlyFullLength(t *testing.T) {
	var b strings.Builder
	b.WriteString("Approved: restore items R-001")
	for n := 1003; b.Len() < statement.MaxLength-100; n += 2 {
		fmt.Fprintf(&b, ", R-%03d", n)
	}
	s, err := statement.Parse(b.String() + " and R-999 only.")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Items()); n < 100_000 || !s.Names(100_001) || s.Names(100_002) {
		t.Errorf("%d ranges", n)
	}
	if _, err := statement.Parse(b.String() + " and R-50001 only."); err == nil || !strings.Contains(err.Error(), "R-50001 is named twice") {
		t.Error(err)
	}
}

func TestFormat(t *testing.T) {
	for want, numbers := range map[string][]int{
		"":                                  nil,
		"R-001":                             {1},
		"R-001 and R-002":                   {2, 1},
		"R-001 to R-003":                    {1, 2, 3},
		"R-001 to R-004, R-007, and R-009":  {9, 1, 2, 7, 3, 4, 4},
		"R-001, R-002, and R-004":           {1, 2, 4},
		"R-001 to R-003 and R-005 to R-007": {1, 2, 3, 5, 6, 7},
		"R-998 to R-1001":                   {998, 999, 1000, 1001},
	} {
		if got := statement.FormatItems(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
		if got := statement.FormatConflicts(numbers); got != strings.ReplaceAll(want, "R", "C") {
			t.Errorf("%v: %q", numbers, got)
		}
	}
	numbers := []int{3, 1, 2}
	statement.FormatItems(numbers)
	if !slices.Equal(numbers, []int{3, 1, 2}) {
		t.Error("what was given was changed")
	}
}

// TestFormatAlone: what is to be named by itself is in no range.
func TestFormatAlone(t *testing.T) {
	for want, c := range map[string]struct{ numbers, alone []int }{
		"":                                 {},
		"R-001 to R-005":                   {[]int{1, 2, 3, 4, 5}, []int{9}},
		"R-001 to R-003, R-004, and R-005": {[]int{1, 2, 3, 4, 5}, []int{4}},
		"R-001, R-002 to R-004, and R-005": {[]int{5, 4, 3, 2, 1}, []int{1, 5}},
		"R-001, R-002, and R-003":          {[]int{1, 2, 3}, []int{1, 2, 3}},
	} {
		got := statement.FormatItemsAlone(c.numbers, c.alone)
		if got != want {
			t.Errorf("%v without %v: %q, want %q", c.numbers, c.alone, got, want)
		}
		if got == "" {
			continue
		}
		s, err := statement.Parse("Approved: restore items " + got + " only.")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.numbers {
			if alone := slices.Contains(c.alone, n); !s.Names(n) || alone && !s.NamesAlone(n) {
				t.Errorf("%q: R-%03d", got, n)
			}
		}
	}
}

// TestDocumented: the examples of the package comment are what it says.
func TestDocumented(t *testing.T) {
	raw, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw[strings.Index(string(raw), "// # Examples"):]), "\n")
	yes, no := 0, 0
	for i, line := range lines {
		cells := strings.SplitN(strings.TrimPrefix(line, "//\t"), "  ", 2)
		if !strings.HasPrefix(line, "//\t") || cells[0] == "" {
			continue
		}
		verdict := cells[len(cells)-1]
		if len(cells) == 1 {
			verdict = strings.TrimPrefix(lines[i+1], "//\t")
		}
		_, err := statement.Parse(cells[0])
		if accept := strings.TrimSpace(verdict) == "accepted"; accept != (err == nil) {
			t.Errorf("%q: %v", cells[0], err)
		} else if accept {
			yes++
		} else {
			no++
		}
	}
	if yes != 5 || no < 12 {
		t.Errorf("%d accepted and %d rejected: this test no longer finds them", yes, no)
	}
}

func ExampleParse() {
	s, err := statement.Parse("Approved: restore items R-001, R-002, and R-004 to R-010 only. Acknowledge C-001.")
	if err != nil {
		fmt.Println(err)
		return
	}
	verdict, _ := s.Decided(1)
	fmt.Println(s.Names(2), s.Names(3), s.Names(7), verdict)

	_, err = statement.Parse("Approved: restore items R-001 and R-002.")
	fmt.Println(errors.Is(err, statement.ErrVague))
	fmt.Println(err)
	// Output:
	// true false true acknowledged
	// true
	// the statement is not an explicit approval: the word "only" is missing after what is to be restored; this statement is accepted: "Approved: restore items R-001 and R-002 only."
}

// TestNamesAlone: a range names none of its items by itself, and what is printed of a
// statement names what the statement names.
func TestNamesAlone(t *testing.T) {
	s, err := statement.Parse("Approved: restore items R-005 to R-006, R-001, R-002, and R-003 only.")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for n := 1; n <= 7; n++ {
			if got, want := s.NamesAlone(n), n <= 3; got != want {
				t.Errorf("%q: R-%03d is named alone: %t", s, n, got)
			}
		}
		if s, err = statement.Parse(s.String()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlips: what is slightly wrong is named, with the statement that would be right; also
// where several slips are all that is wrong.
func TestSlips(t *testing.T) {
	bare := strings.TrimSuffix(statement.Exactly, ".")
	for text, reasons := range map[string][]string{
		`"` + statement.Exactly + `"`:                               {"quotes"},
		"'" + statement.Exactly + "' ":                              {"quotes"},
		"\u201c" + statement.Exactly + "\u201d":                     {"quotes"},
		"`" + bare + "`":                                            {"quotes", "full stop"},
		strings.ToLower(bare):                                       {"full stop", "upper and lower case"},
		" " + strings.ToUpper(bare) + " ":                           {"white space", "full stop", "upper and lower case"},
		"approved:  commit the restore preview exactly as proposed": {"full stop", "more than one space", "upper and lower case"},
	} {
		_, err := statement.Parse(text)
		var e *statement.Error
		if !errors.As(err, &e) || e.Want != statement.Exactly {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, reason := range reasons {
			if !strings.Contains(e.Reason, reason) {
				t.Errorf("%q: no %q in %q", text, reason, e.Reason)
			}
		}
	}
	for _, text := range []string{"'sure'", "\u201cok\u201d", "''", "\u00a0"} {
		if _, err := statement.Parse(text); !errors.Is(err, statement.ErrVague) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestExampleIsNoAdvice: a statement with other numbers than were typed is not offered as what
// was meant.
func TestExampleIsNoAdvice(t *testing.T) {
	for _, text := range []string{
		"Approved: restore items R-01 to R-03 only.", "Approved: restore items R-005 to R-002 only.", "Approved: restore my files only.",
		"Approved: restore project state only. Do not restore items R-7.", statement.Exactly + " Acknowledge C-1.", statement.Exactly + " And more.",
	} {
		_, err := statement.Parse(text)
		if err == nil || strings.Contains(err.Error(), "is accepted") || !strings.Contains(err.Error(), "an example") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestDiffersInForm: a text that differs from a statement in case, white space, the full stop and quotes
// around it only is known as that, and is not a statement; any other text is not.
func TestDiffersInForm(t *testing.T) {
	bare := strings.TrimSuffix(statement.Exactly, ".")
	for text, want := range map[string]bool{
		bare: true, strings.ToLower(statement.Exactly): true, " " + strings.ToUpper(bare) + "\t": true, strings.ReplaceAll(bare, " ", "  "): true,
		"approved: restore items r-001 and r-002 only": true,
		statement.Exactly: false, "": false, "yes": false, "approved": false, "Approved": false, "approved.": false, "'" + statement.Exactly + "'": true, "“" + strings.ToLower(bare) + "”": true, "'yes'": false,
		strings.ReplaceAll(bare, "exactly ", ""): false, statement.Exactly + " Thanks.": false, strings.ReplaceAll(statement.Exactly, " ", ""): false, strings.ToLower(strings.Repeat(statement.Exactly, 1000)): false,
	} {
		if got := statement.DiffersInForm(text); got != want {
			t.Errorf("%.80q: %t", text, got)
		}
		if _, err := statement.Parse(text); want && err == nil {
			t.Errorf("%.80q is a statement", text)
		}
	}
}
