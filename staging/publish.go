package staging

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// publish is step 7. All artifacts are written and synced before the first
// gets its name, so that a full disk is met before that.
func (a *attempt) publish(context.Context) *Error {
	a.progress(PhasePublish, 0)
	if err := a.prepareAll(); err != nil {
		return err
	}
	at := cache{base: a.root}
	defer at.close()
	var dirs []pathsafe.Path
	for i := range a.artifacts {
		p := &a.artifacts[i]
		if err := a.place(p, &at); err != nil {
			return fail(StepPublish, p.path.String(), err)
		}
		dirs = append(dirs, parent(p.path))
	}
	return fail(StepPublish, "", syncDirs(a.root, dirs))
}

// A prepared artifact is whole and durable: a file without a name or, where
// the file system has none, or descriptors would run out, a file in staging.
type prepared struct {
	path   pathsafe.Path
	f      *os.File // without a name; nil if it has one
	name   string   // below the directory for artifacts
	staged mark     // for the name in staging
	mark   mark     // for the target
}

// close has no error: what was written was synced.
func (p *prepared) close() {
	if p.f != nil {
		_ = p.f.Close()
	}
}

// maxUnnamed bounds the descriptors held.
const maxUnnamed = 16

func (a *attempt) prepareAll() *Error {
	unnamed := len(a.spec.Artifacts) <= maxUnnamed
	a.artifacts = make([]prepared, len(a.spec.Artifacts))
	for i, art := range a.spec.Artifacts {
		p := &a.artifacts[i]
		p.path = art.Path
		err := errors.ErrUnsupported
		if unnamed {
			err = a.prepareUnnamed(p, art.Data)
		}
		if errors.Is(err, errors.ErrUnsupported) {
			unnamed = false
			err = a.prepareNamed(p, art.Data, i)
		}
		if err != nil {
			return fail(StepPublish, art.Path.String(), err)
		}
	}
	return nil
}

func (a *attempt) prepareUnnamed(p *prepared, data []byte) (err error) {
	if p.f, err = a.stage.createUnnamed(); err != nil {
		return err
	}
	return a.fillAndSync(p.f, &p.mark, data)
}

func (a *attempt) prepareNamed(p *prepared, data []byte, i int) error {
	hold, err := a.openHold()
	if err != nil {
		return err
	}
	defer hold.close()
	p.name = strconv.Itoa(i)
	f, err := hold.create(p.name)
	p.staged.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.fillAndSync(f, &p.mark, data)
	p.staged = p.mark
	p.staged.tried = true // the target is not yet
	return errors.Join(err, a.s.closeFile(f))
}

// openHold opens the directory for named artifacts, which it makes if needed.
func (a *attempt) openHold() (dir, error) {
	if !a.holdMark.tried {
		if err := a.makeDir(a.stage, holdName, 0o700, &a.holdMark); err != nil {
			return dir{}, err
		}
	}
	p, err := pathsafe.Parse(holdName)
	if err != nil {
		return dir{}, err
	}
	return a.stage.open(p)
}

// place gives an artifact its name in the target directory, in one step and
// never over anything.
func (a *attempt) place(p *prepared, at *cache) error {
	to, err := at.open(parent(p.path))
	if err != nil {
		return err
	}
	p.mark.tried = true
	if p.f != nil {
		return to.link(p.f, p.path.Base())
	}
	hold, err := a.openHold()
	if err != nil {
		return err
	}
	defer hold.close()
	return hold.rename(p.name, to, p.path.Base())
}
