package statement

import "strings"

// slips are what people get wrong in a statement that is otherwise right, each
// with how it would be right. They serve the words of a refusal alone: what is
// read is never repaired.
var slips = [...]struct {
	reason string
	mend   func(text string) string
}{
	{"the full stop is missing at the end", func(text string) string { return text + "." }},
	{"there is white space before or after it", strings.TrimSpace},
	{"there is more than one space between two words", func(text string) string { return strings.Join(strings.Fields(text), " ") }},
	{`the word "items" is missing before the ids`, addItems},
	{`the word "only" is missing after what is to be restored`, addOnly},
	{"upper and lower case must be as in the example", fixCase},
}

// findSlip is the one slip of a text, if one is all there is, else nil.
func findSlip(text string) error {
	const most = 4 << 10 // bytes; who writes more has a program to look at it
	if len(text) > most {
		return nil
	}
	for _, slip := range slips {
		mended := slip.mend(text)
		if mended == text {
			continue
		}
		if _, err := parse(mended); err == nil {
			return &Error{slip.reason, mended}
		}
	}
	return nil
}

func addOnly(text string) string { return strings.Replace(text, ".", " only.", 1) }

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
