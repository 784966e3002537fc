package scope

import (
	"fmt"
	"strings"
)

// Scope is one of the restore scopes of section 5, in the spelling of the protocol.
type Scope string

// The scopes, in the order of section 5.
const (
	ProjectState           Scope = "project_state"
	SameAgentIdentityLayer Scope = "same_agent_identity_layer"
	OperatorContext        Scope = "operator_context"
	SourceOfTruthHierarchy Scope = "source_of_truth_hierarchy"
	Decisions              Scope = "decisions"
	OpenQuestions          Scope = "open_questions"
	Constraints            Scope = "constraints"
	Assumptions            Scope = "assumptions"
	NextActions            Scope = "next_actions"
	MachineReadableState   Scope = "machine_readable_state"
	RestrictedContext      Scope = "restricted_context"
)

// table has the scopes in the order of section 5, each with the words that are
// printed for it in a statement.
var table = [...]struct {
	scope Scope
	words string
}{
	{ProjectState, "project state"},
	{SameAgentIdentityLayer, "identity-layer"},
	{OperatorContext, "operator context"},
	{SourceOfTruthHierarchy, "source-of-truth hierarchy"},
	{Decisions, "decisions"},
	{OpenQuestions, "open questions"},
	{Constraints, "constraints"},
	{Assumptions, "assumptions"},
	{NextActions, "next actions"},
	{MachineReadableState, "machine-readable state"},
	{RestrictedContext, "restricted context"},
}

// All returns the scopes, in the order of section 5.
func All() []Scope {
	all := make([]Scope, len(table))
	for i, row := range table {
		all[i] = row.scope
	}
	return all
}

// Defaults returns the scopes of a restore for which the operator names none.
func Defaults() []Scope { return []Scope{ProjectState, Decisions, OpenQuestions, NextActions} }

// Protected reports whether items of the scope are restored only if an approval names them.
func (s Scope) Protected() bool {
	return s == SameAgentIdentityLayer || s == OperatorContext || s == RestrictedContext
}

// Compare compares scopes in the order of section 5; a value that is not a scope precedes all scopes.
func Compare(a, b Scope) int { return a.rank() - b.rank() }

func (s Scope) rank() int {
	for i, row := range table {
		if row.scope == s {
			return i
		}
	}
	return -1
}

// Words returns the scope in the words of a statement, which [FromWords] reads; "" for a value that is not a
// scope.
func (s Scope) Words() string {
	if i := s.rank(); i >= 0 {
		return table[i].words
	}
	return ""
}

// Parse reads a scope in the spelling of the protocol.
func Parse(word string) (Scope, error) {
	if s := Scope(word); s.rank() >= 0 {
		return s, nil
	}
	return "", fmt.Errorf("%.60q is not a restore scope", word)
}

// FromWords reads a scope in the words of a statement: a space or a hyphen may replace any underscore, and the
// first letter may have either case. "identity layer" is the same-agent identity layer.
func FromWords(words string) (Scope, bool) {
	if words != "" && words[0] >= 'A' && words[0] <= 'Z' {
		words = strings.ToLower(words[:1]) + words[1:]
	}
	word := apart.Replace(words)
	if word == "identity_layer" {
		return SameAgentIdentityLayer, true
	}
	s, err := Parse(word)
	return s, err == nil
}

var apart = strings.NewReplacer(" ", "_", "-", "_")
