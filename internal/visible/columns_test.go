package visible

import "testing"

// TestColumns: nothing is narrower than a terminal may draw it, and what is within so many columns is the
// most that is.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "plain": 5, "漢字": 4, "a漢b": 4, "é…": 4, "\xff": 2} {
		if got := Columns(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
		for n := range want + 2 {
			begin, end := text[:Within(text, n)], text[EndWithin(text, n):]
			if Columns(begin) > n || Columns(end) > n || n >= want && (begin != text || end != text) || n < want && max(Columns(begin), Columns(end)) < n-1 {
				t.Errorf("%q within %d columns: %q, %q", text, n, begin, end)
			}
		}
	}
}
