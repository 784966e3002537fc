package visible

import "unicode/utf8"

// Columns returns the columns of a terminal that a text without control characters takes at most: one for
// each character of ASCII, two for any other one. Terminals disagree on the width of many characters, and
// a line that is longer than the terminal is continued at its left edge, where it can be taken for a line
// of the program.
func Columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// Within returns the length in bytes of the longest beginning of a text that takes at most so many
// columns, by the rule of [Columns].
func Within(s string, columns int) int {
	for at, r := range s {
		if columns -= columnsOf(r); columns < 0 {
			return at
		}
	}
	return len(s)
}

// EndWithin is [Within] for the end of a text: it returns where that begins.
func EndWithin(s string, columns int) int {
	at := len(s)
	for at > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:at])
		if columns -= columnsOf(r); columns < 0 {
			break
		}
		at -= n
	}
	return at
}

func columnsOf(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	return 2
}
