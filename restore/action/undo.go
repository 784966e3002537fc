package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
)

// LaterError reports that commits were made after the one to be undone. They build on it, so
// they must be undone with it, or first.
type LaterError struct {
	Commit string   // the one to be undone
	Later  []string // the ids of those after it, the newest first
}

// Error names them in the order in which they have to go.
func (e *LaterError) Error() string {
	return fmt.Sprintf("commits that were made after %s build on it: %s", e.Commit, strings.Join(e.Later, ", "))
}

// ErrNoSnapshot reports that there is no snapshot from before a commit, so that the
// directories it has made are unknown.
var ErrNoSnapshot = errors.New("no snapshot from before it")

// Undone is the result of a rollback.
type Undone struct {
	Result
	Commits []savepoint.Savepoint // that were undone, the newest first
	Unread  []string              // ids of later commits whose savepoints cannot be read, the newest first: what they have created stays
	Files   int                   // of them that existed, and were removed
	Changed []string              // paths of those whose content was not the commit's any more
	Edits   []Edit                // between commits that are undone
}

// What has the commits to be undone, and the reason.
type What struct {
	Commit string // its id
	Later  bool   // the commits that were made after it, too
	Reason string
	inPart bool // a try has shown that some of it cannot be kept, or not be moved
}

// errInPart reports that an entry to be removed could not be read when the snapshot was taken,
// or not be moved.
var errInPart = errors.New("some of it cannot be removed")

// isInPart reports whether a try has ended with errInPart, and everything is as it was.
func isInPart(err error) bool {
	var failed *staging.Error
	return errors.Is(err, errInPart) && (!errors.As(err, &failed) || failed.Rollback == nil)
}

// Undo undoes a finished commit of an entered root, and with Later the commits made after it,
// newest first and all in one step. If the savepoint of a later commit cannot be read, what it
// has created is unknown and stays; the chain of savepoints still ends before it. Entries that
// this user may not read or move stay too: then the commits are undone in part, and stay in
// force.
func Undo(ctx context.Context, in *Root, what What) (*Undone, error) {
	tight, err := mayNotFit(in, nil)
	if err == nil && tight { // so that it is known before anything is written
		_, err = ForeseeUndo(ctx, in, what)
	}
	var done *Undone
	if err == nil {
		done, err = undisturbed(func() (*Undone, error) {
			u, err := undone(ctx, in, what, false)
			for try := 1; isInPart(err) && try <= 2; try++ {
				what.inPart = try == 2 // the first one may have been a fault that passes
				u, err = undone(ctx, in, what, false)
			}
			return u, err
		})
	}
	return done, in.Refused(audit.Session, []string{what.Commit}, err)
}

// ForeseeUndo returns what Undo would do, and writes nothing.
func ForeseeUndo(ctx context.Context, in *Root, what What) (*Undone, error) {
	return undone(ctx, in, what, true)
}

func undone(ctx context.Context, in *Root, what What, dry bool) (*Undone, error) {
	if err := in.mayChange(); err != nil {
		return nil, err
	}
	gone, unread, err := chosen(in, what.Commit, what.Later)
	if err != nil {
		return nil, err
	}
	p, err := planUndo(in, gone, unread)
	if err != nil {
		return nil, err
	}
	scope, err := p.scope()
	if err != nil {
		return nil, err
	}
	b := back{
		Type: audit.Session, Reason: what.Reason, Affected: slices.Concat(unread, attemptsOf(gone)),
		Scope: scope,
	}
	inPart := what.inPart || p.leavesCommitted()
	if inPart { // the same commits are logged as affected, and as standing again
		b.Brings, b.Stays, b.Reason = b.Affected, true, "in part: "+b.Reason
	}
	if err := in.copyUp(ctx, b, dry, func(*snapshot.Snapshot) ([]staging.Swap, error) { return p.swaps, nil }); err != nil {
		return nil, err
	}
	done, err := in.before(ctx, b, dry)
	if err != nil {
		return nil, err
	}
	u := &Undone{Result: Result{Done: done}, Commits: gone, Unread: unread}
	if err := p.check(done.Snapshot, u); err != nil {
		return nil, err
	}
	if u.InPart = inPart || p.leavesCommitted(); u.InPart && !inPart && !dry {
		return nil, errInPart // before that was recorded
	}
	swaps := slices.Concat(p.swaps, p.times(done.Snapshot))
	u.Files, u.Left, u.Edits = p.files, p.left, p.edits
	moved := func(stayed []staging.Stayed, left []Left) error {
		for i, s := range stayed {
			n := p.top.find("/" + left[i].Path)
			left[i].Committed = n != nil && (n.isFile() || n.made && errors.Is(s.Why, fs.ErrPermission))
			if left[i].Committed && !inPart {
				return errInPart
			}
		}
		return nil
	}
	err = in.goBack(ctx, &u.Result, b, work{
		kind: "rollback", swaps: swaps, target: p.comes, fill: p.fill(in.Snapshots(), swaps), moved: moved,
		check: func(ctx context.Context) error { return p.checkParts(ctx, in.Snapshots(), swaps) },
	}, dry)
	if err != nil {
		return nil, err
	}
	return u, nil
}

// planUndo plans how commits go, the newest first, beside later ones that cannot be read.
func planUndo(in *Root, gone []savepoint.Savepoint, unread []string) (*undoPlan, error) {
	p := newUndoPlan(in.Dir())
	for _, id := range unread {
		before, err := beforeCommit(in.Snapshots(), in.Path(), id)
		if err != nil && machine.IsFault(err) {
			return nil, err
		}
		p.unread = append(p.unread, unreadCommit{id, before})
	}
	for _, sp := range gone {
		if err := p.addCommit(in.Snapshots(), sp); err != nil {
			return nil, fmt.Errorf("commit %s: %w", sp.Attempt(), err)
		}
	}
	return p, p.survey()
}

// scope is what the snapshot before the undo has to hold: the names that are swapped and beneath no
// other one, or one of the files where none is left.
func (p *undoPlan) scope() (scope []pathsafe.Path, err error) {
	swapped := map[pathsafe.Path]bool{}
	for _, swap := range p.swaps {
		swapped[swap.Path] = true
	}
	for _, swap := range p.swaps {
		if !isBeneath(swapped, swap.Path) {
			scope = append(scope, swap.Path)
		}
	}
	if len(scope) == 0 {
		return p.someFile()
	}
	return scope, nil
}

// leavesCommitted reports whether something stays that a commit has made.
func (p *undoPlan) leavesCommitted() bool {
	return slices.ContainsFunc(p.left, func(l Left) bool { return l.Committed })
}

// chosen are the commits to undo, the newest first, and the ids of later ones whose savepoints
// cannot be read.
func chosen(in *Root, attempt string, later bool) (gone []savepoint.Savepoint, unread []string, err error) {
	all, err := in.Savepoints().Survey(in.Path())
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(all.Standing, func(sp savepoint.Savepoint) bool { return sp.Attempt() == attempt })
	if at < 0 {
		for _, d := range all.Damaged {
			if !d.Retired && d.Attempt == attempt {
				return nil, nil, &UnreadError{attempt, d}
			}
		}
		return nil, nil, fmt.Errorf("commit %s of %q: %w", attempt, in.Path(), errNoCommit)
	}
	gone = slices.Clone(all.Standing[at:])
	slices.Reverse(gone)
	for _, d := range slices.Backward(all.Damaged) {
		if !d.Retired && d.Sequence > all.Standing[at].Sequence() && !slices.Contains(attemptsOf(gone), d.Attempt) {
			unread = append(unread, d.Attempt)
		}
	}
	if len(gone) > 1 && !later {
		return nil, nil, &LaterError{attempt, attemptsOf(gone[:len(gone)-1])}
	}
	return gone, unread, nil
}

// An UnreadError is a commit that cannot be undone, since its savepoint, which lists what it
// has created, is damaged. Its snapshots can still be restored.
type UnreadError struct {
	Commit string
	Err    *savepoint.DamageError
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("cannot determine what commit %s created: %v", e.Commit, e.Err)
}

// Unwrap returns the damage.
func (e *UnreadError) Unwrap() error { return e.Err }

// errNoCommit reports that a commit is not in force in a root.
var errNoCommit = fmt.Errorf("it is not there: %w", fs.ErrNotExist)

func attemptsOf(all []savepoint.Savepoint) []string {
	ids := make([]string, len(all))
	for i, sp := range all {
		ids[i] = sp.Attempt()
	}
	return ids
}

// addCommit adds what a commit has created.
func (p *undoPlan) addCommit(store *snapshot.Store, sp savepoint.Savepoint) error {
	before, err := beforeCommit(store, sp.Root(), sp.Attempt())
	if err != nil {
		return err
	}
	p.befores = append(p.befores, before)
	created, err := createdBy(sp)
	if err != nil {
		return err
	}
	for _, e := range created {
		if err := p.add(e, before); err != nil {
			return err
		}
	}
	return p.addRemoved(created, before)
}

// createdBy are the files that a commit has created.
func createdBy(sp savepoint.Savepoint) ([]verify.Entry, error) {
	artifacts, err := sp.Hashes(resultArtifacts)
	if err != nil {
		return nil, err
	}
	return slices.AppendSeq(artifacts, sp.Listing().Entries()), nil
}

// beforeCommit returns the snapshot that was taken before a commit.
func beforeCommit(store *snapshot.Store, root, attempt string) (*snapshot.Snapshot, error) {
	all, damaged, err := store.Survey(root)
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.IsBefore(attempt) {
			return store.Find(h.ID)
		}
	}
	if len(damaged) > 0 {
		return nil, fmt.Errorf("%w that can be read: %w", ErrNoSnapshot, damaged[0])
	}
	return nil, ErrNoSnapshot
}

// someFile is the path of one file that was created.
func (p *undoPlan) someFile() ([]pathsafe.Path, error) {
	n := &p.top
	for !n.isFile() && len(n.children) > 0 {
		n = n.sorted()[0]
	}
	at, err := pathsafe.Parse(n.path)
	return []pathsafe.Path{at}, err
}
