package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// enter enters a restore root with all that the state directory keeps of it.
func (a *app) enter(ctx context.Context, state *statedir.Dir, root string, e action.Entry) (*action.Root, []staging.Outcome, error) {
	var err error
	if e.Key, err = state.JournalKey(); err != nil {
		return nil, nil, refusedHint(fmt.Errorf("journal key: %w", err), journalKeyHint(state))
	}
	if e.Savepoints, err = statecheck.Savepoints(state); err != nil {
		return nil, nil, err
	}
	if e.Snapshots, err = a.openSnapshots(state); err != nil {
		_ = e.Savepoints.Close()
		return nil, nil, err
	}
	if e.DryRun {
		if f, err := state.ReadAuditLog(); err == nil { // else it would be made where it is missing
			e.Log = audit.New(f)
		}
	} else if e.Log, err = a.openLogOf(state); err != nil {
		_ = errors.Join(e.Savepoints.Close(), e.Snapshots.Close())
		return nil, nil, err
	}
	e.Halts, e.Bars, e.Authority, e.State = state, state, authority{a, state}, state.Root()
	e.Leftover = func(name string, err error) {
		a.tell("spectrum: this is complete, but %q could not be removed; the next command removes it: %s", name, oneLine(err.Error()))
	}
	e.BarStays = func(err error) {
		a.tell("spectrum: this is complete, but the root stays halted for preview, commit and prune: %s", oneLine(err.Error()))
		if stays, is := errors.AsType[*statedir.BarError](err); is {
			a.tell("hint: %s", statecheck.BarRemedy(stays))
		}
	}
	e.Host = func() (action.Host, error) {
		key, err := a.hostKey(state)
		return action.Host{Key: key, BuildID: buildID()}, err
	}
	e.Took = func(s *snapshot.Snapshot) {
		a.hasDone("snapshot %s was taken", s.ID()[:shortest])
		if _, err := a.hostKey(state); err != nil {
			a.tell("spectrum: the host's key cannot be used, so snapshot %s is signed by a key of its own: %s", s.ID()[:shortest], oneLine(err.Error()))
		}
	}
	e.Known = func(real, id string, dir pathsafe.Stat) (string, error) {
		return a.knowRoot(state, real, id, e.DryRun, statedir.EvidenceOf(id, dir, e.Snapshots))
	}
	e.Overlapping = func(name, real string, dir *pathsafe.Dir) []action.RootRef {
		return action.OverlappingRoots(knownRoots(state), name, real, dir)
	}
	in, ended, err := action.Enter(ctx, root, e)
	a.hasEnded(ended)
	if err != nil {
		return nil, ended, haltedIn(state, root, savepointError(err))
	}
	if err := apart(state.Path(), in.Real()); err != nil { // of what was opened, whatever the path was before
		in.Leave()
		return nil, ended, err
	}
	a.tellNested(state, in.Real())
	return in, ended, nil
}

// openLogOf opens the audit log. If the log of a used state directory is missing, it is named, and
// a new one begins.
func (a *app) openLogOf(state *statedir.Dir) (*audit.Log, error) {
	f, err := state.ReadAuditLog()
	if err == nil {
		_ = f.Close()
	}
	if paths, _ := state.RootPaths(); errors.Is(err, fs.ErrNotExist) && len(paths) > 0 {
		a.tell("spectrum: the audit log %q is gone, and a new one begins; \"spectrum audit verify\" shows what it lacks", filepath.Join(state.Path(), "audit.log"))
	}
	return openLog(state)
}

// tellNested names the other restore roots that a root is in, or that are in it: what is done
// in one of them changes the other, and each has a history of its own.
func (a *app) tellNested(state *statedir.Dir, root string) {
	paths, _ := state.RootPaths() // what cannot be read is not known
	for _, other := range paths {
		switch {
		case root == other:
		case pathsafe.IsWithin(root, other):
			a.tell("spectrum: this restore root is inside another one, %s: what is restored there replaces what is here", shellQuote(other))
		case pathsafe.IsWithin(other, root):
			a.tell("spectrum: another restore root is inside this one, %s: what is restored here replaces what is there", shellQuote(other))
		}
	}
}

// authority is what is reset by an action in a root (rollback contract, section
// 7.2).
type authority struct {
	app   *app
	state *statedir.Dir
}

// Attempt is [action.Authority]: previews are void.
func (r authority) Attempt(root string) error {
	err := r.state.Attempt(root)
	if err == nil {
		r.app.hasDone("previews of %q that were made before are void", root)
	}
	return err
}

// RolledBack is [action.Authority]: it detaches the views of what was rolled back. A view that
// cannot be detached is reported.
func (r authority) RolledBack(root string, bundleRoots []string) error {
	path, err := r.state.RootPath(root)
	if err != nil {
		return err
	}
	views := view.Revoke(context.Background(), r.state, view.RolledBack{Root: root, Path: path, BundleRoots: bundleRoots})
	r.app.tellRevoked(&views)
	r.app.detached = append(r.app.detached, views.Detached...)
	r.app.foreign = views.Foreign
	return views.Err
}

// enterKnown enters the restore root that a record is of, where it is now.
func (a *app) enterKnown(ctx context.Context, state *statedir.Dir, name string, e action.Entry) (*action.Root, error) {
	path, err := state.RootPath(name)
	if err != nil {
		return nil, err
	}
	return a.enterRoot(ctx, rootName{state, path, true}, e)
}

// enterNamed enters the restore root that is an argument of the command.
func (a *app) enterNamed(ctx context.Context, state *statedir.Dir, root string, e action.Entry) (*action.Root, error) {
	return a.enterRoot(ctx, rootName{state, root, false}, e)
}

func (a *app) enterRoot(ctx context.Context, root rootName, e action.Entry) (*action.Root, error) {
	in, ended, err := a.enter(ctx, root.state, root.path, e)
	a.tellEnded(root.path, ended)
	return in, hinted(err, root.hint(err))
}

// enterFor enters the restore root of a command that previews. If the root cannot be opened, the
// restore reports that, in the order of its law.
func (a *app) enterFor(ctx context.Context, state *statedir.Dir, root string, wait time.Duration) (*action.Root, error) {
	in, ended, err := a.enter(ctx, state, root, action.Entry{Wait: wait, Previewed: true})
	a.tellEnded(root, ended)
	if errors.Is(err, action.ErrNoRoot) {
		return action.NotEntered(err), nil
	}
	return in, err
}

// activeSavepoint is the last savepoint of a restore root, if there is one.
func activeSavepoint(state *statedir.Dir, root string) (preview.Savepoint, error) {
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return preview.Savepoint{}, err
	}
	defer store.Close()
	tip, ok, err := store.Tip(root)
	if err != nil || !ok {
		return preview.Savepoint{}, savepointError(err)
	}
	completed, _ := time.Parse(time.RFC3339Nano, tip.Said(preview.CandidateCompleted)) // what cannot be read is not known
	return preview.Savepoint{ID: tip.ID(), Completed: completed}, nil
}
