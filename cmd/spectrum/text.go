package main

import (
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
)

// What every command writes, by the names that it has here.

func shellQuote(word string) string { return words.Shell(word) }

func shortPath(path string) string { return words.Path(path) }

func jsonText(path string) string { return words.JSON(path) }

func orNull(s string) any { return words.OrNull(s) }

func bytesText(n int64) string { return words.Bytes(n) }

func number[N int | int64](n N) string { return words.Number(n) }

func numberOf[N int | int64](n N, what string) string { return words.Count(n, what) }

// shellLine is a command line of these words, quoted for a shell.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for n, word := range words {
		quoted[n] = shellQuote(word)
	}
	return strings.Join(quoted, " ")
}
