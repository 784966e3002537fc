package staging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

var (
	errUnfit = machine.Disturbed("the records of its journal are inconsistent")
	// errChanged reports that the content of an entry differs from the record.
	errChanged = machine.Disturbed("its content was changed by another process")
)

// A check reads content and returns nil if it is as recorded.
type check func(ctx context.Context, f io.ReaderAt) error

// check returns the check for the content of a created file.
func (t createdRecord) check() check {
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

// revive makes an attempt again from the records in its staging directory, as far as they go.
// An empty key disables the checks of the HMACs.
func (a *attempt) revive(key []byte) error {
	var r intentRecord
	intent, err := a.stage.read(key, intentName, &r)
	if err != nil {
		return err
	}
	if intent {
		if err := a.reviveIntent(&r); err != nil {
			return err
		}
	}
	if err := a.revivePrepared(key, intent); err != nil {
		return err
	}
	return a.reviveCommitted(key, intent)
}

func (a *attempt) reviveIntent(r *intentRecord) error {
	root, err := a.root.StatSelf()
	if err != nil {
		return err
	}
	stage, err := a.stage.StatSelf()
	if err != nil {
		return err
	}
	if !a.takeName(r.Attempt, r.Kind) {
		return errUnfit
	}
	if !r.Root.is(root) || !r.Stage.is(stage) {
		return errors.New("its journal was written for another directory")
	}
	a.mount = root.ID
	if err := a.reviveSwaps(r.Swaps); err != nil {
		return err
	}
	for i := range r.Dirs {
		d, err := r.Dirs[i].staying()
		if err != nil {
			return err
		}
		a.dirs = append(a.dirs, d)
	}
	for _, t := range r.Times {
		path := pathsafe.Path{} // of the root
		if len(t.Path) > 0 {
			if path, err = pathsafe.Found(string(t.Path)); err != nil {
				return err
			}
		}
		a.times = append(a.times, staying{path: path, self: t.Self, have: Metadata{ModTime: time.Unix(t.Sec, t.Nsec)}})
	}
	if err := a.reviveMade(r.Made); err != nil {
		return err
	}
	a.phase, a.known = phaseIntent, true
	return nil
}

func (a *attempt) reviveSwaps(records []swapRecord) error {
	for i := range records {
		r := &records[i]
		path, err := pathsafe.Found(string(r.Path))
		if err != nil {
			return err
		}
		s := swapping{path: path, since: r.Since, name: strconv.Itoa(i), parent: r.Parent, hasNew: r.New, empty: r.Empty, unsure: r.Unsure, last: r.Last, tree: r.New && !a.isCommit()}
		if r.Old != nil {
			if r.Was == nil {
				return errUnfit
			}
			s.hasOld, s.old, s.was = true, *r.Old, *r.Was
			if r.Remake != nil {
				m := r.Remake.metadata()
				s.remake = &m
			}
		}
		switch {
		case a.isCommit() && (!s.hasNew && !s.hasOld || s.hasOld && s.since != phasePrepared), !a.isCommit() && s.since != phasePrepared, (s.since == phaseIntent) != (r.Made != nil):
			return errUnfit
		case s.since == phaseIntent:
			s.name, s.created, s.check = manifestStaged, r.Made.createdIn(a.mount), r.Made.check()
			s.fresh = s.created.identity(0)
		case s.since == phaseCommitted:
			s.name = strconv.Itoa(a.artifacts)
			a.artifacts++
		case s.since != phasePrepared, a.artifacts > 0: // artifacts are the last ones
			return errUnfit
		}
		a.swaps = append(a.swaps, s)
	}
	a.findCovered()
	return nil
}

// reviveMade makes the copies, directories and files, of an intent.
func (a *attempt) reviveMade(records []entryRecord) error {
	for i := range records {
		r := &records[i]
		path, err := pathsafe.Found(string(r.Path))
		if err != nil {
			return err
		}
		switch {
		case r.Swap == none && r.Dir:
		case r.Swap < 0 || r.Swap >= len(a.swaps) || a.swaps[r.Swap].since != phasePrepared:
			return errUnfit
		case path != a.swaps[r.Swap].path && !below(path, a.swaps[r.Swap].path):
			return errUnfit
		}
		if r.Dir && len(a.copies.files) == 0 {
			a.copies.dirs = append(a.copies.dirs, copiedDir{path: path, top: r.Swap})
			continue
		}
		if r.Dir || !a.isCommit() {
			return errUnfit
		}
		a.copies.files = append(a.copies.files, copiedFile{path: path, dir: none, top: r.Swap})
	}
	return nil
}

// takeName sets the attempt's UUID and kind from a record, and reports whether they are valid.
func (a *attempt) takeName(id, kind string) bool {
	if a.id != id || a.isCommit() != (kind == KindCommit) || kind != KindCommit && !validKind(kind) {
		return false
	}
	a.kind = kind
	return true
}

// revivePrepared reads PREPARED. Without INTENT, which is removed after it, the record can
// only have been brought back by a crash; it is then ignored.
func (a *attempt) revivePrepared(key []byte, intent bool) error {
	var r preparedRecord
	found, err := a.stage.read(key, preparedName, &r)
	if err != nil || !found {
		return err
	}
	if r.Attempt != a.id {
		return errUnfit
	}
	if !intent {
		return nil
	}
	dirs := len(a.copies.dirs)
	if len(r.Made) != dirs+len(a.copies.files) {
		return errUnfit
	}
	for i := range r.Made {
		if i < dirs {
			a.copies.dirs[i].created = r.Made[i].createdIn(a.mount)
			continue
		}
		f := &a.copies.files[i-dirs]
		f.created, f.Size, f.Check = r.Made[i].createdIn(a.mount), r.Made[i].Size, r.Made[i].check()
	}
	a.knowTops()
	news := 0
	for i := range a.swaps {
		if !a.swaps[i].tree {
			continue
		}
		if news == len(r.New) || r.New[news].Swap != i || r.New[news].Self == (identity{}) {
			return errUnfit
		}
		a.swaps[i].fresh, a.swaps[i].print = r.New[news].Self, r.New[news].Print
		news++
	}
	if news != len(r.New) {
		return errUnfit
	}
	for _, l := range r.LeftOut {
		if l.Swap < 0 || l.Swap >= len(a.swaps) {
			return errUnfit
		}
		s := &a.swaps[l.Swap]
		s.leftOut = append(s.leftOut, LeftOut{What: string(l.What), Why: errors.New(l.Why)})
	}
	a.phase = phasePrepared
	return nil
}

func (a *attempt) reviveCommitted(key []byte, intent bool) error {
	seen := false
	for i, name := range []string{committedName, rollingBackName} {
		var r committedRecord
		found, err := a.stage.read(key, name, &r)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if seen || !a.takeName(r.Attempt, r.Kind) || intent && len(r.Artifacts) != a.artifacts {
			return errUnfit
		}
		seen = true
		for k := range a.artifacts {
			s := &a.swaps[a.firstArtifact()+k]
			s.created, s.check = r.Artifacts[k].createdIn(a.mount), r.Artifacts[k].check()
			s.fresh = s.created.identity(0)
		}
		if r.Base != nil && !intent {
			base, err := r.Base.staying()
			if err != nil || base.path != (pathsafe.Path{}) {
				return errUnfit
			}
			a.dirs = append(a.dirs, base)
		}
		p := []phase{phaseCommitted, phaseRollingBack}[i]
		if p == phaseRollingBack && a.phase == phaseIntent {
			continue // a rollback removes PREPARED only when it is done, and then INTENT is enough
		}
		a.phase = p
	}
	return nil
}

// peek finds out which attempt it is that cannot be ended, as far as its records
// can be read at all. Nothing is built on it.
func (a *attempt) peek() {
	var intent intentRecord
	var committed committedRecord
	if found, err := a.stage.read(nil, intentName, &intent); found && err == nil {
		a.takeName(intent.Attempt, intent.Kind)
	}
	if found, err := a.stage.read(nil, committedName, &committed); found && err == nil {
		a.takeName(committed.Attempt, committed.Kind)
	}
}
