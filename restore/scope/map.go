package scope

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spectrumfs/spectrum/restore/glob"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Member is the name of the member of constraints that declares scopes.
const Member = "restore_scopes"

// MaxPatterns is how many patterns a signer may declare: the outputs times the
// patterns is what a lookup of all of them costs.
const MaxPatterns = 256

// MapError says why what a signer declares cannot be used.
type MapError struct {
	Pattern string // the member that is wrong; "" for restore_scopes as a whole
	Err     error
}

// Error names the member, quoted, and the reason.
func (e *MapError) Error() string {
	if e.Pattern == "" {
		return fmt.Sprintf("constraints.%s: %v", Member, e.Err)
	}
	return fmt.Sprintf("constraints.%s: pattern %.100q: %v", Member, e.Pattern, e.Err)
}

// Unwrap returns the reason, [glob.ErrPattern] for one.
func (e *MapError) Unwrap() error { return e.Err }

// Map is what a signer declares of the scopes of its outputs. Only [ParseMap]
// makes one; the zero Map declares nothing.
type Map struct {
	rules []rule // the most specific first
}

type rule struct {
	pattern glob.Pattern
	scope   Scope
}

// ParseMap reads the constraints of a TASK_SPEC.json that was verified. Without
// a member restore_scopes, or when they are no object or missing, nothing is
// declared. The error is a [*MapError].
func ParseMap(constraints canonjson.Value) (Map, error) {
	object, _ := constraints.Object()
	value, ok := object.Get(Member)
	if !ok {
		return Map{}, nil
	}
	scopes, ok := value.Object()
	if !ok {
		return Map{}, &MapError{Err: errors.New("it is not an object")}
	}
	if scopes.Len() > MaxPatterns {
		return Map{}, &MapError{Err: fmt.Errorf("it has %d patterns; at most %d", scopes.Len(), MaxPatterns)}
	}
	var m Map
	for text, value := range scopes.Members() {
		r, err := parseRule(text, value)
		if err != nil {
			return Map{}, &MapError{text, err}
		}
		m.rules = append(m.rules, r)
	}
	slices.SortFunc(m.rules, func(a, b rule) int { return glob.Compare(a.pattern, b.pattern) })
	return m, nil
}

func parseRule(text string, value canonjson.Value) (rule, error) {
	pattern, err := glob.Parse(text)
	if err != nil {
		return rule{}, err
	}
	word, ok := value.Text()
	if !ok {
		return rule{}, errors.New("its scope is not a string")
	}
	s, err := Parse(word)
	if err != nil {
		return rule{}, err
	}
	return rule{pattern, s}, nil
}

// Of is the scope that the signer declared for an output; ok is false where
// none was.
func (m Map) Of(path string) (s Scope, ok bool) {
	for _, r := range m.rules {
		if r.pattern.Match(path) {
			return r.scope, true
		}
	}
	return "", false
}

// Unused are the patterns that match none of these paths, in the order of their
// bytes.
func (m Map) Unused(paths iter.Seq[string]) []string {
	left := slices.Clone(m.rules)
	for path := range paths {
		left = slices.DeleteFunc(left, func(r rule) bool { return r.pattern.Match(path) })
		if len(left) == 0 {
			return nil
		}
	}
	var texts []string
	for _, r := range left {
		texts = append(texts, r.pattern.String())
	}
	slices.Sort(texts)
	return texts
}
