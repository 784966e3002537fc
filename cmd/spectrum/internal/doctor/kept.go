package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// keptChecks check the snapshots and savepoints, if there are any: they make no store.
func keptChecks(ctx context.Context, state *statedir.Dir) []Check {
	var checks []Check
	var signed []snapshot.Header
	look := func(id, name, consequence string, look func() ([]statecheck.Flaw, string, error)) {
		path := filepath.Join(state.Path(), name)
		if _, err := state.Root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			checks = append(checks, fine(id, path, "there are none yet"))
			return
		}
		flaws, found, err := look()
		if err != nil {
			checks = append(checks, fine(id, path, "%v", err).but(Fail, "it is unknown whether they are intact", cmp.Or(statecheck.Mend(state.Path(), err), "check which users can write "+words.Shell(state.Path()))))
			return
		}
		if len(flaws) == 0 {
			checks = append(checks, fine(id, path, "%s", found))
		}
		for _, f := range statecheck.Fold(flaws) {
			checks = append(checks, fine(id, f.Path, "%s", f.What).but(Fail, consequence, f.Steps()))
		}
	}
	look("snapshots", "snapshots", "a snapshot that needs it cannot be restored; snapshots that verify can", func() ([]statecheck.Flaw, string, error) {
		store, err := statecheck.Snapshots(state)
		if err != nil {
			return nil, "", err
		}
		defer store.Close()
		flaws, in, err := statecheck.SnapshotFlaws(ctx, state, store, "", snapshot.Budget{Manifests: statecheck.Glance, Contents: statecheck.Glance})
		signed = in.Signed
		found := "all requirements are met"
		if in.Unread > 0 {
			found = fmt.Sprintf("all that were read are intact; %s of them were not read: \"spectrum snapshot verify ID\" reads all of one", words.Bytes(in.Unread))
		}
		return flaws, found, err
	})
	look("savepoints", "savepoints", "the commit cannot be undone alone, and what it restored is not proven", func() ([]statecheck.Flaw, string, error) {
		store, err := statecheck.Savepoints(state)
		if err != nil {
			return nil, "", err
		}
		defer store.Close()
		flaws, err := statecheck.SavepointFlaws(state, store, "")
		return flaws, "each is as it was signed", err
	})
	look("history", ".", "earlier actions are no longer proven; a snapshot that verifies can still be restored", func() ([]statecheck.Flaw, string, error) {
		flaws, err := statecheck.HistoryFlaws(ctx, state, "", signed)
		var damage *audit.DamageError
		if errors.As(err, &damage) { // which is a check of its own
			return nil, "not compared with the audit log, which is damaged", nil
		}
		return flaws, "log, savepoints, rollback marks and snapshots agree", err
	})
	look("roots", ".", "a root that was moved is recognised by its snapshots; a root without snapshots by its path only", func() ([]statecheck.Flaw, string, error) {
		flaws, err := statecheck.RootFlaws(state)
		return flaws, "the record of restore roots has every root with a history", err
	})
	return checks
}
