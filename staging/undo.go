package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// errForeign is why something stays that bears a name of ours (decision D14).
var errForeign = machine.Disturbed("is not of this commit, so it stays")

// An undo removes what an attempt made. It goes on after an error and keeps
// the first ones.
type undo struct {
	*attempt
	inRoot, inStage cache
	notes
}

// maxTold is how many errors an undo tells in full.
const maxTold = 8

func newUndo(a *attempt) *undo {
	return &undo{attempt: a, inRoot: cache{base: a.root}, inStage: cache{base: a.stage}}
}

func (u *undo) close() {
	u.inRoot.close()
	u.inStage.close()
}

// notes keep the first of many errors.
type notes struct {
	first  error
	others []string // the next ones, as text
	count  int
}

func (n *notes) note(path string, err error) {
	if err == nil {
		return
	}
	if n.count++; n.count > maxTold {
		return
	}
	if path != "" {
		err = fmt.Errorf("%q: %w", path, err)
	}
	if n.first == nil {
		n.first = err
		return
	}
	n.others = append(n.others, err.Error())
}

func (n *notes) err() error {
	err := n.first
	if len(n.others) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(n.others, "; "))
	}
	if n.count > maxTold {
		err = fmt.Errorf("%w (and %d more)", err, n.count-maxTold)
	}
	return err
}

// A victim is a file of ours that goes from a place where others may work.
type victim struct {
	mark  *mark
	check check  // of its content; nil where no time has passed
	aside string // its name in staging meanwhile
}

// A check reads content and returns nil if it is what it should be.
type check func(ctx context.Context, f io.ReaderAt) error

// The victims of an attempt. The content of those of a killed one is checked:
// somebody may have written into them since, and then they are not ours alone.

func (u *undo) victimFile(i int) victim {
	v := victim{mark: &u.plan.files[i].mark, aside: asideFile + strconv.Itoa(i)}
	if u.revived {
		v.check = u.spec.Files[i].Check
	}
	return v
}

func (u *undo) victimArtifact(i int) victim {
	p := &u.attempt.artifacts[i]
	return victim{&p.mark, p.check, asideArtifact + strconv.Itoa(i)}
}

func (u *undo) victimManifest() victim {
	return victim{&u.manifestMark, u.manifestCheck, asideOfManifest}
}

// removeFile removes a file of ours from a directory where others may work at
// the same time. Between a look and an unlink the name could come to mean
// another file; so the file is first moved aside, where nobody else comes, and
// looked at again. What proves to be foreign is put back.
func (u *undo) removeFile(in dir, name string, v victim) error {
	if err := u.proven(in, name, v); err != nil {
		return err
	}
	if u.stage.h == nil || in.rename(name, u.stage, v.aside) != nil {
		return in.unlink(name) // staging is gone: what was seen has to do
	}
	back, err := u.removeAside(v)
	if back {
		return both(err, u.stage.rename(v.aside, in, name))
	}
	return err
}

// removeAside removes what was moved aside if it is the victim. Else it has to
// go back.
func (u *undo) removeAside(v victim) (back bool, err error) {
	if err := u.proven(u.stage, v.aside, v); err != nil {
		return true, err
	}
	return false, u.stage.unlink(v.aside)
}

// both is errors.Join on one line.
func both(err, other error) error {
	if err == nil || other == nil {
		return errors.Join(err, other)
	}
	return fmt.Errorf("%w; %w", err, other)
}

// proven tells whether a name is that of the victim, by its identity and, where
// time has passed, by its content.
func (u *undo) proven(in dir, name string, v victim) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if !v.mark.is(st) {
		return errForeign
	}
	if v.check == nil {
		return nil
	}
	p, err := pathsafe.Parse(name)
	if err != nil {
		return err
	}
	f, st, err := in.openRegular(p)
	if errors.Is(err, fs.ErrPermission) {
		return nil // its own bits forbid reading: the identity has to do
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if !v.mark.is(st) {
		return errForeign
	}
	err = u.s.do("check", name, func() error { return v.check(context.Background(), f) })
	if errors.Is(err, errChanged) {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	return err
}

// returnAsides ends what a killed rollback began: what it had moved aside goes,
// or goes back.
func (u *undo) returnAsides() {
	if !u.revived {
		return
	}
	names, err := u.stage.names()
	u.note(u.stageName(), err)
	for _, name := range names {
		if path, v, ok := u.asideOf(name); ok {
			u.note(path.String(), u.returnAside(path, v))
		}
	}
}

func (u *undo) returnAside(path pathsafe.Path, v victim) error {
	back, err := u.removeAside(v)
	if !back {
		return err
	}
	in, openErr := u.inRoot.open(parent(path))
	if openErr != nil {
		return both(err, openErr)
	}
	return both(err, u.stage.rename(v.aside, in, path.Base()))
}

// asideOf tells what a name in staging was moved aside for.
func (u *undo) asideOf(name string) (path pathsafe.Path, v victim, ok bool) {
	if name == asideOfManifest && u.manifestMark.known {
		path, err := pathsafe.Parse(u.manifestName())
		return path, u.victimManifest(), err == nil
	}
	if i, ok := index(name, asideFile, len(u.plan.files)); ok {
		return u.spec.Files[i].Path, u.victimFile(i), true
	}
	if i, ok := index(name, asideArtifact, len(u.attempt.artifacts)); ok {
		return u.attempt.artifacts[i].path, u.victimArtifact(i), true
	}
	return path, v, false
}

// index reads a name that is a prefix and an index below n.
func index(name, prefix string, n int) (int, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	i, err := strconv.Atoi(rest)
	return i, ok && err == nil && i >= 0 && i < n
}

// removeStaged removes a file below staging, where only we work. Its identity
// may be unknown: then making it went wrong half-way.
func (u *undo) removeStaged(in dir, name string, m *mark) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if m.known && !m.is(st) {
		return errForeign
	}
	return in.unlink(name)
}

// removeDir removes a directory of ours, if it is empty. An unknown identity
// will do only where the name is proof enough (private).
func removeDir(in dir, name string, m *mark, private bool) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if !m.is(st) && (m.known || !private) {
		return errForeign
	}
	err = in.rmdir(name)
	if errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("it holds something that is not of this commit: %w", err)
	}
	return err
}

// hold removes the directory for artifacts below staging with what is left of
// them.
func (u *undo) hold() {
	hold, err := u.stage.openName(holdName)
	if err != nil {
		u.note(holdName, gone(err))
		return
	}
	defer hold.close()
	for i := range u.attempt.artifacts {
		name := strconv.Itoa(i)
		u.note(name, gone(u.removeStaged(hold, name, &u.attempt.artifacts[i].mark)))
	}
	u.note(holdName, gone(removeDir(u.stage, holdName, &u.holdMark, true)))
}

// manifest removes the chain manifest, in staging or beside it.
func (u *undo) manifest() {
	m := &u.manifestMark
	if !m.tried {
		return
	}
	u.note(manifestStaged, gone(u.removeStaged(u.stage, manifestStaged, m)))
	if m.known {
		u.note(u.manifestName(), gone(u.removeFile(u.root, u.manifestName(), u.victimManifest())))
	}
}
