package staging

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"strconv"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// publish is step 7. All artifacts are durable in staging before the journal
// says COMMITTED, and that it does before the first of them gets its name: so a
// full disk is met before, and whoever sees an artifact sees a commit that no
// crash takes back.
func (a *attempt) publish(context.Context) *Error {
	a.progress(PhasePublish, 0)
	if err := a.prepareArtifacts(); err != nil {
		return err
	}
	if err := a.enterCommitted(); err != nil {
		return fail(StepPublish, a.stageName(), err)
	}
	return a.place()
}

// A prepared artifact is whole and durable in the directory for artifacts
// below staging, and has its index as its name there.
type prepared struct {
	path  pathsafe.Path
	mark  mark
	check check // of one that comes from a journal
}

func artifactsOf(list []Artifact) []prepared {
	all := make([]prepared, len(list))
	for i := range list {
		all[i].path = list[i].Path
	}
	return all
}

func (a *attempt) prepareArtifacts() *Error {
	if len(a.artifacts) == 0 {
		return nil
	}
	hold, err := a.openHold()
	if err != nil {
		return err
	}
	defer hold.close()
	at := cache{base: a.root}
	defer at.close()
	for i := range a.artifacts {
		err := a.inherit(hold, &at, i)
		if err == nil {
			err = a.prepare(hold, i)
		}
		if err != nil {
			return fail(StepPublish, a.artifacts[i].path.String(), err)
		}
	}
	if len(a.artifacts) > few {
		return fail(StepPublish, holdName, a.root.syncFS())
	}
	return fail(StepPublish, holdName, hold.sync())
}

// inherit has the directory for artifacts give to what is made in it what the
// directory gives that artifact i goes to. Of several in a row it is asked once.
func (a *attempt) inherit(hold dir, at *cache, i int) error {
	up := parent(a.artifacts[i].path)
	if i > 0 && up == parent(a.artifacts[i-1].path) {
		return nil
	}
	in, err := at.open(up)
	if err != nil {
		return err
	}
	like, err := in.access()
	if err != nil {
		return err
	}
	return hold.bequeathLike(like)
}

func (a *attempt) openHold() (dir, *Error) {
	hold, err := a.stage.openName(holdName)
	return hold, fail(StepPublish, holdName, err)
}

func (a *attempt) prepare(hold dir, i int) error {
	m := &a.artifacts[i].mark
	f, err := hold.create(strconv.Itoa(i), a.spec.Artifacts[i].Perm)
	m.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.fill(f, m, a.spec.Artifacts[i].Data)
	if err == nil && len(a.artifacts) <= few {
		err = a.s.syncFile(f)
	}
	return errors.Join(err, a.s.closeFile(f))
}

// place gives each artifact its name, in order, in one step and never over
// anything, and looks it up afresh from the root, as step 6 does with files.
func (a *attempt) place() *Error {
	if len(a.artifacts) == 0 {
		return nil
	}
	hold, failure := a.openHold()
	if failure != nil {
		return failure
	}
	defer hold.close()
	at := cache{base: a.root}
	defer at.close()
	for i := range a.artifacts {
		if err := a.placeOne(hold, &at, i); err != nil {
			return fail(StepPublish, a.artifacts[i].path.String(), err)
		}
	}
	if err := hold.sync(); err != nil { // before the directories that they entered: see syncMoves
		return fail(StepPublish, holdName, err)
	}
	return fail(StepPublish, "", a.syncArtifacts())
}

func (a *attempt) placeOne(hold dir, at *cache, i int) error {
	path := a.artifacts[i].path
	to, err := at.open(parent(path))
	if err != nil {
		return err
	}
	err = hold.rename(strconv.Itoa(i), to, path.Base())
	if a.revived && errors.Is(err, fs.ErrNotExist) {
		return nil // placed before the crash: what became of it since is not ours to judge
	}
	if a.revived && errors.Is(err, fs.ErrExist) {
		switch wrong := a.verifyArtifact(i); {
		case wrong == nil:
			return hold.unlink(strconv.Itoa(i)) // placed, and the crash has brought the old name back
		case !isMismatch(wrong):
			return wrong
		}
	}
	if err != nil {
		return err
	}
	return a.verifyArtifact(i)
}

func (a *attempt) verifyArtifact(i int) error {
	p := &a.artifacts[i]
	f, st, err := a.root.openRegular(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !p.mark.is(st) {
		return errReplaced
	}
	now, err := a.s.access(f)
	if err == nil {
		err = p.mark.keeps(now)
	}
	if err != nil {
		return err
	}
	check := p.check
	if check == nil {
		data := a.spec.Artifacts[i].Data
		check = thing{Size: int64(len(data))}.with(sha256.Sum256(data)).check()
	}
	return a.s.do("check", p.path.String(), func() error { return check(context.Background(), f) })
}

func (a *attempt) syncArtifacts() error {
	var dirs []pathsafe.Path
	for i := range a.artifacts {
		dirs = append(dirs, parent(a.artifacts[i].path))
	}
	return syncDirs(dirs, a.root)
}
