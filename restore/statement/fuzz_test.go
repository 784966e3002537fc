package statement_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"pgregory.net/rapid"
)

// The grammar once more, as regular expressions: another reader of the same
// statements.
var (
	oneItem     = `R-(?:\d{3}|[1-9]\d{3,7})`
	oneRange    = oneItem + `(?: to ` + oneItem + `)?`
	oneConflict = strings.ReplaceAll(oneRange, "R-", "C-")
	oneScope    = `(?:[A-Z]?[a-z]+(?:[ _-](?:[b-z]|a[a-mo-z])[a-z]*)*)`
	wholeShape  = regexp.MustCompile(`^Approved: (?:commit the restore preview exactly as proposed|restore items? ` + listOf(oneRange) + ` only|restore ` + listOf(oneScope) + ` only)\.` +
		`(?: (?:Do not restore items? ` + listOf(oneRange) + `|Do not restore ` + listOf(oneScope) + ` items|(?:Acknowledge|Reject|Resolve) ` + listOf(oneConflict) + `)\.)*$`)
	idShape = regexp.MustCompile(`[RC]-(\d+)(?: to [RC]-(\d+))?`)
)

func listOf(x string) string {
	return `(?:` + x + `|` + x + ` and ` + x + `|` + x + `(?:, ` + x + `)+,? and ` + x + `)`
}

// checkMeaning reads an accepted text in another way: it has the shape, and
// each of its sentences says what was understood.
func checkMeaning(t testing.TB, text string, got meaning) {
	t.Helper()
	if !wholeShape.MatchString(text) {
		t.Fatalf("accepted: %q", text)
	}
	counts := map[string]int{}
	for sentence := range strings.SplitSeq(strings.TrimSuffix(text, "."), ". ") {
		countSentence(counts, sentence)
	}
	want := map[string]int{}
	for key, rs := range map[string]ranges{"item": got.Items, "not item": got.NotItems} {
		for _, r := range rs {
			want[key] += weight(r)
		}
	}
	for _, d := range got.Decisions {
		want[string(d.Verdict)] += weight(d.Range)
	}
	for _, s := range got.Scopes {
		want["scope "+string(s)]++
	}
	for _, s := range got.NotScopes {
		want["not scope "+string(s)]++
	}
	if got.Whole {
		want["whole"]++
	}
	if diff := cmp.Diff(counts, want); diff != "" {
		t.Fatalf("%q was understood as %+v:\n%s", text, got, diff)
	}
}

// weight tells sets of numbers apart: ranges that join weigh what they did.
func weight(r statement.Range) int {
	n := r.To - r.From + 1
	return n + 1000*(r.From+r.To)*n/2
}

// countSentence adds up what one sentence names.
func countSentence(counts map[string]int, sentence string) {
	keys := []struct{ begin, key string }{
		{"Approved: restore item", "item"}, {"Do not restore item", "not item"},
		{"Acknowledge", "acknowledged"}, {"Reject", "rejected"}, {"Resolve", "resolved"},
	}
	for _, k := range keys {
		if !strings.HasPrefix(sentence, k.begin) {
			continue
		}
		for _, id := range idShape.FindAllStringSubmatch(sentence, -1) {
			from, _ := strconv.Atoi(id[1])
			to, err := strconv.Atoi(id[2])
			if err != nil {
				to = from
			}
			counts[k.key] += weight(statement.Range{From: from, To: to})
		}
		return
	}
	if sentence+"." == statement.Exactly {
		counts["whole"]++
		return
	}
	words, key := strings.TrimSuffix(strings.TrimPrefix(sentence, "Approved: restore "), " only"), "scope "
	if rest, ok := strings.CutPrefix(sentence, "Do not restore "); ok {
		words, key = strings.TrimSuffix(rest, " items"), "not scope "
	}
	for word := range strings.SplitSeq(strings.NewReplacer(", and ", ";", " and ", ";", ", ", ";").Replace(words), ";") {
		s, _ := scope.FromWords(word)
		counts[key+string(s)]++
	}
}

// FuzzStatement: what is accepted has the shape of the grammar, says what was
// understood, and prints as a statement that says the same; all else is vague.
func FuzzStatement(f *testing.F) {
	for _, test := range accepted {
		f.Add(test.text)
	}
	for _, test := range rejected {
		if len(test.text) < 1000 {
			f.Add(test.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { checkText(t, text) })
}

// draw makes statements from the grammar, with what they mean left to the
// parser.
func draw(t *rapid.T) string {
	numbers := rapid.Permutation(sequence(1, 30)).Draw(t, "numbers")
	item := func() string { n := numbers[0]; numbers = numbers[1:]; return fmt.Sprintf("R-%03d", n*37) }
	conflicts := rapid.Permutation(sequence(1, 30)).Draw(t, "conflicts")
	conflict := func() string {
		n := conflicts[0]
		conflicts = conflicts[1:]
		return fmt.Sprintf("C-%03d to C-%03d", 10*n, 10*n+5)
	}
	names := rapid.Permutation(scope.All()).Draw(t, "scopes")
	name := func() string {
		s := names[0]
		names = names[1:]
		return rapid.SampledFrom([]string{string(s), s.Words()}).Draw(t, "words")
	}
	text := rapid.SampledFrom([]func() string{
		func() string { return statement.Exactly },
		func() string { return "Approved: restore items " + drawList(t, item) + " only." },
		func() string { return "Approved: restore " + drawList(t, name) + " only." },
	}).Draw(t, "main")()
	clauses := []func() string{
		func() string { return " Reject " + drawList(t, conflict) + "." },
		func() string { return " Acknowledge " + drawList(t, conflict) + "." },
		func() string { return " Resolve " + drawList(t, conflict) + "." },
	}
	if text != statement.Exactly {
		clauses = append(clauses, func() string { return " Do not restore item " + drawList(t, item) + "." },
			func() string { return " Do not restore " + drawList(t, name) + " items." })
	}
	for range rapid.IntRange(0, 2).Draw(t, "clauses") {
		text += rapid.SampledFrom(clauses).Draw(t, "clause")()
	}
	return text
}

func sequence(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

func drawList(t *rapid.T, one func() string) string {
	switch rapid.IntRange(1, 3).Draw(t, "length") {
	case 1:
		return one()
	case 2:
		return one() + " and " + one()
	}
	return one() + ", " + one() + rapid.SampledFrom([]string{" and ", ", and "}).Draw(t, "last") + one()
}

// TestGrammar: what the grammar makes is accepted; with one byte changed it is
// rejected or says what the other text says.
func TestGrammar(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := draw(rt)
		if _, err := statement.Parse(text); err != nil {
			rt.Fatalf("%q: %v", text, err)
		}
		checkText(t, text)
		i := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
		checkText(t, text[:i]+string([]byte{rapid.Byte().Draw(rt, "byte")})+text[i+1:])
	})
}
