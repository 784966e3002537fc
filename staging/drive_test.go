package staging

import (
	"context"
	"errors"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// What these tests use drives a transaction as a caller of this package does: it keeps a log,
// which receives an attempt before anything of it is written, and of its end while the
// journal still stands.

// session is a root that is locked, and the log of what is done there.
type session struct {
	*Root
	log *witness // may be nil
}

func (l *session) hear(what func(w *witness) error) error {
	if l.log == nil {
		return nil
	}
	return what(l.log)
}

// spec is a commit.
type spec struct {
	files     []fileAt
	absent    []pathsafe.Path
	dirPerm   func(path pathsafe.Path) uint32
	removals  []removalAt
	artifacts []artifactAt
	manifest  []byte
	progress  func(phase string, bytes int64)
	leftover  func(name string, err error)
	workers   int
}

type fileAt struct {
	Path pathsafe.Path
	File
	old *pathsafe.Stat // that it replaces; nil for nothing
}

type removalAt struct {
	Path pathsafe.Path
	old  *pathsafe.Stat
}

type artifactAt struct {
	Path pathsafe.Path
	Artifact
	old *pathsafe.Stat // what it takes the place of
}

func (s *spec) change() Change {
	c := Change{Kind: KindCommit, Absent: s.absent, DirPerm: s.dirPerm, Manifest: s.manifest, Progress: s.progress, Workers: s.workers}
	for i := range s.files {
		c.Swaps = append(c.Swaps, Swap{Path: s.files[i].Path, Old: s.files[i].old, New: &s.files[i].File})
	}
	for _, r := range s.removals {
		c.Swaps = append(c.Swaps, Swap{Path: r.Path, Old: r.old})
	}
	for i := range s.artifacts {
		c.Swaps = append(c.Swaps, Swap{Path: s.artifacts[i].Path, Old: s.artifacts[i].old, New: &s.artifacts[i].Artifact})
	}
	return c
}

// reset is a change that is not a commit, what makes its trees, and what its caller does before
// Commit.
type reset struct {
	Change
	dirs    []dirMeta
	stage   func(ctx context.Context, dir *pathsafe.Dir) error
	settled func() error // called between Move and Commit; may be nil
}

// dirMeta is what a directory that stays gets.
type dirMeta struct {
	Path pathsafe.Path
	Metadata
}

func (e *reset) change() Change {
	c := e.Change
	c.Swaps = slices.Clone(c.Swaps)
	for i := range e.dirs {
		c.Swaps = append(c.Swaps, Swap{Path: e.dirs[i].Path, New: &e.dirs[i].Metadata})
	}
	return c
}

func (l *session) commit(ctx context.Context, s spec) error {
	return l.carryOut(ctx, reset{Change: s.change()}, s.leftover)
}

func (l *session) reset(ctx context.Context, e reset) error { return l.carryOut(ctx, e, nil) }

func (l *session) carryOut(ctx context.Context, e reset, leftover func(name string, err error)) (err error) {
	tx, err := l.PlanLocked(ctx, e.change())
	if err != nil {
		return err
	}
	defer tx.Abort(&err)
	if err := l.hear(func(w *witness) error { return w.Began(tx.Attempt(), e.Kind) }); err != nil {
		return err
	}
	if err := tx.Begin(); err != nil {
		return err
	}
	if err := tx.Stage(ctx, e.stage); err != nil {
		return err
	}
	if err := tx.Move(ctx); err != nil {
		return err
	}
	if e.settled != nil {
		if err := l.s.Do("settle", tx.Staging(), e.settled); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	end := l.hear(func(w *witness) error { return w.Completed(tx.Attempt(), e.Kind) })
	if end == nil {
		end = tx.Close()
	}
	if end != nil && leftover != nil {
		leftover(tx.Staging(), end)
	}
	return nil
}

// recover ends what stands in the root.
func (l *session) recover(ctx context.Context, mode Mode) ([]Outcome, error) {
	all, err := l.Unfinished()
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	var halts []error
	for _, u := range all {
		end, err := l.resolve(ctx, u, mode)
		var busy *BusyError
		if errors.As(err, &busy) || errors.Is(err, ErrOvertaken) {
			return outcomes, err
		}
		if err != nil {
			halts = append(halts, u.Halt(err))
		} else if end.Result != 0 {
			outcomes = append(outcomes, end)
		}
	}
	if len(halts) == 0 {
		l.Yield()
	}
	if len(halts) == 1 {
		return outcomes, halts[0]
	}
	return outcomes, errors.Join(halts...)
}

func (l *session) resolve(ctx context.Context, u *Unfinished, mode Mode) (Outcome, error) {
	defer u.Close()
	end, err := u.Resolve(ctx, mode)
	if err == nil && end.Result == Completed {
		err = l.hear(func(w *witness) error { return w.Completed(u.Attempt, u.Kind) })
	}
	if err == nil {
		end, err = u.Forget()
	}
	if err == nil || mode != Acknowledged || u.Err != nil {
		return end, err
	}
	end = u.Release(err)
	if err := l.hear(func(w *witness) error { return w.Released(u.Attempt, u.Kind, end.Left) }); err != nil {
		return Outcome{}, err
	}
	return u.Forget()
}

// enter locks a root.
func enter(ctx context.Context, root *pathsafe.Dir, key []byte, s *sysHook) (*session, error) {
	l, err := lock(ctx, root, key, &locking{s: s})
	if err != nil {
		return nil, err
	}
	return &session{Root: l}, nil
}

// runner is what a run needs beside its spec.
type runner struct {
	key []byte
	s   *sysHook
}

// run locks root, ends what an earlier attempt left there, and carries s out.
func run(ctx context.Context, root *pathsafe.Dir, s spec, r *runner) error {
	l, err := enter(ctx, root, r.key, r.s)
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.recover(ctx, Automatic); err != nil {
		return fail(StepBegin, "", err)
	}
	return l.commit(ctx, s)
}
