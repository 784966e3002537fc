package staging

import (
	"github.com/spectrumfs/spectrum/pathsafe"
)

// rollback removes exactly what this attempt made, and says so: nil means that
// nothing of it is left and that no target exists (SPECTRUM-06 section 8.5.1).
// It goes on after an error. The order is that of section 8.5.2: what looks
// like success first, what says that something is unfinished last.
func (a *attempt) rollback() error {
	u := newUndo(a)
	defer u.close()
	u.unpublish()
	u.locate()
	u.files()
	u.dirs(func(d *plannedDir) bool { return true })
	u.probe()
	u.stageDir()
	u.manifest()
	u.sync()
	u.targets()
	return u.err()
}

// unpublish removes what was published, the last one first.
func (u *undo) unpublish() {
	for i := len(u.attempt.artifacts) - 1; i >= 0; i-- {
		p := &u.attempt.artifacts[i]
		if p.mark.tried {
			in, err := u.inRoot.open(parent(p.path))
			if err == nil {
				err = u.removeFile(in, p.path.Base(), &p.mark)
			}
			u.note(p.path.String(), gone(err))
		}
	}
}

// locate finds out which tops are at their target. What the moves returned
// does not count, only what stands there.
func (u *undo) locate() {
	for i := range u.plan.tops {
		t := &u.plan.tops[i]
		if !t.tried {
			continue
		}
		in, err := u.inRoot.open(parent(t.path))
		if err != nil {
			u.note(t.path.String(), gone(err))
			continue
		}
		st, err := in.stat(t.path.Base())
		u.note(t.path.String(), gone(err))
		u.placed[i] = err == nil && u.plan.markOf(t).is(st)
	}
}

func (p *plan) markOf(t *top) *mark {
	if t.dir != none {
		return &p.dirs[t.dir].mark
	}
	return &p.files[t.file].mark
}

// files removes the files, wherever their tops are.
func (u *undo) files() {
	for i := range u.plan.files {
		f := &u.plan.files[i]
		if !f.mark.tried {
			continue
		}
		path := u.spec.Files[i].Path
		u.note(path.String(), gone(u.file(path, f)))
	}
}

func (u *undo) file(path pathsafe.Path, f *plannedFile) error {
	at, remove := &u.inStage, u.removeStaged
	if u.isPlaced(f.top) {
		at, remove = &u.inRoot, u.removeFile
	}
	in, err := at.open(parent(path))
	if err != nil {
		return err
	}
	return remove(in, path.Base(), &f.mark)
}

// dirs removes the directories that are wanted, deepest first.
func (u *undo) dirs(wanted func(*plannedDir) bool) {
	for i := len(u.plan.dirs) - 1; i >= 0; i-- {
		d := &u.plan.dirs[i]
		if !d.mark.tried || !wanted(d) {
			continue
		}
		at, private := &u.inStage, true
		if u.isPlaced(d.top) {
			at, private = &u.inRoot, false
		}
		in, err := at.open(parent(d.path))
		if err == nil {
			err = removeDir(in, d.path.Base(), &d.mark, private)
		}
		u.note(d.path.String(), gone(err))
	}
}

// probe removes what an unfinished probe left.
func (u *undo) probe() {
	if u.stage.h == nil {
		return
	}
	for _, name := range []string{probeName, probeMoved} {
		u.note(name, gone(u.stage.rmdir(name)))
	}
}

// sync makes the removals durable.
func (u *undo) sync() {
	dirs := u.touched()
	for i := range u.attempt.artifacts {
		dirs = append(dirs, parent(u.attempt.artifacts[i].path))
	}
	u.note("", syncDirs(u.root, dirs))
}

// targets looks at every target once more. One that is there now is somebody
// else's; it stays, and the state before is not reached (decision D15).
func (u *undo) targets() {
	var missing string
	for i := range u.spec.Files {
		path := u.spec.Files[i].Path
		if missing != "" && len(path.String()) > len(missing) && path.String()[:len(missing)] == missing {
			continue // below a directory that is not there
		}
		missing = ""
		site, ok := u.target(path)
		if up := parents(path); ok && site.Missing < len(up) {
			missing = up[site.Missing].String() + "/"
		}
	}
	for _, art := range u.spec.Artifacts {
		u.target(art.Path)
	}
}

func (u *undo) target(path pathsafe.Path) (pathsafe.Site, bool) {
	site, err := u.root.survey(path)
	if err == nil && site.Exists {
		err = errTaken
	}
	u.note(path.String(), err)
	return site, err == nil
}
