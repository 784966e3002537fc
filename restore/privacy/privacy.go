package privacy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/glob"
)

// Finding is why a path is restricted.
type Finding struct {
	Pattern  string // as the table has it, or the operator's in lower case
	Why      string // what such a file usually holds, in words
	Operator bool   // a place says it, the table does not
}

// Rules say which names are restricted. The zero Rules restrict none.
type Rules struct {
	rules []rule // of the table in its order, then the operator's by their bytes
}

type rule struct {
	finding Finding
	pattern glob.Pattern
	except  []glob.Pattern
}

// own are the rules of the table.
var own = func() (rules []rule) {
	for _, n := range builtin {
		r := rule{finding: Finding{n.pattern, n.why, false}, pattern: mustParse(n.pattern)}
		for _, text := range n.except {
			r.except = append(r.except, mustParse(text))
		}
		rules = append(rules, r)
	}
	return rules
}()

// mustParse reads a pattern of the table.
func mustParse(text string) glob.Pattern {
	pattern, err := parsePattern(text)
	if err != nil {
		panic(err)
	}
	return pattern
}

// parsePattern reads a pattern in lower case, and one of names at any depth.
func parsePattern(text string) (glob.Pattern, error) {
	if !strings.Contains(strings.TrimSuffix(text, "/"), "/") {
		if _, err := glob.Parse(text); err != nil {
			return glob.Pattern{}, err
		}
		text = "**/" + text
	}
	return glob.Parse(lower(text))
}

// Builtin are the rules of the table alone.
func Builtin() Rules { return Rules{slices.Clone(own)} }

// Match says whether a path is restricted, and by which rule: the first of the
// table, or else of the operator.
func (r Rules) Match(path string) (Finding, bool) {
	path = lower(path)
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

// Digest is a hash of what the rules restrict and of who says so, 64 hex
// digits, the same on every machine where these are the same.
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

// lower writes ASCII letters in lower case, and nothing else.
func lower(text string) string {
	raw := []byte(text)
	for i, c := range raw {
		if c >= 'A' && c <= 'Z' {
			raw[i] = c + 'a' - 'A'
		}
	}
	return string(raw)
}
