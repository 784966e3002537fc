package scope

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/spectrumfs/spectrum/restore/glob"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// The names of the members of constraints that declare scopes.
const (
	Member = "restore_scopes"      // an object from pattern to scope
	Exact  = "restore_item_scopes" // an object from path to scope, which precedes any pattern
)

// MaxPatterns is the maximum number of patterns of a signer, because each output is compared with each of
// them.
const MaxPatterns = 256

// MapError reports why a declaration of scopes cannot be used.
type MapError struct {
	Member  string // Member or Exact
	Pattern string // the pattern or path that is wrong; "" for the member as a whole
	Err     error
}

// Error names the member, quoted, and the reason.
func (e *MapError) Error() string {
	if e.Pattern == "" {
		return fmt.Sprintf("constraints.%s: %v", e.Member, e.Err)
	}
	return fmt.Sprintf("constraints.%s: pattern %.100q: %v", e.Member, e.Pattern, e.Err)
}

// Unwrap returns the reason, [glob.ErrPattern] for one.
func (e *MapError) Unwrap() error { return e.Err }

// Map has the declared scopes of outputs. Only [ParseMap] makes one; the zero Map declares nothing.
type Map struct {
	exact    map[string]Scope
	rules    []rule // the most specific first
	declared bool
}

type rule struct {
	pattern glob.Pattern
	scope   Scope
}

// ParseMap reads the constraints of a verified TASK_SPEC.json. Nothing is declared without the members
// [Member] and [Exact], or if the constraints are missing or not an object. The error is a [*MapError].
func ParseMap(constraints canonjson.Value) (Map, error) {
	object, _ := constraints.Object()
	m := Map{exact: map[string]Scope{}}
	for _, member := range []string{Member, Exact} {
		if _, ok := object.Get(member); ok {
			m.declared = true
		}
	}
	err := eachScope(object, Exact, func(path string, s Scope) error {
		m.exact[path] = s
		return nil
	})
	if err != nil {
		return Map{}, err
	}
	err = eachScope(object, Member, func(text string, s Scope) error {
		pattern, err := glob.Parse(text)
		m.rules = append(m.rules, rule{pattern, s})
		return err
	})
	if err == nil && len(m.rules) > MaxPatterns {
		err = &MapError{Member, "", fmt.Errorf("it has %d patterns; at most %d", len(m.rules), MaxPatterns)}
	}
	if err != nil {
		return Map{}, err
	}
	slices.SortFunc(m.rules, func(a, b rule) int { return glob.Compare(a.pattern, b.pattern) })
	return m, nil
}

// eachScope reads a member of constraints from texts to scopes.
func eachScope(constraints canonjson.Object, member string, take func(text string, s Scope) error) error {
	value, ok := constraints.Get(member)
	if !ok {
		return nil
	}
	scopes, ok := value.Object()
	if !ok {
		return &MapError{member, "", errors.New("it is not an object")}
	}
	for text, value := range scopes.Members() {
		word, ok := value.Text()
		if !ok {
			return &MapError{member, text, errors.New("its scope is not a string")}
		}
		s, err := Parse(word)
		if err == nil {
			err = take(text, s)
		}
		if err != nil {
			return &MapError{member, text, err}
		}
	}
	return nil
}

// Declared reports whether the signer has declared scopes.
func (m Map) Declared() bool { return m.declared }

// Of returns the declared scope of an output; ok is false if there is none.
func (m Map) Of(path string) (s Scope, ok bool) {
	if s, ok = m.exact[path]; ok {
		return s, true
	}
	for _, r := range m.rules {
		if r.pattern.Match(path) {
			return r.scope, true
		}
	}
	return "", false
}

// Unused returns the patterns that match none of these paths, and the exact paths that are not among them, in
// the order of their bytes.
func (m Map) Unused(paths iter.Seq[string]) []string {
	left, exact := slices.Clone(m.rules), maps.Clone(m.exact)
	for path := range paths {
		delete(exact, path)
		left = slices.DeleteFunc(left, func(r rule) bool { return r.pattern.Match(path) })
		if len(left)+len(exact) == 0 {
			return nil
		}
	}
	texts := slices.Collect(maps.Keys(exact))
	for _, r := range left {
		texts = append(texts, r.pattern.String())
	}
	slices.Sort(texts)
	return texts
}
