package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// knowRoot returns the path under which the records of the directory at a real path are kept, and
// reports whether it was moved, or whether roots.log has lost it.
func (a *app) knowRoot(state *statedir.Dir, real, id string, dry bool, ev statedir.Evidence) (string, error) {
	in, err := state.EnterRoot(real, id, dry, ev)
	if err != nil {
		return "", err
	}
	if in.From != "" {
		a.tell("spectrum: %q was moved here from %q, and keeps its history, which is of %q", real, in.From, in.Name)
	}
	if in.WasLost {
		again := "this command has restored it"
		if dry {
			again = "the command without --dry-run restores it"
		}
		a.tell("spectrum: %s; %s", oneLine(statecheck.UnnamedError(state, in.Name).Error()), again)
	}
	return in.Name, nil
}

// nameOfRoot is [statedir.Dir.FindRoot] with the snapshots of the state directory.
func nameOfRoot(state *statedir.Dir, path string, look bool) (string, error) {
	if _, err := state.Root().Lstat("snapshots"); errors.Is(err, fs.ErrNotExist) { // a look makes none
		return state.FindRoot(path, look, nil)
	}
	store, err := statecheck.Snapshots(state)
	if err != nil {
		return state.FindRoot(path, look, nil)
	}
	defer store.Close()
	return state.FindRoot(path, look, store)
}

// rootText is a restore root for people, with the name of its records where that is another one.
func rootText(path, name string) string {
	if name == path {
		return fmt.Sprintf("%q", path)
	}
	return fmt.Sprintf("%q, known as %q", path, name)
}
