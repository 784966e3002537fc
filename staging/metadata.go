package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// setDirs sets the metadata of the directories that stay. The base comes later, after the
// removal of staging.
func (a *attempt) setDirs() *Error {
	for i := range a.swaps {
		if err := a.keepTime(&a.swaps[i], a.swaps[i].made); err != nil {
			return fail(StepFinalize, a.swaps[i].path.String(), err)
		}
	}
	for i := range a.dirs {
		a.dirs[i].touched = true
		d := a.dirs[i]
		if d.path == (pathsafe.Path{}) {
			d.get.Mode |= 0o300
		}
		err := a.touch(&d, func(in dir) error { return a.give(in, d.get) })
		if err != nil {
			return fail(StepFinalize, d.path.String(), err)
		}
	}
	return fail(StepFinalize, "", a.syncMany())
}

// keepTime restores the time of a directory that was moved to a name: XFS changes it when a
// rename gives a directory another parent. A directory that is gone, or that this user may not
// open, is skipped.
func (a *attempt) keepTime(s *swapping, was *pathsafe.Stat) error {
	if was == nil || !was.Mode.IsDir() || s.covered || s.covers {
		return nil
	}
	in, err := a.parentDir(s)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
	if err != nil || !identityOf(*was).is(st) || st.ModTime.Equal(was.ModTime) {
		return gone(err)
	}
	moved, err := in.enter(s.path.Base())
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer moved.Close()
	err = moved.setTime(was.ModTime)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return errors.Join(err, moved.Sync())
}

// tick is how far apart the times are that one rename gives to a name and its directory. Under load they
// can be further apart; then the directory does not get its time back. It is a variable for tests, which
// count system calls.
var tick = 10 * time.Millisecond

// keepTimesOfOthers leaves the directories their times in which another process has worked since this
// attempt has changed its last name there: what moves gets a time of change, too.
func (a *attempt) keepTimesOfOthers() {
	swaps := a.swapsIn()
	a.times = slices.DeleteFunc(a.times, func(d staying) bool {
		isOurs := false
		err := a.touch(&d, func(in dir) error {
			st, err := in.StatSelf()
			isOurs = err == nil && (st.ModTime.Equal(d.have.ModTime) || !st.ModTime.After(a.lastMove(in, swaps[d.path]).Add(tick)))
			return err
		})
		return err != nil || !isOurs
	})
}

// swapsIn returns the numbers of the swaps by the directories of their names.
func (a *attempt) swapsIn() map[pathsafe.Path][]int {
	swaps := map[pathsafe.Path][]int{}
	for i := range a.swaps {
		swaps[parent(a.swaps[i].path)] = append(swaps[parent(a.swaps[i].path)], i)
	}
	return swaps
}

// takeRootTime takes the time of the root from those that are restored with the names, since the end
// of the undo changes it once more. It returns nil if there is none, or another process has worked in
// the root since this attempt has changed its last name there.
func (a *attempt) takeRootTime() *staying {
	i := slices.IndexFunc(a.times, func(d staying) bool { return d.path == (pathsafe.Path{}) })
	if i < 0 {
		return nil
	}
	d := a.times[i]
	a.times = slices.Delete(a.times, i, i+1)
	st, err := a.root.StatSelf()
	if err != nil {
		return nil
	}
	last := a.lastMove(a.root, a.swapsIn()[d.path])
	if a.stage.H != nil {
		if st, err := a.stage.StatSelf(); err == nil && st.BirthTime.After(last) {
			last = st.BirthTime
		}
	}
	if !st.ModTime.Equal(d.have.ModTime) && st.ModTime.After(last.Add(tick)) {
		return nil
	}
	return &d
}

// restoreRootTime restores the time of the root after the undo of a commit, unless something was kept
// there. The removal of the lock keeps it. A wrong time must stop nothing, so errors are ignored.
func (a *attempt) restoreRootTime(d *staying) {
	if d == nil || len(a.kept) > 0 {
		return
	}
	err := a.touch(d, func(in dir) error { return in.setTime(d.have.ModTime) })
	a.lock.timed = err == nil
}

// lastMove is the newest time of change of what these swaps have moved into a directory or out of it.
func (a *attempt) lastMove(in dir, swaps []int) (last time.Time) {
	for _, i := range swaps {
		s := &a.swaps[i]
		for _, at := range []struct {
			dir  dir
			name string
		}{{in, s.path.Base()}, {a.olds, strconv.Itoa(i)}, {a.news, strconv.Itoa(i)}} {
			if at.dir.H == nil {
				continue
			}
			st, err := at.dir.Stat(at.name)
			if err == nil && (s.fresh.is(st) || s.old.is(st) || s.created.is(st)) && st.ChangeTime.After(last) {
				last = st.ChangeTime
			}
		}
	}
	return last
}

// restoreTimes restores the times of the directories in which an undone commit has changed names,
// durably. A wrong time must stop nothing, so errors are ignored.
func (a *attempt) restoreTimes() {
	back := 0
	for i := range a.times {
		d := &a.times[i]
		_ = a.touch(d, func(in dir) error {
			st, err := in.StatSelf()
			if err != nil || st.ModTime.Equal(d.have.ModTime) {
				return err
			}
			back++
			if err := in.setTime(d.have.ModTime); err != nil || len(a.times) > few {
				return err
			}
			return in.Sync()
		})
	}
	if back > 0 && len(a.times) > few {
		_ = a.root.SyncFS()
	}
}

// touch does something with a directory that stays, if it is still the one.
func (a *attempt) touch(d *staying, do func(in dir) error) error {
	in, err := a.root.open(d.path)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.StatSelf()
	if err == nil && !d.self.is(st) {
		err = errReplaced
	}
	if err != nil {
		return err
	}
	return do(in)
}

// give sets the metadata of one of the directories that stay, durably unless there are many of
// them: then one syncMany follows.
func (a *attempt) give(in dir, m Metadata) error {
	if err := in.give(m); err != nil || len(a.dirs) > few {
		return err
	}
	return in.Sync()
}

func (a *attempt) syncMany() error {
	if len(a.dirs) <= few {
		return nil
	}
	return a.root.SyncFS()
}

// give sets the metadata of a directory. Only its owner may set its time; for other users that
// time only records the changes beneath.
func (d dir) give(m Metadata) error {
	st, err := d.StatSelf()
	if err != nil {
		return err
	}
	err = d.setTime(m.ModTime)
	if err != nil && !(errors.Is(err, unix.EPERM) && int(st.UID) != os.Geteuid()) {
		return err
	}
	if err := d.giveOwner(m); err != nil {
		return err
	}
	return d.giveMode(m.Mode)
}

// giveOwner sets the owner, the group and the extended attributes where they differ. A new
// owner clears set-id bits, and an access list sets the bits of the group, so the mode is set
// later.
func (d dir) giveOwner(m Metadata) error {
	st, err := d.StatSelf()
	if err == nil && (st.UID != m.UID || st.GID != m.GID) {
		err = d.s.setOwner(d.H.Node(), m.UID, m.GID)
	}
	if err != nil {
		return err
	}
	have, err := d.s.Xattrs(d.H.Node())
	if err != nil {
		return err
	}
	for _, x := range have {
		if !slices.ContainsFunc(m.Xattrs, func(is pathsafe.Xattr) bool { return is.Name == x.Name }) {
			if err := d.s.removeXattr(d.H.Node(), x.Name); err != nil {
				return err
			}
		}
	}
	for _, x := range m.Xattrs {
		if !slices.Contains(have, x) {
			if err := d.s.setXattr(d.H.Node(), x); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveMode sets the mode if it differs: the kernel clears the set-group-id bit when a user
// outside the group sets the mode.
func (d dir) giveMode(mode uint32) error {
	st, err := d.StatSelf()
	if err != nil || st.Perm == mode {
		return err
	}
	if err := d.setMode(mode); err != nil {
		return err
	}
	if st, err = d.StatSelf(); err == nil && st.Perm != mode {
		err = fmt.Errorf("mode %04o: %w", mode, pathsafe.ErrGroup)
	}
	return err
}
