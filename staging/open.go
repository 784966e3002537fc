package staging

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// openStage is step 2: the chain manifest, then the staging directory beside
// it, then the directories below that.
func (a *attempt) openStage(context.Context) *Error {
	if a.spec.Manifest != nil {
		if err := a.writeManifest(); err != nil {
			return fail(StepStage, a.manifestName(), err)
		}
	}
	if err := a.makeStage(); err != nil {
		return fail(StepStage, a.stageName(), err)
	}
	if err := a.root.sync(); err != nil {
		return fail(StepStage, a.stageName(), err)
	}
	return a.makeDirs()
}

func (a *attempt) writeManifest() error {
	f, err := a.root.create(a.manifestName())
	a.manifestMark.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.fillAndSync(f, &a.manifestMark, a.spec.Manifest)
	return errors.Join(err, a.s.closeFile(f))
}

// fillAndSync writes a file that is not a target, and marks it.
func (a *attempt) fillAndSync(f *os.File, m *mark, data []byte) error {
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
	if err := a.s.syncFile(f); err != nil {
		return err
	}
	m.size = int64(len(data))
	return nil
}

func (a *attempt) makeStage() (err error) {
	if err := a.makeDir(a.root, a.stageName(), 0o700, &a.stageMark); err != nil {
		return err
	}
	name, err := pathsafe.Parse(a.stageName())
	if err != nil {
		return err
	}
	if a.stage, err = a.root.open(name); err != nil {
		return err
	}
	return a.probe()
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

// probe finds out, before anything is copied, whether this file system can
// move without replacing.
func (a *attempt) probe() error {
	if err := a.stage.mkdir(probeName, 0o700); err != nil {
		return err
	}
	if err := a.stage.rename(probeName, a.stage, probeMoved); err != nil {
		return err
	}
	return a.stage.rmdir(probeMoved)
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
