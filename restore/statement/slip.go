package statement

import "strings"

// slips are common mistakes in a statement, each with its correction. They are used in the text of an error
// only: a statement is never repaired.
var slips = [...]struct {
	reason string
	fix    func(text string) string
}{
	{"it is in quotes", dropQuotes},
	{"it has white space before or after it", strings.TrimSpace},
	{"the full stop is missing at the end", addStop},
	{"it has more than one space between two words", func(text string) string { return strings.Join(strings.Fields(text), " ") }},
	{`the word "items" is missing before the ids`, addItems},
	{`the word "only" is missing after what is to be restored`, addOnly},
	{"upper and lower case must be as in the example", fixCase},
}

// longest is the maximum length of a text that is searched for slips. A program writes longer ones.
const longest = 4 << 10

// findSlip returns the slips in a text that is a statement without them; else nil.
func findSlip(text string) error {
	if len(text) > longest {
		return nil
	}
	for _, slip := range slips {
		fixed := slip.fix(text)
		if fixed == text {
			continue
		}
		if _, err := parse(fixed); err == nil {
			return &Error{slip.reason, fixed}
		}
	}
	fixed := text
	var reasons []string
	for _, slip := range slips {
		next := slip.fix(fixed)
		if next == fixed {
			continue
		}
		fixed, reasons = next, append(reasons, slip.reason)
		if _, err := parse(fixed); err == nil {
			return &Error{strings.Join(reasons, "; "), fixed}
		}
	}
	return nil
}

// DiffersInForm reports whether a text that is not a statement would be one with other upper and lower case,
// other white space, a full stop at its end, and no quotes around it. Such a text is still rejected.
func DiffersInForm(text string) bool {
	if _, err := Parse(text); err == nil || len(text) > longest {
		return false
	}
	words := strings.Join(strings.Fields(dropQuotes(text)), " ")
	for _, fixed := range []string{words, addStop(words), fixCase(words), fixCase(addStop(words))} {
		if _, err := parse(fixed); err == nil {
			return true
		}
	}
	return false
}

// dropQuotes drops the quotes around a text.
func dropQuotes(text string) string {
	const quotes = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb"
	trimmed := strings.TrimSpace(text)
	if inner := strings.Trim(trimmed, quotes); inner != trimmed {
		return strings.TrimSpace(inner)
	}
	return text
}

func addStop(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func addOnly(text string) string {
	if lower := strings.ToLower(text); !strings.HasPrefix(lower, "approved: restore ") || strings.Contains(lower, " only.") {
		return text
	}
	return strings.Replace(text, ".", " only.", 1)
}

func addItems(text string) string { return strings.ReplaceAll(text, "restore R-", "restore items R-") }

// fixCase writes a text in lower case but for ids and the first letter of each
// sentence.
func fixCase(text string) string {
	lower := []byte(strings.ToLower(text))
	for i, c := range lower {
		begins := i == 0 || i > 1 && string(lower[i-2:i]) == ". "
		isID := i+1 < len(lower) && lower[i+1] == '-' && (c == 'r' || c == 'c') && (i == 0 || lower[i-1] == ' ')
		if (begins || isID) && c >= 'a' && c <= 'z' {
			lower[i] -= 'a' - 'A'
		}
	}
	return string(lower)
}

// Unindented is a statement without what pasting adds to it: white space before and after
// it, and line breaks with indentation in it.
func Unindented(text string) string {
	if !strings.ContainsAny(text, "\n\r\t") {
		return strings.Trim(text, " ")
	}
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n", c) }), " ")
}
