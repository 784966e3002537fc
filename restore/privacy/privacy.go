package privacy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/glob"
)

// Finding is the reason why a path is restricted.
type Finding struct {
	Pattern  string // of the table, or of the operator in lower case
	Why      string // what such a file usually holds, in words
	Operator bool   // the rule is of a place, not of the table
}

// Rules match restricted names. The zero Rules match none.
type Rules struct {
	rules []rule // of the table in its order, then the operator's by their bytes
}

type rule struct {
	finding Finding
	pattern glob.Pattern
	except  []glob.Pattern
}

// own are the rules of the tables, by kind.
var own = func() (all [len(kinds)][]rule) {
	for kind, k := range kinds {
		for _, n := range k.table {
			r := rule{finding: Finding{n.pattern, n.why, false}, pattern: mustParse(n.pattern)}
			for _, text := range n.except {
				r.except = append(r.except, mustParse(text))
			}
			all[kind] = append(all[kind], r)
		}
	}
	return all
}()

// mustParse reads a pattern of the table.
func mustParse(text string) glob.Pattern {
	pattern, err := parsePattern(text)
	if err != nil {
		panic(err)
	}
	return pattern
}

// parsePattern reads a pattern in lower case; without a slash it matches names at any depth.
func parsePattern(text string) (glob.Pattern, error) {
	if !strings.Contains(strings.TrimSuffix(text, "/"), "/") {
		if _, err := glob.Parse(text); err != nil {
			return glob.Pattern{}, err
		}
		text = "**/" + text
	}
	return glob.Parse(lower(text))
}

// Builtin returns the rules of the table of secrets.
func Builtin() Rules { return BuiltinKind(Secret) }

// BuiltinKind returns the rules of the table of a kind.
func BuiltinKind(kind Kind) Rules { return Rules{slices.Clone(own[kind])} }

// Match reports whether a path is restricted, and returns the first matching rule of the table, or else of the
// operator. White space at the ends of a name and invisible characters are ignored.
func (r Rules) Match(path string) (Finding, bool) {
	path = lower(path)
	if found, ok := r.find(path); ok {
		return found, true
	}
	if bare := bared(path); bare != path {
		return r.find(bare)
	}
	return Finding{}, false
}

func (r Rules) find(path string) (Finding, bool) {
	for _, rule := range r.rules {
		if rule.match(path) {
			return rule.finding, true
		}
	}
	return Finding{}, false
}

func (r rule) match(path string) bool {
	return r.pattern.Match(path) && !slices.ContainsFunc(r.except, func(p glob.Pattern) bool { return p.Match(path) })
}

// bared returns a path without invisible characters, and without white space at the ends of names.
func bared(path string) string {
	names := strings.Split(path, "/")
	for n, name := range names {
		var scan visible.Scanner
		name = strings.Map(func(r rune) rune {
			if r != ' ' && scan.Hidden(r) && !unicode.IsSpace(r) {
				return -1
			}
			return r
		}, name)
		names[n] = strings.TrimSpace(name)
	}
	return strings.Join(names, "/")
}

// Digest returns a hash of the rules and their origin, 64 hex digits. Equal rules have the same hash on every
// machine.
func (r Rules) Digest() string {
	h := sha256.New()
	for _, rule := range r.rules {
		_, _ = fmt.Fprintf(h, "%t %q", rule.finding.Operator, rule.pattern)
		for _, p := range rule.except {
			_, _ = fmt.Fprintf(h, " %q", p)
		}
		_, _ = fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// lower converts ASCII letters alone to lower case.
func lower(text string) string {
	raw := []byte(text)
	for i, c := range raw {
		if c >= 'A' && c <= 'Z' {
			raw[i] = c + 'a' - 'A'
		}
	}
	return string(raw)
}
