package statecheck

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestSnapshotAboutToBeLogged: a command publishes its snapshot, and then logs it, which takes
// as long as the disk does. Meanwhile nothing is said to be missing; if it never comes, it is.
func TestSnapshotAboutToBeLogged(t *testing.T) {
	for name, comes := range map[string]bool{"it comes": true, "it never comes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
			must(t, err)
			defer state.Close()
			store, err := Snapshots(state)
			must(t, err)
			defer store.Close()
			key, err := bundle.GenerateKey()
			must(t, err)
			must(t, key.Save(state.HostKey()))
			path := t.TempDir()
			must(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
			root, err := pathsafe.OpenRoot(path)
			must(t, err)
			defer root.Close()
			taken, err := store.Take(t.Context(), snapshot.Request{Root: path, Dir: root, Kind: snapshot.Manual, Key: func() (bundle.Key, error) { return key, nil }})
			must(t, err)

			logged := make(chan error, 1)
			if comes {
				go func() {
					time.Sleep(time.Second)
					f, err := state.AuditLog()
					if err == nil {
						log := audit.New(f)
						err = log.Append(audit.Event{Kind: audit.SnapshotTaken, Action: "5d0c2c5e-6f4c-4f0e-9d7b-2a4f7a0b1c2d", Root: path, Snapshot: taken.ID()})
						_ = log.Close()
					}
					logged <- err
				}()
			} else {
				logged <- nil
			}
			flaws, err := HistoryFlaws(t.Context(), state, "", []snapshot.Header{taken.Header()})
			must(t, err)
			must(t, <-logged)
			if want := map[bool]int{true: 0, false: 1}[comes]; len(flaws) != want {
				t.Errorf("%d flaws, want %d: %+v", len(flaws), want, flaws)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
