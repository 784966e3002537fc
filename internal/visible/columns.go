package visible

import "unicode/utf8"

// Columns returns the maximum number of terminal columns of a text without control characters: one
// for each ASCII character, two for any other. Terminals disagree on the width of many characters,
// and a line that is longer than the terminal is continued at its left edge, where it can look like
// a line of the program.
func Columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// Within returns the length in bytes of the longest prefix of a text that takes at most so many
// columns, as counted by [Columns].
func Within(s string, columns int) int {
	for at, r := range s {
		if columns -= columnsOf(r); columns < 0 {
			return at
		}
	}
	return len(s)
}

// EndWithin is [Within] for the longest suffix of a text: it returns where that begins.
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
