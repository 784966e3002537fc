package staging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// revive makes an attempt again from the records in its staging directory, as
// far as they go. An empty key takes every record for good.
func (a *attempt) revive(key []byte) error {
	var intent intentRecord
	if _, err := a.stage.read(key, intentName, &intent); err != nil {
		return err
	}
	root, err := a.root.statSelf()
	if err != nil {
		return err
	}
	if err := a.fits(&intent, root); err != nil {
		return err
	}
	a.plan, err = planOf(&intent)
	if err != nil {
		return err
	}
	if a.spec.Files, err = filesOf(intent.Files); err != nil {
		return err
	}
	if a.artifacts, err = preparedOf(intent.Artifacts); err != nil {
		return err
	}
	if m := intent.Manifest; m != nil {
		a.manifestMark, a.manifestCheck = m.markIn(root.ID), m.check()
		a.manifestMark.tried = true
	}
	a.phase = phaseIntent
	if err := a.revivePrepared(key, root.ID); err != nil {
		return err
	}
	return a.reviveCommitted(key, root.ID)
}

// fits refuses a journal that was written for another place.
func (a *attempt) fits(r *intentRecord, root pathsafe.Stat) error {
	self := r.Root.markIn(root.ID)
	stage := r.Stage.markIn(root.ID)
	if r.Version != journalVersion {
		return fmt.Errorf("its journal has version %d, this program knows %d", r.Version, journalVersion)
	}
	if r.Attempt != a.id || !self.is(root) || stage.id.Ino != a.stageMark.id.Ino || !stage.born.Equal(a.stageMark.born) {
		return errors.New("its journal was written for another directory")
	}
	return nil
}

func (a *attempt) revivePrepared(key []byte, root pathsafe.ID) error {
	var r preparedRecord
	found, err := a.stage.read(key, preparedName, &r)
	if err != nil || !found {
		return err
	}
	if r.Attempt != a.id || len(r.Dirs) != len(a.plan.dirs) || len(r.Files) != len(a.plan.files) {
		return errUnfit
	}
	for i, t := range r.Dirs {
		a.plan.dirs[i].mark = t.markIn(root)
	}
	for i, t := range r.Files {
		a.plan.files[i].mark = t.markIn(root)
		a.spec.Files[i].Size, a.spec.Files[i].Check = t.Size, t.check()
	}
	a.phase = phasePrepared
	return nil
}

func (a *attempt) reviveCommitted(key []byte, root pathsafe.ID) error {
	for p, name := range map[phase]string{phaseCommitted: committedName, phaseRollingBack: rollingBackName} {
		var r committedRecord
		found, err := a.stage.read(key, name, &r)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if r.Attempt != a.id || len(r.Artifacts) != len(a.artifacts) || a.phase > phasePrepared {
			return errUnfit
		}
		for i, t := range r.Artifacts {
			a.artifacts[i].mark, a.artifacts[i].check = t.markIn(root), t.check()
		}
		a.phase = p
	}
	return nil
}

var errUnfit = machine.Disturbed("the records of its journal do not fit together")

// planOf makes the plan of the directories and files of an intent.
func planOf(r *intentRecord) (*plan, error) {
	p := &plan{files: make([]plannedFile, len(r.Files))}
	isNew := map[pathsafe.Path]bool{}
	add := func(text string, made bool) error {
		path, err := pathsafe.Parse(text)
		if err == nil && made && !isNew[parent(path)] {
			p.tops = append(p.tops, top{path: path, dir: none, file: none, tried: true})
		}
		return err
	}
	for _, d := range r.Dirs {
		if err := add(d.Path, d.New); err != nil {
			return nil, err
		}
		path, _ := pathsafe.Parse(d.Path)
		isNew[path] = d.New
		planned := plannedDir{path: path, top: none}
		if d.New {
			planned.top = 0
		}
		p.dirs = append(p.dirs, planned)
	}
	for _, text := range r.Files {
		if err := add(text, true); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func filesOf(paths []string) ([]File, error) {
	files := make([]File, len(paths))
	for i, text := range paths {
		path, err := pathsafe.Parse(text)
		if err != nil {
			return nil, err
		}
		files[i].Path = path
	}
	return files, nil
}

func preparedOf(paths []string) ([]prepared, error) {
	all := make([]prepared, len(paths))
	for i, text := range paths {
		path, err := pathsafe.Parse(text)
		if err != nil {
			return nil, err
		}
		all[i].path = path
	}
	return all, nil
}

// check is how the content of a thing is recognised.
func (t thing) check() check {
	return func(_ context.Context, f io.ReaderAt) error {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, t.Size)); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != t.SHA256 {
			return errChanged
		}
		return nil
	}
}

// errChanged: the content of a thing is not what was recorded.
var errChanged = machine.Disturbed("somebody has changed its content")
