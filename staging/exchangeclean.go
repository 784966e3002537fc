package staging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// setDirs gives the directories that stay what they get. The base has to take
// the removal of staging first.
func (t *trade) setDirs(context.Context) *Error {
	for i := range t.swaps {
		if err := t.keepTime(&t.swaps[i], t.swaps[i].made); err != nil {
			return fail(StepFinalize, t.swaps[i].path.String(), err)
		}
	}
	for i := range t.dirs {
		t.dirs[i].touched = true
		d := t.dirs[i]
		if d.path == (pathsafe.Path{}) {
			d.get.mode |= 0o300
		}
		err := t.touch(&d, func(in dir) error { return t.give(in, d.get) })
		if err != nil {
			return fail(StepFinalize, d.path.String(), err)
		}
	}
	return fail(StepFinalize, "", t.syncMany())
}

// keepTime gives a directory that was moved to a name the time back that it had before:
// XFS sets it when a rename gives a directory another parent. What is gone from there, or
// may not be opened by this user, is not looked at.
func (t *trade) keepTime(s *swapping, was *pathsafe.Stat) error {
	if was == nil || !was.Mode.IsDir() || s.covered || s.covers {
		return nil
	}
	in, err := t.home(s)
	if err != nil {
		return err
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if err != nil || !beingOf(*was).is(st) || st.ModTime.Equal(was.ModTime) {
		return gone(err)
	}
	moved, err := in.enter(s.path.Base())
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer moved.close()
	err = moved.setTime(was.ModTime)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return errors.Join(err, moved.sync())
}

// lastTouch gives the base what it gets once more: the removal of staging has
// changed its time. What fails here changes nothing that counts.
func (t *trade) lastTouch(which func(d *staying) meta) {
	if d := t.baseDir(); d != nil {
		_ = t.touch(d, func(in dir) error { return errors.Join(in.give(which(d)), in.sync()) })
	}
}

// cleanUp removes what went, the journal and the staging directory.
func (t *trade) cleanUp() error {
	if len(t.swaps) > 0 { // else there is no INTENT any more: all of it went before
		if err := t.burnOld(); err != nil {
			return err
		}
	}
	if err := t.removeAll(); err != nil {
		return err
	}
	t.lastTouch(func(d *staying) meta { return d.get })
	return nil
}

func (t *trade) burnOld() error {
	if err := t.allParts(); err != nil {
		return err
	}
	for i := range t.swaps {
		if err := gone(t.removeOld(i)); err != nil {
			return fmt.Errorf("%q: %w", t.swaps[i].path.String(), err)
		}
	}
	return t.burn(t.trash)
}

// removeOld removes what went, if that is what stands there. A directory that
// was empty is only ever removed empty.
func (t *trade) removeOld(i int) error {
	s, name := &t.swaps[i], strconv.Itoa(i)
	if !s.goes {
		return nil
	}
	st, err := t.olds.stat(name)
	if err != nil {
		return err
	}
	if !s.old.is(st) {
		return errForeign
	}
	if s.empty {
		return t.olds.rmdir(name)
	}
	return t.olds.shift(name, t.trash, name)
}

// removeAll removes the staging directory with its journal. By now there is
// nothing else in it; what there is all the same is foreign, and stays.
func (t *trade) removeAll() error {
	for _, name := range partNames {
		if err := gone(t.stage.rmdir(name)); err != nil {
			return fmt.Errorf("%q: %w: %w", name, errForeign, err)
		}
	}
	names, err := t.stage.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !ofJournal(name) {
			return fmt.Errorf("%q: %w", name, errForeign)
		}
	}
	if err := t.removeRecords(names); err != nil {
		return err
	}
	if err := t.removeStage(); err != nil {
		return err
	}
	_ = t.base.sync()
	return nil
}

// removeRecords removes the journal: the record that says how it ended is the
// last one. Whatever a crash brings back, no record is left without the one that it
// depends on: without COMMITTED the others lead back, without INTENT what was beside
// them cannot be told from what is foreign.
func (t *trade) removeRecords(names []string) error {
	last := intentName
	if t.phase == phaseCommitted {
		last = committedName
	}
	for i, turn := range []func(name string) bool{
		func(name string) bool { return name == haltedName || name == preparedName },
		func(name string) bool { return name != last },
		func(name string) bool { return name == last },
	} {
		if i > 0 {
			if err := t.stage.sync(); err != nil {
				return err
			}
		}
		for _, name := range names {
			if !turn(name) {
				continue
			}
			if err := gone(t.stage.unlink(name)); err != nil {
				return err
			}
		}
		names = slices.DeleteFunc(names, turn)
	}
	return nil
}

func (t *trade) removeStage() error {
	if !t.stageMark.tried {
		return nil
	}
	return gone(removeDir(t.base, t.stageName, &t.stageMark, true))
}

// maxDepth is how deep a removal goes with a handle for each directory. What is
// deeper it moves up first.
const maxDepth = 64

const risenPrefix = "risen-"

// burn removes everything beneath d, which is in staging. It follows no link and
// enters no other mount. A name is only ever that of something in the handle of
// its directory, so it may be any.
func (t *trade) burn(d dir) error {
	b := &burner{top: d}
	for {
		names, err := d.names()
		if err != nil || len(names) == 0 {
			return err
		}
		if err := b.all(d, names, 1); err != nil {
			return err
		}
	}
}

type burner struct {
	top   dir
	risen int
}

func (b *burner) all(in dir, names []string, depth int) error {
	for _, name := range names {
		if err := gone(b.one(in, name, depth)); err != nil {
			return err
		}
	}
	return nil
}

func (b *burner) one(in dir, name string, depth int) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if !st.Mode.IsDir() {
		return in.unlink(name)
	}
	if st.Perm&0o700 != 0o700 {
		if err := in.chmodDir(name, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if depth >= maxDepth {
		return b.rise(in, name)
	}
	sub, err := in.enter(name)
	if err != nil {
		return err
	}
	defer sub.close()
	names, err := sub.names()
	if err == nil {
		err = b.all(sub, names, depth+1)
	}
	if err != nil {
		return err
	}
	return in.rmdir(name)
}

// rise moves a directory up to the top, where it is found later.
func (b *burner) rise(in dir, name string) error {
	for {
		b.risen++
		err := in.shift(name, b.top, risenPrefix+strconv.Itoa(b.risen))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// fingerprint is one of everything that stands at a name: of each thing its
// name, its identity and, but for directories, its size and time.
func fingerprint(in dir, name string) (string, error) {
	st, err := in.stat(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	addPrint(h, "", st)
	if st.Mode.IsDir() {
		sub, err := in.enter(name)
		if err != nil {
			return "", err
		}
		defer sub.close()
		err = sub.walk(func(rel string, st pathsafe.Stat) error {
			addPrint(h, rel, st)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func addPrint(h hash.Hash, rel string, st pathsafe.Stat) {
	b := beingOf(st)
	line := fmt.Appendf(nil, "%s\x00%d %d %d", rel, b.Ino, b.Born, b.Type)
	if !st.Mode.IsDir() {
		line = fmt.Appendf(line, " %d %d.%d", st.Size, st.ModTime.Unix(), st.ModTime.Nanosecond())
	}
	h.Write(append(line, 0))
}

// exchangeOf reads the name of the staging directory of an exchange in the root.
func exchangeOf(name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, exchangePrefix)
	return id, ok && isUUID(id)
}
