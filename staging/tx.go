package staging

import (
	"context"
	"errors"
	"strconv"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Tx is one change to a root: all of it, or nothing. Its steps are called in the order in
// which they are declared here, each once; the caller writes its own records between them.
//
//	tx, err := root.Plan(change) // writes nothing
//	defer tx.Abort(&err)         // does nothing after Commit
//	err = tx.Begin()             // INTENT
//	err = tx.Stage(ctx, fill)    // PREPARED
//	err = tx.Move(ctx)
//	err = tx.Commit()            // COMMITTED
//	err = tx.Close()
type Tx struct {
	a         *attempt
	step      Step // that an error of the caller counts for
	begun     bool // something may have been written
	committed bool
}

// Plan compares a change with the existing entries of the root, and writes nothing. The error
// is an [*Error]. Every unfinished attempt must have been resolved before.
func (r *Root) Plan(c Change) (*Tx, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	a := &attempt{
		s: r.s, key: r.key, id: c.Attempt, kind: c.Kind, root: r.dir, lock: r.lock, known: true,
		manifest: c.Manifest, dirPerm: c.dirPerm, report: c.Progress, workers: c.Workers,
	}
	if a.id == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return nil, fail(StepBegin, "", err)
		}
		a.id = id.String()
	}
	a.stageName = resetPrefix + a.id
	if a.isCommit() {
		a.stageName = stagePrefix + a.id
	}
	if err := a.planAll(&c); err != nil {
		return nil, err
	}
	return &Tx{a: a, step: StepBegin}, nil
}

// PlanLocked is Plan under the lock of the root, which it takes if Plan finds no conflict.
func (r *Root) PlanLocked(ctx context.Context, c Change) (*Tx, error) {
	if r.lock.f == nil {
		if _, err := r.Plan(c); err != nil {
			return nil, err
		}
		if err := r.Hold(ctx); err != nil {
			return nil, fail(StepBegin, "", err)
		}
	}
	return r.Plan(c)
}

// planAll makes the swaps of a change, and checks all names.
func (a *attempt) planAll(c *Change) *Error {
	if c.Manifest != nil {
		path, err := pathsafe.Parse(manifestPrefix + a.id + ".json")
		if err != nil {
			return fail(StepBegin, "", err)
		}
		a.swaps = append(a.swaps, swapping{path: path, since: phaseIntent, name: manifestStaged, hasNew: true})
	}
	for i, s := range c.Swaps {
		_, tree := s.New.(Tree)
		if a.isCommit() || s.Old == nil && !tree {
			continue
		}
		a.swaps = append(a.swaps, swapping{
			path: s.Path, since: phasePrepared, name: strconv.Itoa(i), live: s.Old, hasOld: s.Old != nil, hasNew: tree, tree: tree, empty: s.Empty, unsure: s.Unsure, last: s.Last,
		})
	}
	a.findCovered()
	if err := a.planFiles(c); err != nil {
		return err
	}
	return a.look(c)
}

// findCovered notes which swaps are beneath the path of another one: these cannot be seen when
// all is done.
func (a *attempt) findCovered() {
	all, above := map[pathsafe.Path]bool{}, map[pathsafe.Path]bool{}
	for i := range a.swaps {
		if !a.swaps[i].numbered() {
			continue
		}
		all[a.swaps[i].path] = true
		for up, ok := a.swaps[i].path.Parent(); ok && !above[up]; up, ok = up.Parent() {
			above[up] = true
		}
	}
	for i := range a.swaps {
		if s := &a.swaps[i]; s.numbered() {
			s.covered, s.covers = beneath(all, s.path), above[s.path] && !a.revived
		}
	}
}

// Attempt returns the UUID of the attempt.
func (tx *Tx) Attempt() string { return tx.a.id }

// Staging returns the name of the staging directory in the root.
func (tx *Tx) Staging() string { return tx.a.stageName }

// Begin takes the lock, unless [Root.Hold] did, and writes INTENT: all names, with their old
// and new entries. From here on a crash leaves an [Unfinished] attempt.
func (tx *Tx) Begin() error {
	a := tx.a
	if err := a.lock.take(context.Background(), true); err != nil {
		return fail(StepBegin, "", err)
	}
	a.pin()
	a.lock.writes()
	tx.begun, tx.step = true, StepStage
	if err := a.open(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	return nil
}

// Stage makes the new entries, reads the files back and checks them, makes everything durable
// and writes PREPARED. Fill makes, in the empty directory dir, the entry of each swap with a
// [Tree] under the number of the swap, and nothing else; it may be nil if there is none.
func (tx *Tx) Stage(ctx context.Context, fill func(ctx context.Context, dir *pathsafe.Dir) error) error {
	a := tx.a
	return a.run(
		a.openPlan,
		func() *Error { return a.stageFiles(ctx) },
		func() *Error { return a.makeTrees(ctx, fill) },
		func() *Error { return a.persist(ctx) },
	)
}

// Move moves every new entry but the artifacts to its name, durably, looks each up again and
// checks it. Displaced entries wait in staging until Close. A cancelled ctx stops it before the
// first move, and is ignored after that.
func (tx *Tx) Move(ctx context.Context) error {
	a := tx.a
	if err := ctx.Err(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	tx.step = StepVerify
	a.progress(PhaseFinalize, 0)
	return a.run(
		a.openDirs,
		a.leaveFirst,
		a.moveTops,
		a.swapAll,
		a.setDirs,
		func() *Error { return a.verify(ctx) },
		a.check,
	)
}

// Commit makes the artifacts, writes COMMITTED and moves the artifacts to their names, in
// order. When it returns nil, everything is in place, durable and final. If it fails, Abort
// first takes the record back; if that fails, nothing else is undone, and the attempt is left
// to [Unfinished.Resolve].
func (tx *Tx) Commit() error {
	a := tx.a
	tx.step = StepPublish
	a.progress(PhasePublish, 0)
	err := a.run(
		a.makeArtifacts,
		func() *Error { return fail(StepPublish, a.stageName, a.enterCommitted()) },
		a.place,
		a.placeLast,
	)
	tx.committed = err == nil
	return err
}

// Close removes the displaced entries, the staging directory and the journal. The change is
// complete even if Close fails; the next session that resolves the attempt removes the rest.
func (tx *Tx) Close() error {
	if !tx.committed {
		return errors.New("internal error: closed before it was committed")
	}
	return tx.a.cleanUp()
}

// Abort undoes everything unless it was committed, and closes all handles. It is deferred,
// with the result of the function: an error of the caller becomes an [*Error], whose Rollback
// is nil if everything is as it was before. In a panic, without an error, the attempt is left
// to [Unfinished.Resolve], as after a kill.
func (tx *Tx) Abort(err *error) {
	defer tx.a.close()
	if tx.committed || *err == nil {
		return
	}
	var failed *Error
	if !errors.As(*err, &failed) {
		failed = &Error{Step: tx.step, Err: *err}
		*err = failed
	}
	if tx.begun {
		tx.a.dropCopies() // else they would count as files that a process has open for writing
		failed.Rollback, failed.Attempt, failed.Staging = tx.a.undo(), tx.a.id, tx.a.stageName
		failed.Kept = tx.a.kept
	}
}

// run runs steps until one fails.
func (a *attempt) run(steps ...func() *Error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
