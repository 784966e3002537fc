package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// flawsOf looks for damage among all that is kept of a root. What cannot be looked at for a
// fault of the machine is an error.
func (a *app) flawsOf(ctx context.Context, state *statedir.Dir, root string) ([]statecheck.Flaw, error) {
	snapshots, err := a.openSnapshots(state)
	if err != nil {
		return nil, err
	}
	defer snapshots.Close()
	savepoints, err := statecheck.Savepoints(state)
	if err != nil {
		return nil, err
	}
	defer savepoints.Close()
	all, in, err := statecheck.SnapshotFlaws(ctx, state, snapshots, root, snapshot.Budget{Manifests: statecheck.Glance, Contents: statecheck.Glance})
	if err != nil {
		return nil, err
	}
	more, err := statecheck.SavepointFlaws(state, savepoints, root)
	if err != nil {
		return nil, err
	}
	history, err := statecheck.HistoryFlaws(ctx, state, root, in.Signed)
	var damage *audit.DamageError
	if errors.As(err, &damage) {
		path, unknown := state.RootPath(root)
		if unknown != nil {
			return nil, unknown
		}
		at := filepath.Join(state.Path(), "audit.log")
		history, err = []statecheck.Flaw{{Path: at, What: err.Error(), Remedy: lostLogRemedy(at, path)}}, nil
	}
	return slices.Concat(statecheck.Misplaced(state), all, more, history), err
}

// tellFlaws prints damaged files. The next steps come last ([stateDamaged]).
func (a *app) tellFlaws(flaws []statecheck.Flaw) {
	for _, f := range statecheck.Fold(flaws) {
		at := ""
		if !strings.Contains(f.What, filepath.Base(f.Path)) {
			at = fmt.Sprintf("%q: ", f.Path)
		}
		a.tell("spectrum: damaged: %s%s", at, oneLine(f.What))
	}
}

// tellBeside names what is damaged among the records of a root that was undone, and that
// was passed over.
func (a *app) tellBeside(in *action.Root, snapshots bool) {
	if found, err := in.Savepoints().Survey(in.Path()); err == nil {
		for _, d := range found.Damaged {
			a.tell("spectrum: skipped: %s", oneLine(d.Error()))
		}
	}
	if !snapshots {
		return
	}
	if _, damaged, err := in.Snapshots().Survey(in.Path()); err == nil {
		for _, d := range damaged {
			a.tell("spectrum: skipped: %s", oneLine(d.Error()))
		}
	}
}

// tellUnread names the later commits that a rollback has passed over.
func (a *app) tellUnread(commits []string) {
	for _, id := range commits {
		a.tell("spectrum: the savepoint of the later commit %s cannot be read, so the files that it created are not known; every file that may be one of them stays", id)
	}
}
