package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A flaw is damage among what is kept of restore roots, and the way out.
type flaw struct {
	path, what, remedy string
	isContent          bool // of a snapshot, whose manifest is whole
}

func (f *flaw) fields() map[string]any {
	return map[string]any{"path": jsonText(f.path), "remedy": jsonText(f.remedy), "why": jsonText(f.what)}
}

// glance is how many bytes of contents, and of manifests, recover and the doctor read at
// most, the newest first: they are to be quick. "spectrum snapshot verify" reads all.
const glance = 256 << 20

// snapshotFlaws looks for damage among the snapshots of a root, or of all when root is "", and
// returns what it has read too.
func snapshotFlaws(ctx context.Context, state *statedir.Dir, store *snapshot.Store, root string, budget snapshot.Budget) ([]flaw, snapshot.Inspected, error) {
	in, err := store.Inspect(ctx, root, budget)
	if err != nil {
		return nil, snapshot.Inspected{}, err
	}
	var flaws []flaw
	for _, f := range in.Found {
		way := flaw{path: filepath.Join(state.Path(), "snapshots", f.Damage.Path), what: f.Damage.Error()}
		switch {
		case errors.Is(f.Damage, snapshot.ErrOldVersion):
			way.remedy = "an earlier spectrum reads it; else move it away and take a new snapshot"
		case len(f.Damage.Names) > 0:
			way.isContent = true
			way.remedy = fmt.Sprintf("\"spectrum snapshot verify --repair %s\" brings it again if it still stands in the restore root; other snapshots are ways back all the same", f.Header.ID[:shortest])
		default:
			way.remedy = "find out who may write there; then move it away: other snapshots are ways back all the same, and \"spectrum snapshot prune\" refuses to work beside it"
		}
		flaws = append(flaws, way)
	}
	return flaws, in, nil
}

// savepointFlaws looks for damage among the savepoints of a root, or of all when root is "".
func savepointFlaws(store *savepoint.Store, root string) ([]flaw, error) {
	const remedy = "find out who may write there; then move it away, and keep it: \"spectrum snapshot restore\" and \"spectrum rollback --emergency\" do not need it"
	found, err := store.Survey(root)
	if err != nil {
		return nil, err
	}
	flaws := make([]flaw, 0, len(found.Damaged))
	for _, d := range found.Damaged {
		flaws = append(flaws, flaw{path: d.RunDir, what: d.Error(), remedy: remedy})
	}
	for _, sp := range slices.Concat(found.Standing, found.Retired) {
		if _, err := sp.Report(); err != nil {
			flaws = append(flaws, flaw{path: sp.RunDir(), what: err.Error(), remedy: "what was reported of the commit is not proven any more; it can be undone all the same"})
		}
	}
	return flaws, nil
}

// flawsOf looks for damage among all that is kept of a root. What cannot be looked at for a
// fault of the machine is an error.
func (a *app) flawsOf(ctx context.Context, state *statedir.Dir, root string) ([]flaw, error) {
	snapshots, err := a.openSnapshots(state)
	if err != nil {
		return nil, err
	}
	defer snapshots.Close()
	savepoints, err := openSavepoints(state)
	if err != nil {
		return nil, err
	}
	defer savepoints.Close()
	all, in, err := snapshotFlaws(ctx, state, snapshots, root, snapshot.Budget{Manifests: glance, Contents: glance})
	if err != nil {
		return nil, err
	}
	more, err := savepointFlaws(savepoints, root)
	if err != nil {
		return nil, err
	}
	history, err := historyFlaws(ctx, state, root, in.Signed)
	var damage *audit.DamageError
	if errors.As(err, &damage) {
		history, err = []flaw{{path: filepath.Join(state.Path(), "audit.log"), what: err.Error(), remedy: "\"spectrum audit verify\" says more; every way back works all the same, and is logged behind it"}}, nil
	}
	return slices.Concat(all, more, history), err
}

// tellFlaws names what is damaged, and each way out.
func (a *app) tellFlaws(flaws []flaw) {
	for _, f := range flaws {
		at := ""
		if !strings.Contains(f.what, filepath.Base(f.path)) {
			at = fmt.Sprintf("%q: ", f.path)
		}
		a.tell("spectrum: damaged: %s%s", at, oneLine(f.what))
		a.tell("hint: %s", oneLine(a.truly(f.remedy)))
	}
}

// tellBeside names what is damaged among the records of a root that was taken back, and that
// was passed over.
func (a *app) tellBeside(in *action.Root, snapshots bool) {
	if found, err := in.Savepoints().Survey(in.Path()); err == nil {
		for _, d := range found.Damaged {
			a.tell("spectrum: passed over: %s", oneLine(d.Error()))
		}
	}
	if !snapshots {
		return
	}
	if _, damaged, err := in.Snapshots().Survey(in.Path()); err == nil {
		for _, d := range damaged {
			a.tell("spectrum: passed over: %s", oneLine(d.Error()))
		}
	}
}

// keptChecks are what the doctor says of the snapshots and savepoints, as far as there are
// any: it makes no store.
func keptChecks(ctx context.Context, state *statedir.Dir) []diagnosis {
	var checks []diagnosis
	var signed []snapshot.Header
	look := func(id, name, consequence string, look func() ([]flaw, string, error)) {
		path := filepath.Join(state.Path(), name)
		if _, err := state.Root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			checks = append(checks, fine(id, path, "there are none yet"))
			return
		}
		flaws, found, err := look()
		if err != nil {
			checks = append(checks, fine(id, path, "%v", err).but(isFail, "whether they are whole is not known", "look into who may write "+shellQuote(state.Path())))
			return
		}
		if len(flaws) == 0 {
			checks = append(checks, fine(id, path, "%s", found))
		}
		for _, f := range flaws {
			checks = append(checks, fine(id, f.path, "%s", f.what).but(isFail, consequence, f.remedy))
		}
	}
	look("snapshots", "snapshots", "a snapshot that needs it cannot be restored; those that verify are ways back all the same", func() ([]flaw, string, error) {
		store, err := snapshotsIn(state)
		if err != nil {
			return nil, "", err
		}
		defer store.Close()
		flaws, in, err := snapshotFlaws(ctx, state, store, "", snapshot.Budget{Manifests: glance, Contents: glance})
		signed = in.Signed
		found := "all that they need is there"
		if in.Unread > 0 {
			found = fmt.Sprintf("all that was read is whole; %s of them were not read: \"spectrum snapshot verify ID\" reads all of one", bytesText(in.Unread))
		}
		return flaws, found, err
	})
	look("savepoints", "savepoints", "the commit cannot be undone by itself, and what was restored is not proven", func() ([]flaw, string, error) {
		store, err := openSavepoints(state)
		if err != nil {
			return nil, "", err
		}
		defer store.Close()
		flaws, err := savepointFlaws(store, "")
		return flaws, "each is as it was signed", err
	})
	look("history", ".", "what was done before is not proven any more; a snapshot that verifies is a way back all the same", func() ([]flaw, string, error) {
		flaws, err := historyFlaws(ctx, state, "", signed)
		var damage *audit.DamageError
		if errors.As(err, &damage) { // which is a check of its own
			return nil, "not compared with the audit log, which is damaged", nil
		}
		return flaws, "log, savepoints, marks of rollbacks and snapshots bear each other out", err
	})
	return checks
}
