package records_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A fixture is a state directory with one snapshot of a root, which the log does not have yet.
type fixture struct {
	t     *testing.T
	state *statedir.Dir
	root  string
	taken snapshot.Header
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	state, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	must(t, err)
	t.Cleanup(func() { state.Close() })
	key, err := bundle.GenerateKey()
	must(t, err)
	must(t, key.Save(state.HostKey()))
	place, err := state.Snapshots()
	must(t, err)
	store, err := snapshot.In(state.Root(), place)
	must(t, err)
	defer store.Close()
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	root, err := pathsafe.OpenRoot(path)
	must(t, err)
	defer root.Close()
	taken, err := store.Take(t.Context(), snapshot.Request{Root: path, Dir: root, Kind: snapshot.Manual, Key: func() (bundle.Key, error) { return key, nil }})
	must(t, err)
	return &fixture{t, state, path, taken.Header()}
}

const action = "5d0c2c5e-6f4c-4f0e-9d7b-2a4f7a0b1c2d"

func (f *fixture) log(events ...audit.Event) error {
	file, err := f.state.AuditLog()
	if err != nil {
		return err
	}
	log := audit.New(file)
	defer log.Close()
	for _, e := range events {
		if err := log.Append(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) logTaken() error {
	return f.log(audit.Event{Kind: audit.SnapshotTaken, Action: action, Root: f.root, Snapshot: f.taken.ID})
}

// wants requires flaws of these kinds, in their order.
func (f *fixture) wants(kinds ...records.Kind) []records.Flaw {
	f.t.Helper()
	flaws, err := records.Flaws(f.t.Context(), f.state, "", []snapshot.Header{f.taken})
	must(f.t, err)
	same := len(flaws) == len(kinds)
	for i := range flaws {
		same = same && flaws[i].Kind == kinds[i]
	}
	if !same {
		f.t.Fatalf("flaws %+v, want kinds %v", flaws, kinds)
	}
	return flaws
}

// TestSnapshotAboutToBeLogged: a command publishes its snapshot, and then logs it, which takes
// as long as the disk does. Meanwhile nothing is said to be missing; if it never comes, it is.
func TestSnapshotAboutToBeLogged(t *testing.T) {
	for name, comes := range map[string]bool{"it comes": true, "it never comes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			logged := make(chan error, 1)
			if !comes {
				logged <- nil
				f.wants(records.SnapshotUnlogged)
				return
			}
			go func() {
				time.Sleep(time.Second)
				logged <- f.logTaken()
			}()
			f.wants()
			must(t, <-logged)
		})
	}
}

// TestSnapshotGone: a snapshot that the log has, and that was not pruned, is a loss.
func TestSnapshotGone(t *testing.T) {
	f := newFixture(t)
	must(t, f.logTaken())
	f.wants()
	found, err := filepath.Glob(filepath.Join(f.state.Path(), "snapshots/roots/*/*"))
	must(t, err)
	for _, manifest := range found {
		must(t, os.Remove(manifest))
	}
	flaws, err := records.Flaws(t.Context(), f.state, f.root, nil)
	must(t, err)
	if len(flaws) != 1 || flaws[0].Kind != records.SnapshotGone || flaws[0].Lost[0] != f.taken.ID || flaws[0].HasOthers {
		t.Errorf("%+v", flaws)
	}
	if records.Acceptances(f.state)(f.taken.ID) {
		t.Error("its loss is accepted, and no person has done that")
	}
}

// TestMakeMarks: the mark of a rollback that the log has is made again, and once.
func TestMakeMarks(t *testing.T) {
	f := newFixture(t)
	must(t, f.logTaken())
	must(t, f.log(
		audit.Event{Kind: audit.RollbackBegin, Action: action, Root: f.root, Rollback: audit.Session},
		audit.Event{Kind: audit.RolledBack, Action: action, Root: f.root, Rollback: audit.Session, Snapshot: f.taken.ID},
	))
	if flaw := f.wants(records.RootMarkGone)[0]; flaw.Root != f.root {
		t.Errorf("the mark of %q", flaw.Root)
	}
	for _, want := range []int{1, 0} {
		if missing, err := records.MakeMarks(f.state, f.root); err != nil || missing != want {
			t.Errorf("%d were missing, want %d; %v", missing, want, err)
		}
	}
	f.wants()
}

// TestSigner: records are signed by the key of this host, if it can be read.
func TestSigner(t *testing.T) {
	f := newFixture(t)
	must(t, f.logTaken())
	must(t, os.WriteFile(f.state.HostKey(), nil, 0o600))
	f.wants(records.KeyUnusable)
	must(t, os.Remove(f.state.HostKey()))
	if flaw := f.wants(records.OtherSigner)[0]; flaw.Snapshots != 1 || flaw.Savepoints != 0 || flaw.Host != "" || flaw.Lost[0] != f.taken.ID {
		t.Errorf("%+v", flaw)
	}
}

// TestReadNothing: parts that are missing are empty, and are not created.
func TestReadNothing(t *testing.T) {
	state, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	must(t, err)
	defer state.Close()
	r, err := records.Read(state, "")
	must(t, err)
	if m := r.Misfits(); r.Standing()+r.Accepted()+len(r.DamagedSavepoints())+len(m.Unkept)+len(m.PutBack) != 0 || r.Head().Sequence != 0 {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"audit.log", "savepoints", "snapshots"} {
		if _, err := os.Lstat(filepath.Join(state.Path(), name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
