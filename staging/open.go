package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// openStage is step 2: the staging directory and in it the journal's INTENT,
// durably; then the chain manifest beside it and the directories below.
func (a *attempt) openStage(context.Context) *Error {
	if err := a.makeStage(); err != nil {
		return fail(StepStage, a.stageName(), err)
	}
	if err := a.root.sync(); err != nil {
		return fail(StepStage, a.stageName(), err)
	}
	if err := a.placeManifest(); err != nil {
		return fail(StepStage, a.manifestName(), err)
	}
	if err := a.makeHold(); err != nil {
		return fail(StepStage, holdName, err)
	}
	return a.makeDirs()
}

// makeHold makes the directory for artifacts, so that its name is durable by
// PREPARED: after COMMITTED its absence says that all of them were placed.
func (a *attempt) makeHold() error {
	if len(a.artifacts) == 0 {
		return nil
	}
	return makeDir(a.stage, holdName, ownDir, &a.holdMark)
}

func (a *attempt) makeStage() error {
	if err := makeDir(a.root, a.stageName(), ownDir, &a.stageMark); err != nil {
		return err
	}
	stage, err := a.root.openName(a.stageName())
	if err != nil {
		return err
	}
	if err := checkStage(stage, &a.stageMark); err != nil {
		stage.close()
		return err
	}
	a.stage = stage
	if err := a.writeManifest(); err != nil {
		return err
	}
	return a.enterIntent()
}

// checkStage wants the directory that was opened to be the one that was made: empty,
// this user's, and closed to others, which a file system that keeps no modes cannot do.
// Another one that was put in its place stays.
func checkStage(stage dir, m *mark) error {
	st, err := stage.statSelf()
	if err != nil {
		return err
	}
	names, err := stage.names()
	switch {
	case err != nil:
		return err
	case !m.is(st) || len(names) > 0 || int(st.UID) != os.Geteuid():
		m.tried = false
		return ErrStagingReplaced
	case !st.Private():
		return fmt.Errorf("%w (mode %04o)", errOpenToOthers, st.Perm)
	}
	return nil
}

// writeManifest makes the chain manifest in staging, so that its identity is
// known before it stands beside it.
func (a *attempt) writeManifest() error {
	if a.spec.Manifest == nil {
		return nil
	}
	f, err := a.stage.create(manifestStaged, ownFile)
	a.manifestMark.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.fill(f, &a.manifestMark, a.spec.Manifest)
	if err == nil {
		err = a.s.syncFile(f)
	}
	return errors.Join(err, a.s.closeFile(f))
}

func (a *attempt) placeManifest() error {
	if a.spec.Manifest == nil {
		return nil
	}
	if err := a.stage.rename(manifestStaged, a.root, a.manifestName()); err != nil {
		return err
	}
	return errors.Join(a.stage.sync(), a.root.sync())
}

// fill writes a file that is not one of the spec, and marks it.
func (a *attempt) fill(f *os.File, m *mark, data []byte) error {
	st, err := a.s.identify(f)
	if err != nil {
		return err
	}
	m.see(st, anySize)
	if err := a.s.write(f, data); err != nil {
		return err
	}
	if st.Perm&0o400 == 0 { // the umask took it, and it has to be read back
		if err := a.s.chmod(f, st.Perm|0o400); err != nil {
			return err
		}
	}
	m.size = int64(len(data))
	m.access, err = a.s.access(f)
	return err
}

// ownDir is the mode of a directory that only this user enters.
const ownDir = 0o700

// ownFile is the mode of a file that only this user reads.
const ownFile = 0o600

// makeDir makes a directory and marks it. Its owner may do everything in it, whatever
// the umask or a default access list takes; what they take of the other bits stays away.
func makeDir(in dir, name string, perm uint32, m *mark) error {
	err := in.mkdir(name, perm|ownDir)
	m.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	st, err := in.unbarred(name)
	if err == nil {
		m.see(st, anySize)
	}
	return err
}

// makeDirs makes the directories of the plan below staging. One that exists beneath
// the root already gives the group and the access list to what is made in it that the
// real one gives: what is moved there later has them as if it had been made there.
func (a *attempt) makeDirs() *Error {
	at, real := cache{base: a.stage}, cache{base: a.root}
	defer at.close()
	defer real.close()
	entered := map[pathsafe.Path]bool{}
	for _, t := range a.plan.tops {
		entered[parent(t.path)] = true
	}
	for i := range a.plan.dirs {
		d := &a.plan.dirs[i]
		perm := uint32(ownDir)
		if d.top != none {
			perm = a.spec.dirPerm(d.path)
		}
		in, err := at.open(parent(d.path))
		if err == nil {
			err = makeDir(in, d.path.Base(), perm, &d.mark)
		}
		if err == nil && (d.top != none || entered[d.path]) {
			err = a.dress(d, &at, &real)
		}
		if err != nil {
			return fail(StepStage, d.path.String(), err)
		}
	}
	return nil
}

// dress has a directory below staging give what the real one gives, or notes what a
// new one has got.
func (a *attempt) dress(d *plannedDir, at, real *cache) error {
	made, err := at.open(d.path)
	if err != nil {
		return err
	}
	if d.top != none {
		d.mark.access, err = made.access()
		return err
	}
	target, err := real.open(d.path)
	if err != nil {
		return err
	}
	if d.mark.access, err = target.access(); err != nil {
		return err
	}
	return made.bequeathLike(d.mark.access)
}

// openName opens a directory by its name in d.
func (d dir) openName(name string) (dir, error) {
	p, err := pathsafe.Parse(name)
	if err != nil {
		return dir{}, err
	}
	return d.open(p)
}
