package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// knowRoot returns the path under which the records of the directory at a real path are kept, and
// reports whether it was moved, or whether roots.log has lost it.
func (a *app) knowRoot(state *statedir.Dir, real, id string, dry bool, ev statedir.Evidence) (string, error) {
	before, err := state.KnownRoots()
	if err != nil {
		return "", err
	}
	name, from, err := state.EnterRoot(real, id, dry, ev)
	if err == nil && from != "" {
		a.tell("spectrum: %q was moved here from %q, and keeps its history, which is of %q", real, from, name)
	}
	isNamed := slices.ContainsFunc(before, func(r statedir.KnownRoot) bool { return r.Known == name })
	if err == nil && !isNamed && utf8.ValidString(name) && ev.Has != nil && ev.Has(name) {
		again := "it does again now"
		if dry {
			again = "the command without --dry-run has it do so again"
		}
		a.tell("spectrum: %s; %s", oneLine(statecheck.UnnamedError(state, name).Error()), again)
	}
	return name, err
}

// evidenceOf is what is known of a directory with an identity, beside the record of where restore
// roots are. Store may be nil.
func evidenceOf(store *snapshot.Store, id string, dir pathsafe.Stat) statedir.Evidence {
	ev := statedir.Evidence{Leads: func(path string) bool { return leadsTo(path, id) }}
	if store == nil {
		return ev
	}
	ev.Has = store.Has
	ev.Past = func(others []string) string {
		name, err := store.KnownAs(dir, others)
		if err != nil {
			return "" // the path decides
		}
		return name
	}
	return ev
}

// nameOfRoot returns the path under which the records of the restore root at a path are kept, by
// what the directory there is: it may have been moved there since. Unless it is for a look only, where it is now is remembered.
func nameOfRoot(state *statedir.Dir, path string, look bool) (string, error) {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		if to := namedSo(state, path); to != "" { // nothing else is at that path
			return path, nil
		}
		return state.RootName(path)
	}
	defer dir.Close()
	id, err := dir.Identity()
	st, unknown := dir.Stat()
	if err != nil || unknown != nil {
		return state.RootName(path)
	}
	var store *snapshot.Store
	if _, err := state.Root().Lstat("snapshots"); !errors.Is(err, fs.ErrNotExist) { // a look makes none
		if store, err = statecheck.Snapshots(state); err == nil {
			defer store.Close()
		}
	}
	name, _, err := state.EnterRoot(path, id, look, evidenceOf(store, id, st))
	return name, err
}

// namedSo returns where the restore root was found last whose records are kept under a name that is
// the path of no other one; "" for none.
func namedSo(state *statedir.Dir, name string) (path string) {
	all, _ := state.KnownRoots() // what cannot be read is not known
	for _, r := range all {
		switch name {
		case r.Path:
			return ""
		case r.Known:
			path = r.Path
		}
	}
	return path
}

// rootText is a restore root for people, with the name of its records where that is another one.
func rootText(path, name string) string {
	if name == path {
		return fmt.Sprintf("%q", path)
	}
	return fmt.Sprintf("%q, known as %q", path, name)
}

// leadsTo reports whether a path leads to the directory of an identity.
func leadsTo(path, id string) bool {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	is, err := dir.Identity()
	return err == nil && is == id
}
