package statement

import (
	"cmp"
	"slices"

	"github.com/spectrumfs/spectrum/restore/scope"
)

// settle sorts the parts of a statement, and rejects one that contradicts or repeats itself.
func (s *Statement) settle() error {
	if s.whole && len(s.notItems)+len(s.notScopes) > 0 {
		return reject(Exactly, "a statement that leaves items out cannot also commit the preview exactly as proposed")
	}
	if err := s.settleItems(); err != nil {
		return err
	}
	if err := s.settleScopes(); err != nil {
		return err
	}
	return s.settleDecisions()
}

func (s *Statement) settleItems() error {
	for _, ranges := range [][]Range{s.items, s.notItems} {
		if n, ok := overlap(ranges); ok {
			return reject(wantItems, "%s is named twice", formatID("R", n))
		}
	}
	if n, ok := overlap(slices.Concat(s.items, s.notItems)); ok {
		return reject(wantItems, "%s is both restored and not restored", formatID("R", n))
	}
	s.notItems = joined(s.notItems)
	return nil
}

// overlap sorts ranges, and returns the first number that is in two of them.
func overlap(ranges []Range) (n int, ok bool) {
	slices.SortFunc(ranges, compareRanges)
	for i := 1; i < len(ranges); i++ {
		if ranges[i].From <= ranges[i-1].To {
			return ranges[i].From, true
		}
	}
	return 0, false
}

func (s *Statement) settleScopes() error {
	for _, scopes := range [][]scope.Scope{s.scopes, s.notScopes} {
		if twice, ok := repeated(scopes); ok {
			return reject(wantScopes, "%q is named twice", twice.Words())
		}
	}
	if both, ok := repeated(slices.Concat(s.scopes, s.notScopes)); ok {
		return reject(wantNot, "%q is both restored and not restored", both.Words())
	}
	return nil
}

// repeated sorts scopes, and returns the first that is there twice.
func repeated(scopes []scope.Scope) (scope.Scope, bool) {
	slices.SortFunc(scopes, scope.Compare)
	for i := 1; i < len(scopes); i++ {
		if scopes[i] == scopes[i-1] {
			return scopes[i], true
		}
	}
	return "", false
}

func (s *Statement) settleDecisions() error {
	slices.SortFunc(s.decisions, func(a, b Decision) int { return cmp.Compare(a.From, b.From) })
	var out []Decision
	for _, d := range s.decisions {
		last := len(out) - 1
		switch {
		case last >= 0 && d.From <= out[last].To:
			return reject(wantDecision, "%s is decided twice", formatID("C", d.From))
		case last >= 0 && d.From == out[last].To+1 && d.Verdict == out[last].Verdict:
			out[last].To = d.To
		default:
			out = append(out, d)
		}
	}
	s.decisions = out
	return nil
}
