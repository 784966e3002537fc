package staging

import (
	"context"
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// finalize is step 5: each top is moved to its place, never over anything, and
// then the directories it moved into become durable.
func (a *attempt) finalize(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return fail(StepStage, a.stageName(), err)
	}
	a.progress(PhaseFinalize, 0)
	from, to := cache{base: a.stage}, cache{base: a.root}
	defer from.close()
	defer to.close()
	for i := range a.plan.tops {
		t := &a.plan.tops[i]
		err := a.unchanged(i, &to)
		if err == nil {
			err = t.move(&from, &to)
		}
		if err != nil {
			return fail(StepFinalize, t.path.String(), err)
		}
	}
	return fail(StepFinalize, "", a.syncMoves())
}

// unchanged wants the directory that top i moves into to give to what is made in it
// what it gave when that was staged. Of several tops in a row it is asked once.
func (a *attempt) unchanged(i int, to *cache) error {
	up := parent(a.plan.tops[i].path)
	if up == (pathsafe.Path{}) || i > 0 && up == parent(a.plan.tops[i-1].path) {
		return nil
	}
	in, err := to.open(up)
	if err != nil {
		return err
	}
	now, err := in.access()
	if err != nil {
		return err
	}
	d, ok := a.plan.find(up)
	if ok && !now.Value().Bequeaths(a.plan.dirs[d].mark.access.Value()) {
		return fmt.Errorf("the directory that it goes to: %w", errAccess)
	}
	return nil
}

// syncMoves makes the moves durable: first the directories that were left, then
// those that were entered. The other way round btrfs may come back from a power
// cut with a file under both names.
func (a *attempt) syncMoves() error {
	return syncDirs(a.touched(), a.stage, a.root)
}

func (t *top) move(from, to *cache) error {
	source, err := from.open(parent(t.path))
	if err != nil {
		return err
	}
	target, err := to.open(parent(t.path))
	if err != nil {
		return err
	}
	t.tried = true
	return source.rename(t.path.Base(), target, t.path.Base())
}

// touched returns the directories that were there before and got something new.
func (a *attempt) touched() []pathsafe.Path {
	var dirs []pathsafe.Path
	for _, t := range a.plan.tops {
		if up := parent(t.path); t.tried && (len(dirs) == 0 || up != dirs[len(dirs)-1]) {
			dirs = append(dirs, up)
		}
	}
	return dirs
}
