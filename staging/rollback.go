package staging

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// rollback removes exactly what this attempt made, and says so: nil means that
// nothing of it is left and that no target exists (SPECTRUM-06 section 8.5.1).
// It goes on after an error. The order is that of section 8.5.2: what looks
// like success first, what says that something is unfinished last. The journal
// goes when all else is gone for good; while it is there the root is not clean.
func (a *attempt) rollback() error {
	u := newUndo(a)
	defer u.close()
	switch err := a.enterRollingBack(); {
	case err != nil:
		u.note(rollingBackName, err)
	case a.stage.h == nil: // nothing else was made
		u.stageDir()
		u.targets()
	default:
		u.everything()
		u.journal()
	}
	if u.err() != nil {
		a.halt()
	}
	return u.err()
}

// everything undoes all but the journal, durably.
func (u *undo) everything() {
	u.returnAsides()
	u.unpublish()
	u.files()
	u.dirs(func(d *plannedDir) bool { return true })
	u.manifest()
	u.sync()
	u.hold()
	if !u.revived || u.phase >= phasePrepared {
		u.targets()
	}
}

// unpublish removes what was published, the last one first.
func (u *undo) unpublish() {
	if u.phase < phaseCommitted {
		return
	}
	for i := len(u.attempt.artifacts) - 1; i >= 0; i-- {
		p := &u.attempt.artifacts[i]
		in, err := u.inRoot.open(parent(p.path))
		if err == nil {
			err = u.removeFile(in, p.path.Base(), u.victimArtifact(i))
		}
		u.note(p.path.String(), gone(err))
	}
}

// files removes the files, wherever they are: in staging, or at their targets
// once moves may have been made.
func (u *undo) files() {
	for i := range u.plan.files {
		path := u.spec.Files[i].Path
		u.note(path.String(), gone(u.file(i)))
	}
}

func (u *undo) file(i int) error {
	path, m := u.spec.Files[i].Path, &u.plan.files[i].mark
	in, err := u.inStage.open(parent(path))
	if err == nil {
		err = u.removeStaged(in, path.Base(), m)
	}
	if gone(err) != nil || u.phase < phasePrepared || err == nil && !u.revived {
		return err
	}
	// Not in staging; or a crash has brought that name back, and the file has both.
	if in, err = u.inRoot.open(parent(path)); err != nil {
		return err
	}
	return u.removeFile(in, path.Base(), u.victimFile(i))
}

// dirs removes the directories that are wanted, deepest first.
func (u *undo) dirs(wanted func(*plannedDir) bool) {
	for i := len(u.plan.dirs) - 1; i >= 0; i-- {
		d := &u.plan.dirs[i]
		if wanted(d) {
			u.note(d.path.String(), gone(u.dir(d)))
		}
	}
}

func (u *undo) dir(d *plannedDir) error {
	in, err := u.inStage.open(parent(d.path))
	if err == nil {
		err = removeDir(in, d.path.Base(), &d.mark, true)
	}
	if !errors.Is(err, fs.ErrNotExist) || u.phase < phasePrepared || d.top == none {
		return err
	}
	if in, err = u.inRoot.open(parent(d.path)); err != nil {
		return err
	}
	err = removeDir(in, d.path.Base(), &d.mark, false)
	if u.revived && errors.Is(err, errForeign) { // ours went before, and this is no target
		return nil
	}
	return err
}

// sync makes the removals durable.
func (u *undo) sync() {
	dirs := u.touched()
	for i := range u.attempt.artifacts {
		dirs = append(dirs, parent(u.attempt.artifacts[i].path))
	}
	u.note("", syncDirs(dirs, u.root))
}

// targets looks at every target once more. One that is there now is somebody
// else's; it stays, and the state before is not reached (decision D15).
func (u *undo) targets() {
	missing := ""
	for i := range u.spec.Files {
		path := u.spec.Files[i].Path
		if missing != "" && strings.HasPrefix(path.String(), missing) {
			continue // below a directory that is not there
		}
		missing = ""
		site, err := u.root.survey(path)
		u.noteTarget(path.String(), site.Exists, err)
		if up := parents(path); err == nil && site.Missing < len(up) {
			missing = up[site.Missing].String() + "/"
		}
	}
	for i := range u.attempt.artifacts {
		path := u.attempt.artifacts[i].path
		site, err := u.root.survey(path)
		u.noteTarget(path.String(), site.Exists, err)
	}
}

func (u *undo) noteTarget(path string, exists bool, err error) {
	if err == nil && exists {
		err = errTaken
	}
	u.note(path, err)
}

// halt marks the root as one where a person must act. The journal that is
// left says so too, but a journal alone may also come from a kill, and then the
// next session tries to end what it says. It is all that can be done: it has no
// error.
func (a *attempt) halt() {
	if a.stage.h == nil {
		return
	}
	f, err := a.stage.create(haltedName, ownFile)
	if errors.Is(err, fs.ErrNotExist) { // somebody removed the staging directory
		f, err = a.haltAnew()
	}
	if err == nil {
		_ = a.s.closeFile(f)
		_ = a.stage.sync()
		_ = a.root.sync()
	}
}

func (a *attempt) haltAnew() (*os.File, error) {
	if err := a.root.mkdirOwn(a.stageName()); err != nil {
		return nil, err
	}
	stage, err := a.root.openName(a.stageName())
	if err != nil {
		return nil, err
	}
	a.stage.close()
	a.stage = stage
	return stage.create(haltedName, ownFile)
}
