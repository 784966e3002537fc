package privacy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/dropin"
)

// restricted is the directory of a place.
const restricted = "restricted.d"

// Bounds of the operator's lists.
const (
	maxFile  = 64 << 10 // bytes of a file
	maxRules = 1000     // patterns in use, including those of the table
)

// operatorWhy is the reason of the operator's rules.
const operatorWhy = "restricted by a rule of the operator"

// Load returns the rules of the table of secrets and of places. With an error, which names the file and the
// line, it returns the zero Rules, and the caller must restore nothing.
func Load(places ...string) (Rules, error) { return LoadKind(Secret, places...) }

// LoadKind is [Load] for the names of a kind.
func LoadKind(kind Kind, places ...string) (Rules, error) {
	l := loader{rules: slices.Clone(own[kind]), known: map[string]bool{}, why: kinds[kind].why}
	for _, r := range l.rules {
		l.known[r.pattern.String()] = true
	}
	for _, place := range places {
		err := dropin.Read(place, kinds[kind].dir, maxFile, func(_ string, raw []byte) error { return l.file(string(raw)) })
		if err != nil {
			return Rules{}, fmt.Errorf("restricted names: %w", err)
		}
	}
	return Rules{l.settled()}, nil
}

// loader collects rules.
type loader struct {
	rules []rule
	known map[string]bool // every pattern that was ever there
	why   string          // the reason of the operator's rules
}

// settled returns the rules in their order: those of the table, then those of the operator.
func (l *loader) settled() []rule {
	added := l.rules
	for len(added) > 0 && !added[0].finding.Operator {
		added = added[1:]
	}
	slices.SortFunc(added, func(a, b rule) int { return strings.Compare(a.pattern.String(), b.pattern.String()) })
	return l.rules
}

// file reads the lines of a file.
func (l *loader) file(text string) error {
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if err := l.line(line); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return nil
}

func (l *loader) line(line string) error {
	switch {
	case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		return nil
	case strings.TrimSpace(line) != line:
		return fmt.Errorf("white space before or after the pattern %.100q", line)
	}
	text, back := strings.CutPrefix(line, "!")
	pattern, err := parsePattern(text)
	if err != nil {
		return err
	}
	same := func(r rule) bool { return r.pattern.String() == pattern.String() }
	if back {
		if !l.known[pattern.String()] {
			return fmt.Errorf("pattern %.100q is negated, but not in the list", text)
		}
		l.rules = slices.DeleteFunc(l.rules, same)
		return nil
	}
	return l.add(rule{finding: Finding{lower(text), l.why, true}, pattern: pattern})
}

// add adds a rule of the operator, unless there is one that restricts the same.
func (l *loader) add(r rule) error {
	for _, old := range l.rules {
		if old.pattern.String() == r.pattern.String() && len(old.except) == 0 {
			return nil
		}
	}
	if len(l.rules) == maxRules {
		return fmt.Errorf("there are more than %d patterns", maxRules)
	}
	l.known[r.pattern.String()] = true
	l.rules = append(l.rules, r)
	return nil
}
