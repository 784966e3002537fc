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
type flaw struct{ path, what, remedy string }

func (f *flaw) fields() map[string]any {
	return map[string]any{"path": jsonText(f.path), "remedy": jsonText(f.remedy), "why": jsonText(f.what)}
}

// glance is how many bytes of contents, and of manifests, recover and the doctor read at
// most, the newest first: they are to be quick. "spectrum snapshot verify" reads all.
const glance = 256 << 20

// snapshotFlaws looks for damage among the snapshots of a root, or of all when root is "", and
// returns how many bytes it did not read too.
func snapshotFlaws(ctx context.Context, state *statedir.Dir, store *snapshot.Store, root string) (flaws []flaw, unread int64, err error) {
	found, unread, err := store.Inspect(ctx, root, snapshot.Budget{Manifests: glance, Contents: glance})
	if err != nil {
		return nil, 0, err
	}
	for _, f := range found {
		way := flaw{path: filepath.Join(state.Path(), "snapshots", f.Damage.Path), what: f.Damage.Error()}
		switch {
		case len(f.Damage.Names) > 0:
			way.remedy = fmt.Sprintf("\"spectrum snapshot verify --repair %s\" brings it again if it still stands in the restore root; other snapshots are ways back all the same", f.Header.ID[:shortest])
		default:
			way.remedy = "find out who may write there; then move it away: other snapshots are ways back all the same, and \"spectrum snapshot prune\" refuses to work beside it"
		}
		flaws = append(flaws, way)
	}
	return flaws, unread, nil
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
		flaws = append(flaws, flaw{d.RunDir, d.Error(), remedy})
	}
	for _, sp := range slices.Concat(found.Standing, found.Retired) {
		if _, err := sp.Report(); err != nil {
			flaws = append(flaws, flaw{sp.RunDir(), err.Error(), "what was reported of the commit is not proven any more; it can be undone all the same"})
		}
	}
	return flaws, nil
}

// lostFlaws are the snapshots that the audit log knows of a root, or of all when root is "",
// and that are neither there nor pruned. The error is an [*audit.DamageError] for a log that
// cannot tell.
func lostFlaws(state *statedir.Dir, log *audit.Log, store *snapshot.Store, root string) ([]flaw, error) {
	var order []string
	roots := map[string]string{}
	_, err := log.Read(func(e audit.Entry) error {
		switch e.Kind { //nolint:exhaustive // others take no snapshot and remove none
		case audit.SnapshotTaken, audit.CommitBegin, audit.RollbackBegin:
			if _, known := roots[e.Snapshot]; !known && e.Snapshot != "" && (root == "" || e.Root == root) {
				roots[e.Snapshot], order = e.Root, append(order, e.Snapshot)
			}
		case audit.SnapshotPruned:
			delete(roots, e.Snapshot)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, nil
	}
	there, damaged, err := store.Survey(root)
	if err != nil {
		return nil, err
	}
	for _, h := range there {
		delete(roots, h.ID)
	}
	var flaws []flaw
	for _, id := range order {
		of, lost := roots[id]
		named := slices.ContainsFunc(damaged, func(d *snapshot.DamageError) bool { return strings.HasSuffix(d.Path, id) })
		if lost && !named {
			flaws = append(flaws, flaw{filepath.Join(state.Path(), "snapshots"), fmt.Sprintf("snapshot %s of %q is in the audit log, and is gone", id, of),
				"a commit that it was taken before cannot be undone by itself; \"spectrum snapshot list\" lists the ways back that there are"})
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
	log, err := openLog(state)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	all, _, err := snapshotFlaws(ctx, state, snapshots, root)
	if err != nil {
		return nil, err
	}
	more, err := savepointFlaws(savepoints, root)
	if err != nil {
		return nil, err
	}
	lost, err := lostFlaws(state, log, snapshots, root)
	var damage *audit.DamageError
	if errors.As(err, &damage) {
		lost, err = []flaw{{filepath.Join(state.Path(), "audit.log"), err.Error(), "\"spectrum audit verify\" says more; every way back works all the same, and is logged behind it"}}, nil
	}
	return slices.Concat(all, more, lost), err
}

// tellFlaws names what is damaged, and each way out.
func (a *app) tellFlaws(flaws []flaw) {
	for _, f := range flaws {
		a.tell("spectrum: damaged: %s", oneLine(f.what))
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
		flaws, unread, err := snapshotFlaws(ctx, state, store, "")
		if log, failed := openLog(state); err == nil && failed == nil {
			defer log.Close()
			lost, failed := lostFlaws(state, log, store, "")
			var damage *audit.DamageError
			if !errors.As(failed, &damage) { // which is a check of its own
				flaws, err = append(flaws, lost...), failed
			}
		}
		found := "all that they need is there"
		if unread > 0 {
			found = fmt.Sprintf("all that was read is whole; %s of them were not read: \"spectrum snapshot verify ID\" reads all of one", bytesText(unread))
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
	return checks
}
