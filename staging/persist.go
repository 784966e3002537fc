package staging

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// few is the largest number of entries that are synced one by one. For more, one syncfs is
// much faster, though it also waits for unrelated data.
const few = 16

func (a *attempt) fewEntries() bool { return len(a.plan.files)+len(a.plan.dirs) <= few }

// persist is the end of Stage: everything below staging becomes durable, files and the
// directories that name them, and the journal gets PREPARED.
func (a *attempt) persist(ctx context.Context) *Error {
	a.progress(PhaseSync, 0)
	if err := ctx.Err(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	if err := a.syncStaged(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	for i := range a.swaps {
		if s := &a.swaps[i]; s.tree {
			st, err := a.news.stat(s.name)
			if err == nil {
				s.fresh, s.made = identityOf(st), &st
				s.print, err = fingerprint(a.news, s.name)
			}
			if err != nil {
				return fail(StepStage, s.path.String(), err)
			}
		}
	}
	return fail(StepStage, a.stageName, a.enterPrepared())
}

func (a *attempt) syncStaged() error {
	switch {
	case a.trees() > 0 || !a.fewEntries():
		return a.root.syncFS()
	case !a.isCommit(): // nothing was made
		return nil
	}
	dirs := make([]pathsafe.Path, 0, len(a.plan.dirs))
	for i := range a.plan.dirs {
		dirs = append(dirs, a.plan.dirs[i].path)
	}
	for _, d := range []dir{a.olds, a.hold} {
		if d.h == nil {
			continue
		}
		if err := d.sync(); err != nil {
			return err
		}
	}
	if err := syncDirs(dirs, a.news); err != nil {
		return err
	}
	return a.stage.sync()
}

// syncDirs makes the names in the directories durable, beneath one base after the
// other: deepest first and the base itself, the zero path, last. All bases are on
// one file system. Here alone it is decided whether one syncfs does it for all, and
// no directory counts twice.
func syncDirs(paths []pathsafe.Path, bases ...dir) error {
	paths = deepestFirst(paths)
	if len(paths) > few {
		last := bases[len(bases)-1]
		if err := last.syncFS(); err != nil {
			return err
		}
		return last.sync()
	}
	for _, base := range bases {
		for _, p := range paths {
			if p == (pathsafe.Path{}) {
				continue
			}
			if err := syncDir(base, p); err != nil {
				return err
			}
		}
		if err := base.sync(); err != nil {
			return err
		}
	}
	return nil
}

// syncDir has nothing to do for a directory that is not there: whether it
// should be, others find out.
func syncDir(base dir, p pathsafe.Path) error {
	d, err := base.open(p)
	if err != nil {
		return gone(err)
	}
	defer d.close()
	return d.sync()
}

// deepestFirst returns the paths without doubles.
func deepestFirst(paths []pathsafe.Path) []pathsafe.Path {
	sorted := slices.Clone(paths)
	slices.SortFunc(sorted, func(a, b pathsafe.Path) int {
		return cmp.Or(cmp.Compare(depth(b), depth(a)), cmp.Compare(a.String(), b.String()))
	})
	return slices.Compact(sorted)
}

// gone drops fs.ErrNotExist.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
