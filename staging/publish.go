package staging

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// firstArtifact is the index of the first swap that is an artifact, the number of swaps if
// there is none.
func (a *attempt) firstArtifact() int { return len(a.swaps) - a.artifacts }

// makeArtifacts makes all artifacts in the directory for artifacts, durably. That directory
// gets the access that the target directory passes on; for several artifacts in a row it is
// read once.
func (a *attempt) makeArtifacts() *Error {
	if a.artifacts == 0 {
		return nil
	}
	at := cache{base: a.root}
	defer at.close()
	few := a.artifacts <= few
	for i := a.firstArtifact(); i < len(a.swaps); i++ {
		s := &a.swaps[i]
		err := error(nil)
		if i == a.firstArtifact() || parent(s.path) != parent(a.swaps[i-1].path) {
			err = a.inherit(s, &at)
		}
		if err == nil {
			err = a.makeArtifact(s, few)
		}
		if err != nil {
			return fail(StepPublish, s.path.String(), err)
		}
	}
	if !few {
		return fail(StepPublish, holdName, a.root.SyncFS())
	}
	return fail(StepPublish, holdName, a.hold.Sync())
}

func (a *attempt) inherit(s *swapping, at *cache) error {
	in, err := at.open(parent(s.path))
	if err != nil {
		return err
	}
	like, err := in.access()
	if err != nil {
		return err
	}
	return a.hold.bequeathLike(like)
}

func (a *attempt) makeArtifact(s *swapping, sync bool) error {
	f, err := a.hold.Create(s.name, s.artifact.Perm)
	s.created.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.writeWhole(f, &s.created, s.artifact.Data)
	s.fresh = s.created.identity(0)
	if err == nil && sync {
		err = a.s.SyncFile(f)
	}
	return errors.Join(err, a.s.CloseFile(f))
}

// place gives each artifact its name, in order, in one step and never over
// anything, and looks it up afresh from the root, as step 4 does with files.
func (a *attempt) place() *Error {
	if a.artifacts == 0 {
		return nil
	}
	at := cache{base: a.root}
	defer at.close()
	for i := a.firstArtifact(); i < len(a.swaps); i++ {
		if err := a.placeOne(&at, &a.swaps[i]); err != nil {
			return fail(StepPublish, a.swaps[i].path.String(), err)
		}
	}
	if err := a.hold.Sync(); err != nil { // before the directories that they entered: see moveTops
		return fail(StepPublish, holdName, err)
	}
	return fail(StepPublish, "", a.syncArtifacts())
}

func (a *attempt) placeOne(at *cache, s *swapping) error {
	to, err := at.open(parent(s.path))
	if err != nil {
		return err
	}
	err = a.hold.rename(s.name, to, s.path.Base())
	if a.revived && errors.Is(err, fs.ErrNotExist) {
		return nil // placed before the crash: what became of it since is not ours to judge
	}
	if a.revived && errors.Is(err, fs.ErrExist) {
		switch wrong := a.verifyArtifact(s); {
		case wrong == nil:
			return a.hold.Unlink(s.name) // placed, and the crash has brought the old name back
		case !isMismatch(wrong):
			return wrong
		}
	}
	if err != nil {
		return err
	}
	return a.verifyArtifact(s)
}

func (a *attempt) verifyArtifact(s *swapping) error {
	f, st, err := a.root.openRegular(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !s.created.is(st) {
		return errReplaced
	}
	if err := a.s.keeps(f, st, &s.created); err != nil {
		return err
	}
	check := s.check
	if check == nil {
		data := s.artifact.Data
		check = createdRecord{Size: int64(len(data))}.with(sha256.Sum256(data)).check()
	}
	return a.s.Do("check", s.path.String(), func() error { return check(context.Background(), f) })
}

func (a *attempt) syncArtifacts() error {
	if a.artifacts == 0 {
		return nil
	}
	var dirs []pathsafe.Path
	for i := a.firstArtifact(); i < len(a.swaps); i++ {
		dirs = append(dirs, parent(a.swaps[i].path))
	}
	return syncDirs(dirs, a.root)
}

// placedAll reports whether every artifact has left staging. Each was then at its name, and
// later changes to it do not matter.
func (a *attempt) placedAll() (bool, error) {
	if err := a.openParts(); err != nil {
		return false, err
	}
	if a.hold.H == nil {
		return true, nil
	}
	for i := range a.swaps {
		if a.swaps[i].since != phaseCommitted {
			continue
		}
		_, err := a.hold.Stat(a.swaps[i].name)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// forward does the rest of step 5 for an attempt that was killed. Unless every artifact has
// left staging already, all files are checked once more first.
func (a *attempt) forward(ctx context.Context) error {
	placed, err := a.placedAll()
	if err != nil {
		return err
	}
	if placed {
		return a.run(a.placeLast)
	}
	a.copies.order = a.copies.byRank()
	for i := range a.copies.files {
		if a.copies.files[i].Check == nil {
			return errUnfit
		}
	}
	return a.run(func() *Error { return a.verify(ctx) }, a.place, a.placeLast)
}
