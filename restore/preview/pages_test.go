package preview

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/glob"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// rowsUnder are the rows of the first table of a page with this first cell in
// its head, each as its cells.
func rowsUnder(t *testing.T, page, head string) (rows [][]string) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(raw), "\n| "+head+" |")
	if !ok {
		t.Fatalf("docs/%s has no table of %q", page, head)
	}
	for n, line := range strings.Split(table, "\n") {
		if n < 2 {
			continue // the rest of the head, and the line below it
		}
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
	}
	return rows
}

var code = regexp.MustCompile("`([^`]+)`")

// codesIn are the words of a cell that are set as code.
func codesIn(cell string) (words []string) {
	for _, found := range code.FindAllStringSubmatch(cell, -1) {
		words = append(words, found[1])
	}
	return words
}

// firstCodes are those of the first cell of each row.
func firstCodes(rows [][]string) (words []string) {
	for _, row := range rows {
		words = append(words, codesIn(row[0])...)
	}
	return words
}

// TestMembersOnPage: docs/guide.md says what each member means that is read,
// and speaks of no other.
func TestMembersOnPage(t *testing.T) {
	want := append(slices.Clone(textMembers), bundle.ChangesMember, scope.Member, scope.Exact)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(firstCodes(rowsUnder(t, "guide.md", "member"))))); diff != "" {
		t.Errorf("docs/guide.md has other members (-read +page):\n%s", diff)
	}
}

// TestPatternsOnPage checks the examples of patterns in docs/guide.md.
func TestPatternsOnPage(t *testing.T) {
	rows := rowsUnder(t, "guide.md", "pattern")
	if len(rows) < 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		p, err := glob.Parse(codesIn(row[0])[0])
		if err != nil {
			t.Fatal(err)
		}
		for n, fits := range map[int]bool{1: true, 2: false} {
			for _, path := range codesIn(row[n]) {
				if p.Match(path) != fits {
					t.Errorf("%s fits %s: %t", p, path, !fits)
				}
			}
		}
	}
}

// TestOrderOnPage checks the order of patterns in docs/guide.md.
func TestOrderOnPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile("So `.*? comes before .*\\. The").FindString(string(raw))
	texts := codesIn(sentence)
	if len(texts) != 4 {
		t.Fatalf("%q", sentence)
	}
	var patterns []glob.Pattern
	for _, text := range texts {
		p, err := glob.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	if !slices.IsSortedFunc(patterns, glob.Compare) {
		t.Errorf("%q is in another order", sentence)
	}
}

// TestWordsOnPages: docs/guide.md explains every word that a preview has for
// conflicts, labels, scopes, decisions and rules.
func TestWordsOnPages(t *testing.T) {
	var scopes []string
	for _, s := range scope.All() {
		scopes = append(scopes, string(s))
	}
	for _, test := range []struct {
		head string
		want []string
	}{
		{"type", wordsOf(StateConflict, IdentityConflict, AuthorityConflict, PrivacyConflict, VersionConflict,
			SourceConflict, ScopeConflict, TimingConflict, StaleContext, PreferenceConflict)},
		{"label", wordsOf(RestoreActive, RetainReference, DoNotRestore, NeedsConfirmation, InConflict,
			PrivacyRestricted, Nontransferable, HistoricalOnly, Superseded, OperatorApproved, OperatorRejected)},
		{"scope", scopes},
		{"decision", []string{"acknowledged", "rejected", "resolved"}},
		{"rule", wordsOf(quarantine.SourceUnknown, quarantine.CrossAgentIdentity, quarantine.RestrictedWithoutNeed, quarantine.ConflictsWithInstructions,
			quarantine.Contradiction, quarantine.ArtifactStatus, quarantine.UnresolvedAuthority, quarantine.ApprovalVague)},
	} {
		t.Run(test.head, func(t *testing.T) {
			got := firstCodes(rowsUnder(t, "guide.md", test.head))
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Errorf("docs/guide.md has other words (-here +page):\n%s", diff)
			}
		})
	}
}

// TestStatementsOnPage checks the examples of statements in docs/guide.md.
func TestStatementsOnPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	understood := regexp.MustCompile("(?s)\n```\n(Approved: .*?)\n```\n").FindStringSubmatch(string(raw))
	if understood == nil {
		t.Fatal("docs/guide.md shows no statements")
	}
	for text := range strings.SplitSeq(understood[1], "\n") {
		if _, err := statement.Parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	rejected := firstCodes(rowsUnder(t, "guide.md", "statement"))
	if len(rejected) < 8 {
		t.Errorf("only %d statements that are rejected", len(rejected))
	}
	for _, text := range rejected {
		if _, err := statement.Parse(text); !errors.Is(err, statement.ErrVague) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func wordsOf[T ~string](list ...T) (texts []string) {
	for _, word := range list {
		texts = append(texts, string(word))
	}
	return texts
}
