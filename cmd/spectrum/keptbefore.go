package main

import (
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/restore/action"
)

// tellKeptBefore names these files, and returns where they are.
func (a *app) tellKeptBefore(in *action.Root, files []string) []string {
	lines, at := make([]string, 0, len(files)), make([]string, 0, len(files))
	for _, file := range files {
		_, was, _ := strings.Cut(file, "/")
		at = append(at, filepath.Join(in.Real(), file))
		lines = append(lines, "what other processes have written to "+shortPath(was)+" since the commit displaced it is in "+shellQuote(at[len(at)-1])+", which stays")
	}
	a.tellFew(lines)
	return at
}
