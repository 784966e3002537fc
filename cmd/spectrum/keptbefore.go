package main

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/staging"
)

// keptBefore are the files in a root that commits have kept there, since another process had what
// they replaced or removed open to write to; as paths in the root.
func keptBefore(ctx context.Context, in *action.Root, commits []string) (files []string) {
	names, err := in.Dir().Names()
	if err != nil {
		return nil // the rollback is done all the same
	}
	for _, name := range names {
		for _, commit := range commits {
			if staging.IsKept(name) && strings.Contains(name, commit) {
				files = append(files, filesIn(ctx, in.Dir(), name)...)
			}
		}
	}
	return files
}

// filesIn are what is in a directory and is no directory, as far as that can be read.
func filesIn(ctx context.Context, dir *pathsafe.Dir, name string) (files []string) {
	own, err := dir.OpenDir(name)
	if err != nil {
		return nil
	}
	defer own.Close()
	_ = own.Walk(ctx, func(rel string, st pathsafe.Stat) error {
		if !st.Mode.IsDir() {
			files = append(files, path.Join(name, rel))
		}
		return nil
	})
	return files
}

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
