package ignore

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// MaxPattern is the length in bytes of the longest pattern.
const MaxPattern = pathsafe.MaxPath

// ErrPattern means that a text is not a pattern.
var ErrPattern = errors.New("not a pattern")

// pattern is one line in the language of doublestar.
type pattern struct {
	glob    string
	negated bool // it brings back
	onlyDir bool
	name    bool // it is matched with the last name of a path alone
}

// parseLine reads one line. It returns false for a comment or an empty line.
func parseLine(line string) (pattern, bool, error) {
	var p pattern
	text := trimSpaces(line)
	if text == "" || text[0] == '#' {
		return p, false, nil
	}
	if len(text) > MaxPattern {
		return p, false, fmt.Errorf("%w: %.100q has more than %d bytes", ErrPattern, line, MaxPattern)
	}
	if !utf8.ValidString(text) {
		return p, false, fmt.Errorf("%w: %.100q is not UTF-8; write ? for such a byte", ErrPattern, line)
	}
	if text[0] == '!' {
		p.negated, text = true, text[1:]
	}
	if strings.HasSuffix(text, "/") {
		p.onlyDir, text = true, text[:len(text)-1]
	}
	p.name = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if strings.Contains("/"+text+"/", "//") {
		return p, false, fmt.Errorf("%w: %.100q has an empty name", ErrPattern, line)
	}
	glob, err := translate(text)
	if err == nil && !doublestar.ValidatePattern(glob) {
		err = errors.New("cannot be read")
	}
	if err != nil {
		return p, false, fmt.Errorf("%w: %.100q %w", ErrPattern, line, err)
	}
	p.glob = glob
	return p, true, nil
}

// trimSpaces removes the unquoted spaces at the end of a line.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// translate returns a pattern in the syntax of doublestar. There braces have a meaning, "a/**" also
// matches "a", and a class may match a slash.
func translate(text string) (string, error) {
	var b strings.Builder
	for text != "" {
		switch c := text[0]; c {
		case '*':
			stars := len(text) - len(strings.TrimLeft(text, "*"))
			text = text[stars:]
			alone := stars >= 2 && (b.Len() == 0 || strings.HasSuffix(b.String(), "/")) && (text == "" || text[0] == '/')
			switch {
			case alone && text == "":
				b.WriteString("**/*")
			case alone:
				b.WriteString("**")
			default:
				b.WriteString("*")
			}
			continue
		case '[':
			class, rest, err := class(text[1:])
			if err != nil {
				return "", err
			}
			b.WriteString(class)
			text = rest
			continue
		case '\\':
			if len(text) == 1 {
				return "", errors.New("ends with a backslash")
			}
			b.WriteString(text[:2])
			text = text[2:]
			continue
		case '{', '}':
			b.WriteByte('\\')
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String(), nil
}

// match reports whether the pattern matches a path, relative to the directory of the pattern.
func (p pattern) match(path string, isDir bool) bool {
	if p.onlyDir && !isDir {
		return false
	}
	if p.name {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return doublestar.MatchUnvalidated(p.glob, path)
}
