package glob

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLength is the length in bytes of the longest pattern.
const MaxLength = 1024

// ErrPattern reports that a text is not a pattern.
var ErrPattern = errors.New("not a pattern")

const anyNames = "**"

// Pattern is a pattern that [Parse] made. The zero Pattern matches nothing.
type Pattern struct {
	text  string
	parts []string // no "**" follows another; a directory's end with "**", "*"
	rank  rank
}

// Parse reads a pattern. The error is [ErrPattern] and says what is wrong;
// nothing is repaired.
func Parse(text string) (Pattern, error) {
	if err := check(text); err != nil {
		return Pattern{}, fmt.Errorf("%w: %.100q %w", ErrPattern, text, err)
	}
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "/"), "/") {
		if err := checkPart(part); err != nil {
			return Pattern{}, fmt.Errorf("%w: %.100q %w", ErrPattern, text, err)
		}
		parts = appendPart(parts, part)
	}
	if strings.HasSuffix(text, "/") {
		parts = append(appendPart(parts, anyNames), "*")
	}
	return Pattern{text, parts, rankOf(parts)}, nil
}

// check looks at a text as a whole.
func check(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > MaxLength:
		return fmt.Errorf("has more than %d bytes", MaxLength)
	case !utf8.ValidString(text):
		return errors.New("is not UTF-8")
	case text[0] == '/':
		return errors.New("begins with a slash; paths are relative")
	case strings.ContainsAny(text, `[]{}\`):
		return errors.New(`has one of [ ] { } \; write ? for it`)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a control character; write ? for it")
	}
	return nil
}

// checkPart looks at the text between two slashes.
func checkPart(part string) error {
	switch {
	case part == "":
		return errors.New("has an empty part")
	case part == "." || part == "..":
		return fmt.Errorf("has the part %q", part)
	case part != anyNames && strings.Contains(part, anyNames):
		return errors.New(`has "**" beside other characters`)
	}
	return nil
}

func appendPart(parts []string, part string) []string {
	if part == anyNames && len(parts) > 0 && parts[len(parts)-1] == anyNames {
		return parts
	}
	return append(parts, part)
}

// String is the text of the pattern, as it was parsed.
func (p Pattern) String() string { return p.text }

// Match reports whether the pattern matches a path, which is never cleaned.
func (p Pattern) Match(path string) bool {
	if path == "" || !p.matchLast(path) {
		return false
	}
	part, at := 0, 0     // the next part, and where the next name begins
	star, again := -1, 0 // the last "**", and where the name after it begins
	for at <= len(path) {
		end := endOf(path, at)
		switch {
		case part < len(p.parts) && p.parts[part] == anyNames:
			star, again = part, at
			part++
		case part < len(p.parts) && matchName(p.parts[part], path[at:end]):
			part, at = part+1, end+1
		case star >= 0:
			again = endOf(path, again) + 1
			part, at = star+1, again
		default:
			return false
		}
	}
	return part == len(p.parts) || part == len(p.parts)-1 && p.parts[part] == anyNames
}

// matchLast looks at the last name first: most patterns fail there.
func (p Pattern) matchLast(path string) bool {
	if len(p.parts) == 0 {
		return false
	}
	last := p.parts[len(p.parts)-1]
	return last == anyNames || matchName(last, path[strings.LastIndexByte(path, '/')+1:])
}

// endOf is where the name ends that begins at an index.
func endOf(path string, at int) int {
	if i := strings.IndexByte(path[at:], '/'); i >= 0 {
		return at + i
	}
	return len(path)
}

// matchName matches one part that is not "**" with one name.
func matchName(part, name string) bool {
	p, n := 0, 0
	star, again := -1, 0 // the last "*", and where what follows it begins
	for n < len(name) {
		_, size := utf8.DecodeRuneInString(name[n:])
		switch {
		case p < len(part) && part[p] == '*':
			star, again = p, n
			p++
		case p < len(part) && part[p] == '?':
			p, n = p+1, n+size
		case p < len(part) && part[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			_, size := utf8.DecodeRuneInString(name[again:])
			again += size
			p, n = star+1, again
		default:
			return false
		}
	}
	return strings.Trim(part[p:], "*") == ""
}

// rank is what the order of patterns looks at before their texts.
type rank struct {
	prefix   int // bytes before the first wildcard
	literals int // bytes that stand for themselves, without slashes
	names    int // parts other than "**"
	deep     int // "**"
	stars    int // "*"
	marks    int // "?"
}

func rankOf(parts []string) (r rank) {
	for _, part := range parts {
		if part == anyNames {
			r.deep++
			continue
		}
		r.names++
		r.stars += strings.Count(part, "*")
		r.marks += strings.Count(part, "?")
		r.literals += len(part) - strings.Count(part, "*") - strings.Count(part, "?")
	}
	r.prefix = prefixOf(strings.Join(parts, "/"))
	return r
}

func prefixOf(text string) int {
	i := strings.IndexAny(text, "*?")
	switch {
	case i < 0:
		return len(text)
	case i > 0 && text[i-1] == '/' && strings.HasPrefix(text[i:], anyNames):
		return i - 1
	}
	return i
}

// Compare puts the more specific pattern first, as the package comment orders
// them: negative when that is a, positive when it is b, 0 for the same text.
func Compare(a, b Pattern) int {
	return cmp.Or(
		cmp.Compare(b.rank.prefix, a.rank.prefix),
		cmp.Compare(b.rank.literals, a.rank.literals),
		cmp.Compare(b.rank.names, a.rank.names),
		cmp.Compare(a.rank.deep, b.rank.deep),
		cmp.Compare(a.rank.stars, b.rank.stars),
		cmp.Compare(b.rank.marks, a.rank.marks),
		strings.Compare(a.text, b.text),
	)
}
