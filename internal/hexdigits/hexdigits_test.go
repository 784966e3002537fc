package hexdigits_test

import (
	"testing"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
)

// TestOnlyLowerCaseDigits tries every byte alone and inside: only the lower-case digits count.
func TestOnlyLowerCaseDigits(t *testing.T) {
	count := 0
	for b := range 256 {
		one := string([]byte{byte(b)})
		is := b >= '0' && b <= '9' || b >= 'a' && b <= 'f'
		if hexdigits.Only(one) != is || hexdigits.Are("0"+one+"f", 3) != is {
			t.Errorf("%q", one)
		}
		if is {
			count++
		}
	}
	if count != 16 || !hexdigits.Only("") || hexdigits.Are("ab", 3) || hexdigits.Are("abcd", 3) {
		t.Errorf("%d digits", count)
	}
}

// TestShortPrefixIsNoID: fewer digits than are enough begin no ID.
func TestShortPrefixIsNoID(t *testing.T) {
	for digits, want := range map[string]bool{"": false, "abc": false, "abcd": true, "abcde": true, "abcdef": false, "bcde": false} {
		if got := hexdigits.Begins("abcde", digits); got != want {
			t.Errorf("%q: %v", digits, got)
		}
	}
}
