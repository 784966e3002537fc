package staging

import (
	"context"
	"errors"
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
	return a.makeDir(a.stage, holdName, 0o700, &a.holdMark)
}

func (a *attempt) makeStage() error {
	err := a.root.mkdir(a.stageName(), 0o700)
	a.stageMark.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	stage, err := a.root.openName(a.stageName())
	if err != nil {
		return err
	}
	if err := a.checkStage(stage); err != nil {
		stage.close()
		return err
	}
	a.stage = stage
	if err := a.writeManifest(); err != nil {
		return err
	}
	return a.enterIntent()
}

// checkStage wants the directory that was opened to be the one that was made, or
// one that is no different: empty, closed to others and this user's. Somebody
// else's, put in its place meanwhile, stays.
func (a *attempt) checkStage(stage dir) error {
	st, err := stage.statSelf()
	if err != nil {
		return err
	}
	names, err := stage.names()
	if err != nil {
		return err
	}
	if len(names) > 0 || st.Perm != 0o700 || int(st.UID) != os.Geteuid() {
		a.stageMark.tried = false
		return errReplaced
	}
	a.stageMark.see(st, anySize)
	return nil
}

// writeManifest makes the chain manifest in staging, so that its identity is
// known before it stands beside it.
func (a *attempt) writeManifest() error {
	if a.spec.Manifest == nil {
		return nil
	}
	f, err := a.stage.create(manifestStaged)
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
	if err := a.s.chmod(f, 0o644); err != nil {
		return err
	}
	m.size = int64(len(data))
	return nil
}

// makeDir makes a directory and marks it.
func (a *attempt) makeDir(in dir, name string, perm uint32, m *mark) error {
	err := in.mkdir(name, perm)
	m.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	m.see(st, anySize)
	return nil
}

// makeDirs makes the directories of the plan below staging.
func (a *attempt) makeDirs() *Error {
	at := cache{base: a.stage}
	defer at.close()
	for i := range a.plan.dirs {
		d := &a.plan.dirs[i]
		in, err := at.open(parent(d.path))
		if err == nil {
			err = a.makeDir(in, d.path.Base(), 0o777, &d.mark)
		}
		if err != nil {
			return fail(StepStage, d.path.String(), err)
		}
	}
	return nil
}

// openName opens a directory by its name in d.
func (d dir) openName(name string) (dir, error) {
	p, err := pathsafe.Parse(name)
	if err != nil {
		return dir{}, err
	}
	return d.open(p)
}
