package main

import (
	"strings"
	"testing"
)

// TestGrammarOfNumbers: the verb agrees with how many files it is about.
func TestGrammarOfNumbers(t *testing.T) {
	for differing, want := range map[int]string{1: `1 of 3 files in "/r" differs`, 2: `2 of 3 files in "/r" differ`} {
		if got := rootDiffers(&rootDiff{total: 3, rootPath: "/r"}, differing, nil, nil).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for n, want := range map[int64]string{1: "1 entry", 2: "2 entries", 1000: "1000 entries"} {
		if got := entriesText(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
