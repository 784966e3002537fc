package statement

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/scope"
)

// Exactly is the approval of a whole preview.
const Exactly = "Approved: commit the restore preview exactly as proposed."

// Limits of a statement.
const (
	MaxLength = 1 << 20    // bytes of a statement
	MaxNumber = 99_999_999 // the highest number of an item or a conflict
)

// ErrVague reports that a text is not an explicit approval.
var ErrVague = errors.New("the statement is not an explicit approval")

// Error is the reason why a text is rejected. It is [ErrVague].
type Error struct {
	Reason string // what is wrong with the text
	Want   string // an example of an accepted statement
}

// examples are those with numbers and scopes that were not requested.
var examples = []string{wantItems, wantRange, wantScopes, wantNot, wantNotItem, wantDecision}

// Error returns the reason and the example in one line; quotations of the text are ASCII.
func (e *Error) Error() string {
	if slices.Contains(examples, e.Want) {
		return fmt.Sprintf("%v: %s; an example that only shows the form: %q", ErrVague, e.Reason, e.Want)
	}
	return fmt.Sprintf("%v: %s; this statement is accepted: %q", ErrVague, e.Reason, e.Want)
}

// Unwrap returns [ErrVague].
func (e *Error) Unwrap() error { return ErrVague }

// Range has the numbers from From to To, both included.
type Range struct{ From, To int }

// Verdict is a decision on a conflict (section 4.2).
type Verdict string

// The verdicts.
const (
	Acknowledged Verdict = "acknowledged"
	Rejected     Verdict = "rejected"
	Resolved     Verdict = "resolved"
)

// Verdicts returns all verdicts.
func Verdicts() []Verdict { return []Verdict{Acknowledged, Rejected, Resolved} }

// verbs are the verdicts in the order in which they are printed, with the word
// of their clause.
var verbs = [...]struct {
	word    string
	verdict Verdict
}{{"Acknowledge", Acknowledged}, {"Reject", Rejected}, {"Resolve", Resolved}}

// Decision is one verdict on the conflicts of a range.
type Decision struct {
	Range
	Verdict Verdict
}

// Statement is an explicit approval. Only [Parse] makes one; the zero Statement
// approves and decides nothing.
type Statement struct {
	whole     bool
	items     []Range       // as they were named, ascending
	notItems  []Range       // ascending, and none touches the next
	scopes    []scope.Scope // in the order of section 5
	notScopes []scope.Scope
	decisions []Decision // ascending; those that touch differ in their verdict
}

// Parse reads a statement. The error is an [*Error], and so [ErrVague].
func Parse(text string) (*Statement, error) {
	if err := checkText(text); err != nil {
		if inner := dropQuotes(text); inner != text && checkText(inner) == nil {
			return nil, cmp.Or(findSlip(text), err)
		}
		return nil, err
	}
	s, err := parse(text)
	if err == nil {
		return s, nil
	}
	if slip := findSlip(text); slip != nil {
		return nil, slip
	}
	return nil, err
}

// Whole reports whether the preview was approved exactly as proposed. Then there
// are no items and no scopes.
func (s *Statement) Whole() bool { return s.whole }

// Items returns the numbers of the items to restore, ascending; none if the statement names scopes or
// approves the whole preview.
func (s *Statement) Items() []Range { return joined(s.items) }

// Scopes returns the scopes to restore, in the order of section 5; none if the statement names items or
// approves the whole preview.
func (s *Statement) Scopes() []scope.Scope { return slices.Clone(s.scopes) }

// NotItems returns the numbers of the items that are not to be restored, ascending.
func (s *Statement) NotItems() []Range { return slices.Clone(s.notItems) }

// NotScopes returns the scopes that are not to be restored, in the order of section 5.
func (s *Statement) NotScopes() []scope.Scope { return slices.Clone(s.notScopes) }

// Decisions returns the verdicts on conflicts, by their numbers, ascending.
func (s *Statement) Decisions() []Decision { return slices.Clone(s.decisions) }

// Names reports whether the item with this number is one of [Statement.Items].
func (s *Statement) Names(n int) bool { return holds(s.items, n) }

// NamesAlone reports whether the item with this number is named by itself, and not only as
// one of a range.
func (s *Statement) NamesAlone(n int) bool { return slices.Contains(s.items, Range{n, n}) }

// Excludes reports whether the item with this number is one of
// [Statement.NotItems].
func (s *Statement) Excludes(n int) bool { return holds(s.notItems, n) }

// Decided returns the verdict on the conflict with this number, and reports whether there is one.
func (s *Statement) Decided(n int) (Verdict, bool) {
	i, ok := slices.BinarySearchFunc(s.decisions, n, func(d Decision, n int) int { return d.against(n) })
	if !ok {
		return "", false
	}
	return s.decisions[i].Verdict, true
}

func holds(ranges []Range, n int) bool {
	_, ok := slices.BinarySearchFunc(ranges, n, Range.against)
	return ok
}

// against compares a range with a number; 0 if the range includes it.
func (r Range) against(n int) int {
	switch {
	case r.To < n:
		return -1
	case r.From > n:
		return 1
	}
	return 0
}

// String returns the canonical form: items in order, as they were named, and other ranges in their shortest
// form; "" for the zero Statement.
func (s *Statement) String() string {
	var b strings.Builder
	switch {
	case s.whole:
		b.WriteString(Exactly)
	case len(s.items) > 0:
		b.WriteString("Approved: restore " + itemWord(s.items) + " " + formatNamed(s.items) + " only.")
	case len(s.scopes) > 0:
		b.WriteString("Approved: restore " + FormatScopes(s.scopes) + " only.")
	}
	if len(s.notItems) > 0 {
		b.WriteString(" Do not restore " + itemWord(s.notItems) + " " + formatRanges("R", s.notItems) + ".")
	}
	if len(s.notScopes) > 0 {
		b.WriteString(" Do not restore " + FormatScopes(s.notScopes) + " items.")
	}
	for _, verb := range verbs {
		if ranges := s.decided(verb.verdict); len(ranges) > 0 {
			b.WriteString(" " + verb.word + " " + formatRanges("C", ranges) + ".")
		}
	}
	return b.String()
}

// decided returns the conflicts with one verdict.
func (s *Statement) decided(v Verdict) (ranges []Range) {
	for _, d := range s.decisions {
		if d.Verdict == v {
			ranges = append(ranges, d.Range)
		}
	}
	return ranges
}

func itemWord(ranges []Range) string {
	if len(ranges) == 1 && ranges[0].From == ranges[0].To {
		return "item"
	}
	return "items"
}

// FormatItems returns numbers of items, from 1 to [MaxNumber] and in any order, as the shortest list for a
// statement, like "R-001 to, and R-009"; "" for none.
func FormatItems(numbers []int) string { return formatRanges("R", rangesOf(numbers)) }

// FormatItemsAlone is [FormatItems] with each number that is in alone named by itself, and not in
// a range: see [Statement.NamesAlone].
func FormatItemsAlone(numbers, alone []int) string {
	single := make(map[int]bool, len(alone))
	for _, n := range alone {
		single[n] = true
	}
	var named []Range
	for _, r := range rangesOf(numbers) {
		from := r.From
		for n := r.From; n <= r.To; n++ {
			if !single[n] {
				continue
			}
			if from < n {
				named = append(named, Range{from, n - 1})
			}
			named, from = append(named, Range{n, n}), n+1
		}
		if from <= r.To {
			named = append(named, Range{from, r.To})
		}
	}
	return formatRanges("R", named)
}

// FormatConflicts is [FormatItems] for the numbers of conflicts.
func FormatConflicts(numbers []int) string { return formatRanges("C", rangesOf(numbers)) }

func rangesOf(numbers []int) (ranges []Range) {
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		ranges = append(ranges, Range{n, n})
	}
	return joined(ranges)
}

// joined joins adjacent ranges; they ascend and do not overlap.
func joined(ranges []Range) (out []Range) {
	for _, r := range ranges {
		if last := len(out) - 1; last >= 0 && out[last].To+1 == r.From {
			out[last].To = r.To
		} else {
			out = append(out, r)
		}
	}
	return out
}

// formatNamed returns items as they were named, because an item named by itself has another meaning than one
// in a range (see [Statement.NamesAlone]).
func formatNamed(items []Range) string {
	var words []string
	for _, r := range items {
		if r.From == r.To {
			words = append(words, formatID("R", r.From))
		} else {
			words = append(words, formatID("R", r.From)+" to "+formatID("R", r.To))
		}
	}
	return formatList(words)
}

// formatRanges returns ranges as text. Two neighbors are shorter without "to".
func formatRanges(letter string, ranges []Range) string {
	var words []string
	for _, r := range ranges {
		switch r.To - r.From {
		case 0:
			words = append(words, formatID(letter, r.From))
		case 1:
			words = append(words, formatID(letter, r.From), formatID(letter, r.To))
		default:
			words = append(words, formatID(letter, r.From)+" to "+formatID(letter, r.To))
		}
	}
	return formatList(words)
}

func formatID(letter string, n int) string { return fmt.Sprintf("%s-%03d", letter, n) }

// FormatScopes returns scopes in the form of a statement.
func FormatScopes(scopes []scope.Scope) string {
	var words []string
	for _, s := range scopes {
		words = append(words, s.Words())
	}
	return formatList(words)
}

func formatList(words []string) string {
	if len(words) < 3 {
		return strings.Join(words, " and ")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + ", and " + words[last]
}

func compareRanges(a, b Range) int { return cmp.Compare(a.From, b.From) }
