package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// keptChecks are what the doctor says of the snapshots and savepoints, as far as there are
// any: it makes no store.
func keptChecks(ctx context.Context, state *statedir.Dir) []Check {
	var checks []Check
	var signed []snapshot.Header
	look := func(id, name, consequence string, look func() ([]kept.Flaw, string, error)) {
		path := filepath.Join(state.Path(), name)
		if _, err := state.Root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			checks = append(checks, fine(id, path, "there are none yet"))
			return
		}
		flaws, found, err := look()
		if err != nil {
			checks = append(checks, fine(id, path, "%v", err).but(Fail, "whether they are whole is not known", cmp.Or(kept.Mend(state.Path(), err), "look into who may write "+words.Shell(state.Path()))))
			return
		}
		if len(flaws) == 0 {
			checks = append(checks, fine(id, path, "%s", found))
		}
		for _, f := range kept.Fold(flaws) {
			checks = append(checks, fine(id, f.Path, "%s", f.What).but(Fail, consequence, f.Steps()))
		}
	}
	look("snapshots", "snapshots", "a snapshot that needs it cannot be restored; those that verify are ways back all the same", func() ([]kept.Flaw, string, error) {
		store, err := kept.Snapshots(state)
		if err != nil {
			return nil, "", err
		}
		defer store.Close()
		flaws, in, err := kept.SnapshotFlaws(ctx, state, store, "", snapshot.Budget{Manifests: kept.Glance, Contents: kept.Glance})
		signed = in.Signed
		found := "all that they need is there"
		if in.Unread > 0 {
			found = fmt.Sprintf("all that was read is whole; %s of them were not read: \"spectrum snapshot verify ID\" reads all of one", words.Bytes(in.Unread))
		}
		return flaws, found, err
	})
	look("savepoints", "savepoints", "the commit cannot be undone by itself, and what was restored is not proven", func() ([]kept.Flaw, string, error) {
		store, err := kept.Savepoints(state)
		if err != nil {
			return nil, "", err
		}
		defer store.Close()
		flaws, err := kept.SavepointFlaws(state, store, "")
		return flaws, "each is as it was signed", err
	})
	look("history", ".", "what was done before is not proven any more; a snapshot that verifies is a way back all the same", func() ([]kept.Flaw, string, error) {
		flaws, err := kept.HistoryFlaws(ctx, state, "", signed)
		var damage *audit.DamageError
		if errors.As(err, &damage) { // which is a check of its own
			return nil, "not compared with the audit log, which is damaged", nil
		}
		return flaws, "log, savepoints, marks of rollbacks and snapshots bear each other out", err
	})
	look("roots", ".", "a root that was moved meanwhile is known by what its snapshots say of it, and one that cannot be told so by its path alone", func() ([]kept.Flaw, string, error) {
		flaws, err := kept.RootFlaws(state)
		return flaws, "the record of where restore roots are has each that there is history of", err
	})
	return checks
}
