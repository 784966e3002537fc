package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// shellQuote quotes a word for a shell, if it needs it. What cannot be printed is
// written as bash, zsh and ksh read it ($'...'), so that the word is on one line and
// still the very same.
func shellQuote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%"
	switch {
	case word != "" && strings.Trim(word, plain) == "":
		return word
	case oneLine(word) != word || !utf8.ValidString(word):
		return "$'" + shellEscape(word) + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellEscape is a word as it stands in $'...'.
func shellEscape(word string) string {
	var b strings.Builder
	var scan visible.Scanner
	for len(word) > 0 {
		r, n := utf8.DecodeRuneInString(word)
		switch hidden := scan.Hidden(r); {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case !hidden && (r != utf8.RuneError || n > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(word[:n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		word = word[n:]
	}
	return b.String()
}
