package scope_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/glob"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// law is section 5 as it stands in the protocol.
var law = strings.Fields(`project_state same_agent_identity_layer operator_context source_of_truth_hierarchy decisions
	open_questions constraints assumptions next_actions machine_readable_state restricted_context`)

func TestScopes(t *testing.T) {
	var all []string
	for i, s := range scope.All() {
		all = append(all, string(s))
		parsed, err := scope.Parse(string(s))
		if err != nil || parsed != s {
			t.Error(s, parsed, err)
		}
		for j, other := range scope.All() {
			if c := scope.Compare(s, other); c < 0 != (i < j) || c > 0 != (i > j) {
				t.Error(s, other, c)
			}
		}
	}
	if diff := cmp.Diff(law, all); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(scope.Defaults()); got != "[project_state decisions open_questions next_actions]" {
		t.Error(got)
	}
	protected := slices.DeleteFunc(scope.All(), func(s scope.Scope) bool { return !s.Protected() })
	if got := fmt.Sprint(protected); got != "[same_agent_identity_layer operator_context restricted_context]" {
		t.Error(got)
	}
	for _, s := range scope.Defaults() {
		if s.Protected() {
			t.Error(s)
		}
	}
	if scope.Compare("", scope.ProjectState) >= 0 || scope.Scope("x").Words() != "" {
		t.Error("what is not a scope has words, or a place")
	}
}

func TestParseRejects(t *testing.T) {
	for _, word := range []string{"", "project state", "Project_state", "project_state ", "decision", "all", "identity_layer"} {
		if s, err := scope.Parse(word); err == nil || s != "" {
			t.Errorf("%q: %q, %v", word, s, err)
		}
	}
}

func TestFromWords(t *testing.T) {
	for _, s := range scope.All() {
		word := string(s)
		for _, words := range []string{word, strings.ReplaceAll(word, "_", " "), strings.ReplaceAll(word, "_", "-"), s.Words(), strings.ToUpper(word[:1]) + word[1:]} {
			if got, ok := scope.FromWords(words); !ok || got != s {
				t.Errorf("%q: %q", words, got)
			}
		}
	}
	for words, want := range map[string]scope.Scope{
		"identity layer": scope.SameAgentIdentityLayer, "identity-layer": scope.SameAgentIdentityLayer, "Identity_layer": scope.SameAgentIdentityLayer,
		"same-agent identity layer": scope.SameAgentIdentityLayer, "source-of-truth hierarchy": scope.SourceOfTruthHierarchy,
		"": "", "Project State": "", "project  state": "", " project state": "", "project state ": "", "projectstate": "", "project\u00a0state": "",
		"PROJECT STATE": "", "everything": "", "layer": "", "decision": "", "pr\u043eject state": "", "_": "", "\xff": "",
	} {
		if got, ok := scope.FromWords(words); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", words, got, ok)
		}
	}
}

func parse(t testing.TB, text string) (scope.Map, error) {
	t.Helper()
	value, err := canonjson.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return scope.ParseMap(value)
}

func mustParse(t testing.TB, text string) scope.Map {
	t.Helper()
	m, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMap(t *testing.T) {
	m := mustParse(t, `{"a":1,"restore_scopes":{"**":"assumptions","notes/":"decisions","notes/*.md":"open_questions","notes/todo.md":"next_actions","unused/":"constraints","?":"restricted_context","**/last.md":"machine_readable_state","*/*":"operator_context"}}`)
	for path, want := range map[string]scope.Scope{
		"notes/todo.md": scope.NextActions, "notes/a.md": scope.OpenQuestions, "notes/a/b.md": scope.Decisions,
		"notes": scope.Assumptions, "x/y/z": scope.Assumptions, "x/y": scope.OperatorContext, "x/last.md": scope.MachineReadableState, "x": scope.RestrictedContext, "": "",
	} {
		if got, ok := m.Of(path); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", path, got, ok)
		}
	}
	if diff := cmp.Diff([]string{"**/last.md", "?", "unused/"}, m.Unused(slices.Values([]string{"notes/todo.md", "notes/x"}))); diff != "" {
		t.Error(diff)
	}
	if got := m.Unused(slices.Values([]string{"notes/todo.md", "x", "unused/last.md"})); got != nil {
		t.Error(got)
	}
	if got := m.Unused(slices.Values([]string(nil))); len(got) != 8 || !slices.IsSorted(got) {
		t.Error(got)
	}
}

// TestNothingDeclared: also where constraints are something the law of bundles
// does not mind.
func TestNothingDeclared(t *testing.T) {
	for _, text := range []string{`{}`, `{"restore_scopes":{}}`, `{"Restore_scopes":1}`, `null`, `[]`, `"restore_scopes"`, `1`} {
		m := mustParse(t, text)
		if s, ok := m.Of("a"); ok || s != "" || m.Unused(slices.Values([]string{"a"})) != nil {
			t.Errorf("%s: %q", text, s)
		}
	}
	if m, err := scope.ParseMap(canonjson.Value{}); err != nil || m.Unused(slices.Values([]string{"a"})) != nil {
		t.Error(err)
	}
}

func TestMapRejected(t *testing.T) {
	many := `{"restore_scopes":{`
	for i := range scope.MaxPatterns + 1 {
		many += fmt.Sprintf(`"%d":"decisions",`, i)
	}
	for name, test := range map[string]struct{ text, pattern string }{
		"array":         {`{"restore_scopes":[]}`, ""},
		"null":          {`{"restore_scopes":null}`, ""},
		"string":        {`{"restore_scopes":"decisions"}`, ""},
		"unknown scope": {`{"restore_scopes":{"a":"decisions","b":"Decisions"}}`, "b"},
		"empty scope":   {`{"restore_scopes":{"a":""}}`, "a"},
		"list of":       {`{"restore_scopes":{"a":["decisions"]}}`, "a"},
		"malformed":     {`{"restore_scopes":{"a":"decisions","a//b":"decisions"}}`, "a//b"},
		"absolute":      {`{"restore_scopes":{"/a":"decisions"}}`, "/a"},
		"empty pattern": {`{"restore_scopes":{"":"decisions"}}`, ""},
		"too many":      {strings.TrimSuffix(many, ",") + "}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := parse(t, test.text)
			var bad *scope.MapError
			if !errors.As(err, &bad) || bad.Pattern != test.pattern || !strings.Contains(err.Error(), scope.Member) {
				t.Errorf("%v, of pattern %q", err, test.pattern)
			}
			if _, ok := m.Of("a"); ok {
				t.Error("there is a map with the error")
			}
			if wrong := strings.Contains(test.text, "//") || name == "absolute"; wrong != errors.Is(err, glob.ErrPattern) && name != "empty pattern" {
				t.Error(err)
			}
		})
	}
}

// BenchmarkOf looks up 20,000 paths in 100 patterns, of which none matches.
func BenchmarkOf(b *testing.B) {
	text := `{"restore_scopes":{`
	for i := range 100 {
		text += fmt.Sprintf(`"**/dir%d/*/file?%d*.md":"decisions",`, i, i)
	}
	m := mustParse(b, strings.TrimSuffix(text, ",")+"}}")
	for b.Loop() {
		for i := range 20_000 {
			m.Of(fmt.Sprintf("some/where/dir%d/below/file-%d.md", i%100, i+1000))
		}
	}
}

func ExampleMap_Of() {
	constraints, err := canonjson.Parse([]byte(`{"restore_scopes": {"notes/": "decisions", "notes/todo.md": "next_actions"}}`))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	m, err := scope.ParseMap(constraints)
	fmt.Println(err)
	for _, path := range []string{"notes/todo.md", "notes/2026/may.md", "src/main.go"} {
		s, ok := m.Of(path)
		fmt.Printf("%s: %q %t\n", path, s, ok)
	}
	// Output:
	// <nil>
	// notes/todo.md: "next_actions" true
	// notes/2026/may.md: "decisions" true
	// src/main.go: "" false
}

// TestExact: what is said of a path goes before any pattern, whatever the path
// looks like; what is said of no output is unused, and what is not a scope is rejected.
func TestExact(t *testing.T) {
	parse := func(text string) (scope.Map, error) {
		t.Helper()
		value, err := canonjson.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return scope.ParseMap(value)
	}
	m, err := parse(`{"restore_item_scopes":{"a/*":"decisions","a/b":"restricted_context","gone":"assumptions"},"restore_scopes":{"a/b":"constraints","a/**":"next_actions"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]scope.Scope{"a/*": scope.Decisions, "a/b": scope.RestrictedContext, "a/c": scope.NextActions, "b": ""} {
		if got, ok := m.Of(path); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", path, got, ok, want)
		}
	}
	if got := m.Unused(slices.Values([]string{"a/b", "a/*", "a/c"})); !slices.Equal(got, []string{"gone"}) {
		t.Errorf("unused: %q", got)
	}
	for _, text := range []string{
		`{"restore_item_scopes":[]}`, `{"restore_item_scopes":{"a":1}}`, `{"restore_item_scopes":{"a":"everything"}}`,
	} {
		m, err := parse(text)
		var wrong *scope.MapError
		if _, ok := m.Of("a"); !errors.As(err, &wrong) || wrong.Member != scope.Exact || ok || !strings.Contains(err.Error(), "restore_item_scopes") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
