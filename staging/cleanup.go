package staging

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"slices"
	"strconv"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// lastTouch sets the metadata of the base again: removing staging and the lock has changed its
// time, and its mode may bar its owner. Errors are ignored, since they affect no content.
func (a *attempt) lastTouch(which func(d *staying) Metadata) {
	if d := a.baseDir(); d != nil {
		a.lock.release()
		_ = a.touch(d, func(in dir) error { return errors.Join(in.give(which(d)), in.Sync()) })
	}
}

// cleanUp removes what is left at the end: displaced entries, the chain manifest, the
// directories in staging, the journal and the staging directory.
func (a *attempt) cleanUp() error {
	return a.despiteMounts(func() error {
		if a.known && len(a.swaps) > 0 { // otherwise INTENT, and so all of it, was removed before
			if err := a.removeDisplaced(); err != nil {
				return err
			}
		}
		if err := a.removeStaging(); err != nil {
			return err
		}
		a.unpin()
		a.lastTouch(func(d *staying) Metadata { return d.get })
		return nil
	})
}

// removeDisplaced removes or keeps displaced entries, and for a commit also the directories
// below staging that mirror existing ones, and the chain manifest.
func (a *attempt) removeDisplaced() error {
	u := &undo{attempt: a}
	if a.isCommit() { // it makes nothing in a staging directory that others have emptied
		u.note(a.stageName, a.openParts())
	} else if err := a.allParts(); err != nil {
		return err
	}
	for i := range a.swaps {
		if s := &a.swaps[i]; s.hasOld && a.olds.H != nil {
			u.note(s.path.String(), gone(a.removeOneDisplaced(s)))
		}
	}
	if u.err() == nil && a.olds.H != nil {
		u.note(keepingName, a.keepRest())
	}
	if a.isCommit() && a.news.H != nil {
		u.prune(a.news, span{dirs: [2]int{0, len(a.copies.dirs)}}, func(top int) bool { return top == none }, "", "")
	}
	if a.swaps[0].since == phaseIntent {
		u.note(a.swaps[0].path.String(), u.retract(0))
		u.discardTaken()
		if u.err() == nil {
			u.note("", a.root.Sync())
		}
	}
	return u.err()
}

// removeOneDisplaced removes a displaced entry if its identity matches. An entry that other
// processes may have changed, or still can, is kept, and so is a directory with an entry of
// theirs.
func (a *attempt) removeOneDisplaced(s *swapping) error {
	st, err := a.olds.Stat(s.name)
	if err != nil {
		return err
	}
	if is, err := a.isWorthless(s, s.name, st); err != nil || !is {
		return err
	}
	if !s.empty {
		return a.olds.Unlink(s.name)
	}
	err = a.olds.Rmdir(s.name)
	if errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// removeStaging removes the staging directory with its journal. By now there is
// nothing else in it; what there is all the same is foreign, and stays.
func (a *attempt) removeStaging() error {
	for name := range a.parts() {
		if err := gone(a.stage.Rmdir(name)); err != nil {
			return fmt.Errorf("%q: %w: %w", name, errForeign, err)
		}
	}
	names, err := a.stage.Names()
	if gone(err) != nil {
		return err
	}
	for _, name := range names {
		if !ofJournal(name) {
			return fmt.Errorf("%q: %w", name, errForeign)
		}
	}
	if err := a.removeRecords(names); err != nil {
		return err
	}
	if err := a.removeStage(); err != nil {
		return err
	}
	_ = a.root.Sync()
	return nil
}

// removeRecords removes the journal, the record of the outcome last. Whatever a crash brings
// back, no record is left without the one that it depends on: without COMMITTED the others
// would mean an undo, and without INTENT the entries beside them could not be distinguished from
// foreign ones.
func (a *attempt) removeRecords(names []string) error {
	last := intentName
	if a.phase == phaseCommitted {
		last = committedName
	}
	unsafe := true // the directories that were beside them
	for i, turn := range []func(name string) bool{
		func(name string) bool { return name != last && name != intentName },
		func(name string) bool { return name != last },
		func(name string) bool { return name == last },
	} {
		if i > 0 && unsafe {
			if err := a.stage.Sync(); gone(err) != nil {
				return err
			}
			unsafe = false
		}
		for _, name := range names {
			if !turn(name) {
				continue
			}
			if err := gone(a.stage.Unlink(name)); err != nil {
				return err
			}
			unsafe = true
		}
		names = slices.DeleteFunc(names, turn)
	}
	return nil
}

func (a *attempt) removeStage() error {
	if !a.stageCreated.tried {
		return nil
	}
	return gone(removeDir(a.root, a.stageName, &a.stageCreated, true))
}

// maxDepth is how deep a removal goes with a handle for each directory. Deeper entries are
// first moved up.
const maxDepth = 64

const risenPrefix = "risen-"

// removeAll removes everything beneath d, which is in staging. It follows no link and
// enters no other mount. A name is only ever that of something in the handle of
// its directory, so it may be any.
func (a *attempt) removeAll(d dir) error {
	b := &remover{top: d}
	for {
		names, err := d.Names()
		if err != nil || len(names) == 0 {
			return err
		}
		if err := b.all(d, names, 1); err != nil {
			return err
		}
	}
}

type remover struct {
	top   dir
	risen int
}

func (b *remover) all(in dir, names []string, depth int) error {
	for _, name := range names {
		if err := gone(b.one(in, name, depth)); err != nil {
			return err
		}
	}
	return nil
}

func (b *remover) one(in dir, name string, depth int) error {
	st, err := in.Stat(name)
	if err != nil {
		return err
	}
	if !st.Mode.IsDir() {
		return in.Unlink(name)
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
	defer sub.Close()
	names, err := sub.Names()
	if err == nil {
		err = b.all(sub, names, depth+1)
	}
	if err != nil {
		return err
	}
	return in.Rmdir(name)
}

// rise moves a directory up to the top, where it is found later.
func (b *remover) rise(in dir, name string) error {
	for {
		b.risen++
		err := in.shift(name, b.top, risenPrefix+strconv.Itoa(b.risen))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// fingerprint returns a hash of everything at and beneath a name: of each entry its name and
// identity, and except for directories its size and time.
func fingerprint(in dir, name string) (string, error) {
	st, err := in.Stat(name)
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
		defer sub.Close()
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
	b := identityOf(st)
	line := fmt.Appendf(nil, "%s\x00%d %d %d", rel, b.Ino, b.Born, b.Type)
	if !st.Mode.IsDir() {
		line = fmt.Appendf(line, " %d %d.%d", st.Size, st.ModTime.Unix(), st.ModTime.Nanosecond())
	}
	h.Write(append(line, 0))
}
