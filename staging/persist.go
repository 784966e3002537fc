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

func (a *attempt) fewEntries() bool { return len(a.copies.files)+len(a.copies.dirs) <= few }

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
			st, err := a.news.Stat(s.name)
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
		return a.root.SyncFS()
	case !a.isCommit(): // nothing was made
		return nil
	}
	dirs := make([]pathsafe.Path, 0, len(a.copies.dirs))
	for i := range a.copies.dirs {
		dirs = append(dirs, a.copies.dirs[i].path)
	}
	for _, d := range []dir{a.olds, a.hold} {
		if d.H == nil {
			continue
		}
		if err := d.Sync(); err != nil {
			return err
		}
	}
	if err := syncDirs(dirs, a.news); err != nil {
		return err
	}
	return a.stage.Sync()
}

// syncDirs makes the names in the directories durable, beneath one base after the
// other: deepest first and the base itself, the zero path, last. All bases are on
// one file system. Here alone it is decided whether one syncfs does it for all, and
// no directory counts twice.
func syncDirs(paths []pathsafe.Path, bases ...dir) error {
	paths = deepestFirst(paths)
	if len(paths) > few {
		last := bases[len(bases)-1]
		if err := last.SyncFS(); err != nil {
			return err
		}
		return last.Sync()
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
		if err := base.Sync(); err != nil {
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
	defer d.Close()
	return d.Sync()
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
