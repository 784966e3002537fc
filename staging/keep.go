package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Other processes work at the names of a change that is not a commit. An entry that comes out of a
// swap is moved to old, whatever it is: under the number of its swap or, if that name is
// taken, the number with a suffix. When all is done, or undone, every entry that is not
// exactly the planned old one is moved to its path in the directory kept of staging, which
// then gets a name in the root.

// A Kept is something of others that was displaced, or was put at the name of something that
// came.
type Kept struct {
	Path pathsafe.Path // its original path
	At   string        // where it is now, beneath the root
	Open bool          // it is the planned old entry, and a process has it open for writing
	Old  bool          // a commit has displaced it and was undone, and something newer is at Path
	// Undone is set if the entry is the new file of an undone commit, and a process writes to
	// it.
	Undone bool
	// Earlier is set if an earlier recovery, which was killed, kept it: the reason is not known.
	Earlier bool
}

// A Stayed is an old entry that was not removed, and the reason: another entry is in it, or
// this user may not move it. Its parent directories stay with it.
type Stayed struct {
	Path pathsafe.Path
	Why  error
}

// Kept returns the entries that were kept, once Close or Abort has ended the transaction.
func (tx *Tx) Kept() []Kept { return tx.a.kept }

// Stayed returns the old entries that were not removed, once Move is done, children first.
func (tx *Tx) Stayed() []Stayed { return tx.a.stayed }

// maxFlips limits the attempts at a name at which other processes make and remove entries.
const maxFlips = 100

var errFlips = machine.Disturbed("other processes keep creating and removing an entry there")

// swapKeeping makes one swap, whatever entry is at its name.
func (a *attempt) swapKeeping(s *swapping, in dir) error {
	base := s.path.Base()
	if s.hasOld && s.empty {
		if gone, err := a.removeEmpty(s, in); gone || err != nil {
			return err
		}
	}
	if s.hasNew && !s.last {
		return a.putNew(s, in)
	}
	if !s.hasOld {
		return nil
	}
	err := a.setAside(in, base, s)
	if (errors.Is(err, fs.ErrPermission) || isMount(err)) && !s.hasNew && !s.last { // it is immutable, for one
		a.stays(s, err)
		return nil
	}
	return gone(err)
}

// stays records that an old entry stays, unless an entry beneath it is recorded already.
func (a *attempt) stays(s *swapping, why error) {
	if !slices.ContainsFunc(a.stayed, func(in Stayed) bool { return below(in.Path, s.path) }) {
		a.stayed = append(a.stayed, Stayed{s.path, why})
	}
}

// removeEmpty removes an old directory if it is an empty directory; done is false if another
// entry is there, which must be displaced like others.
func (a *attempt) removeEmpty(s *swapping, in dir) (done bool, err error) {
	err = a.isEmpty(in, s.path.Base())
	switch {
	case err != nil:
	case s.remake != nil:
		err = in.Rmdir(s.path.Base())
	default:
		err = a.moveEmpty(s, in)
	}
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, pathsafe.ErrSymlink):
		return false, nil
	case s.hasNew:
		return false, gone(err)
	case errors.Is(err, errNotEmpty), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, fs.ErrPermission), isMount(err):
		a.stays(s, err)
		err = nil
		if s.isClosed() {
			err = a.setMode(s, s.was.Mode|0o300, s.was.Mode)
		}
	}
	return true, gone(err)
}

// isEmpty requires that the directory name of d is empty.
func (a *attempt) isEmpty(d dir, name string) error {
	sub, err := d.enter(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := sub.Names()
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%w: %q is in it", errNotEmpty, names[0])
	}
	return err
}

// moveEmpty moves a directory to old. If another process has put an entry into it in that
// instant it is moved back; if its name is taken by then, it is kept.
func (a *attempt) moveEmpty(s *swapping, in dir) error {
	if err := in.shift(s.path.Base(), a.olds, s.name); err != nil {
		return err
	}
	err := a.isEmpty(a.olds, s.name)
	if !errors.Is(err, errNotEmpty) {
		return nil // whatever else it is, it makes way
	}
	back := a.olds.shift(s.name, in, s.path.Base())
	if errors.Is(back, fs.ErrExist) {
		return nil
	}
	if back != nil {
		return back
	}
	return err
}

// putNew moves the new entry to its name, in one step, displacing an existing entry.
func (a *attempt) putNew(s *swapping, in dir) error {
	base := s.path.Base()
	for range maxFlips {
		st, err := a.news.Stat(s.name)
		if err != nil {
			return err
		}
		if !s.fresh.is(st) { // it came out before this was killed, and the new entry has its name
			return a.setAside(a.news, s.name, s)
		}
		err = a.news.shift(s.name, in, base)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		err = in.exchange(base, a.news, s.name)
		switch {
		case err == nil:
			return a.setAside(a.news, s.name, s)
		case errors.Is(err, errors.ErrUnsupported):
			err = a.setAside(in, base, s)
		}
		if gone(err) != nil {
			return err
		}
	}
	return errFlips
}

// setAside moves the entry at a name to old, under the number of a swap.
func (a *attempt) setAside(in dir, name string, s *swapping) error {
	to := s.name
	for n := 1; ; n++ {
		err := in.shift(name, a.olds, to)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		to = s.name + "." + strconv.Itoa(n)
	}
}

// keepRest keeps the foreign entries that are left in old and new, durably: when all is done
// or undone, everything else has left these directories.
func (a *attempt) keepRest() error {
	for _, part := range []dir{a.olds, a.news} {
		if part.H == nil || a.isCommit() && part == a.news { // new has the entries of other names
			continue
		}
		names, err := part.Names()
		if gone(err) != nil { // of a directory that others have removed nothing is left to keep
			return err
		}
		for _, name := range names {
			number, _, _ := strings.Cut(name, ".")
			if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(a.swaps) && (!a.isCommit() || a.swaps[i].hasOld) {
				if err := a.keepOne(part, name, &a.swaps[i]); err != nil {
					return err
				}
			}
		}
	}
	return a.showKept()
}

// keepOne moves something to its path in kept; where that is taken, or something that was kept
// is on the way there, to a name of its own.
func (a *attempt) keepOne(from dir, name string, s *swapping) error {
	keep := Kept{Path: s.path, Open: s.isOpen && from == a.olds && name == s.name}
	if st, err := from.Stat(name); a.displacesForCommit(s) && a.phase != phaseCommitted && err == nil {
		keep.Undone = s.fresh.is(st)
		keep.Old = !keep.Undone
	}
	path := outOfKept(s.path)
	if err := a.makeKeeping(); err != nil {
		return err
	}
	in, err := a.keeping.open(pathsafe.Path{})
	for _, up := range parents(path) {
		if err != nil {
			break
		}
		above := in
		if err = above.mkdirOwn(up.Base()); err == nil || errors.Is(err, fs.ErrExist) {
			in, err = above.enter(up.Base())
		}
		above.Close()
	}
	if err == nil {
		err = from.shift(name, in, path.Base())
		in.Close()
	}
	if err == nil {
		keep.At = path.String()
		a.kept = append(a.kept, keep)
		return nil
	}
	for n := 0; ; n++ {
		to := fmt.Sprintf("%s-%d", name, n)
		err := from.shift(name, a.keeping, to)
		if err == nil {
			keep.At = to
			a.kept = append(a.kept, keep)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// makeKeeping opens the directory kept, and makes it unless a killed one has.
func (a *attempt) makeKeeping() error {
	if a.keeping.H != nil {
		return nil
	}
	err := a.stage.mkdirOwn(keepingName)
	if err == nil || errors.Is(err, fs.ErrExist) {
		a.keeping, err = a.stage.enter(keepingName)
	}
	return err
}

// showKept gives the directory of kept entries a name in the root, after its content is
// durable.
func (a *attempt) showKept() error {
	name := ""
	_, err := a.stage.Stat(keepingName)
	if err == nil {
		err = a.root.SyncFS()
	}
	if err == nil {
		name, err = a.showAs(a.stage, keepingName)
	}
	if gone(err) != nil {
		return err
	}
	for i := range a.kept {
		a.kept[i].At = name + "/" + a.kept[i].At
	}
	shown, err := a.shown()
	if err != nil || len(shown) == 0 {
		return err
	}
	return errors.Join(a.stage.Sync(), a.root.Sync()) // also of one that was killed then
}

// showAs gives a directory of the attempt a name in the root under which it was kept. Another user
// may have taken the first one, and can foresee none of the others.
func (a *attempt) showAs(in dir, name string) (shown string, err error) {
	shown = keptPrefix + a.id
	for range maxFlips {
		err = in.rename(name, a.root, shown)
		if !errors.Is(err, fs.ErrExist) {
			return shown, err
		}
		shown = keptPrefix + a.id + "-" + uuid.NewString()[:8]
	}
	return "", errFlips
}

// shown returns the names in the root that showAs has given, also in one that was killed since.
func (a *attempt) shown() (names []string, err error) {
	all, err := a.root.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if !strings.HasPrefix(name, keptPrefix+a.id) {
			continue
		}
		st, err := a.root.Stat(name)
		if gone(err) != nil {
			return nil, err
		}
		if err == nil && st.Mode.IsDir() && st.Private() {
			names = append(names, name)
		}
	}
	return names, nil
}

// keptBefore returns an error that names where entries were kept, also by an earlier, killed
// run; nil if there are none.
func (a *attempt) keptBefore() error {
	names, err := a.shown()
	if err != nil || len(names) == 0 {
		return err
	}
	return fmt.Errorf("files that other processes put or changed at its names are kept in %q", strings.Join(names, ", "))
}

// keptPrefix begins the name of what a transaction has kept, or a released one has left: it is to
// be seen.
const keptPrefix = "spectrum-kept-"

// IsKept reports whether a name in a root is that of a directory of kept entries.
func IsKept(name string) bool {
	const length = 36 // of a UUID
	id, is := strings.CutPrefix(name, keptPrefix)
	return is && len(id) >= length && isUUID(id[:length]) && (len(id) == length || id[length] == '-')
}

// outOfKept returns the original path of an entry that was kept before: an entry that is kept
// repeatedly does not get deeper each time.
func outOfKept(path pathsafe.Path) pathsafe.Path {
	for {
		top, rest, nested := strings.Cut(path.String(), "/")
		out, err := pathsafe.Found(rest)
		if !nested || !IsKept(top) || err != nil {
			return path
		}
		path = out
	}
}

// isWorthless reports whether an entry that was displaced under a number is exactly the
// planned old one, and cannot change any more: no process has it open for writing.
func (a *attempt) isWorthless(s *swapping, name string, st pathsafe.Stat) (bool, error) {
	if s.unsure || !s.old.is(st) {
		return false, nil
	}
	if !st.Mode.IsRegular() {
		return true, nil
	}
	open, now, err := a.olds.isWritten(name)
	s.isOpen = open && stateOf(st) == s.was
	return !open && stateOf(now) == s.was, err
}

// isWritten reports whether a process has the regular file name of d open for writing, and
// describes the file if none has. For a file that this user may not read this cannot be
// determined.
func (d dir) isWritten(name string) (open bool, st pathsafe.Stat, err error) {
	f, st, err := d.OpenFile(name)
	if errors.Is(err, fs.ErrPermission) {
		st, err = d.Stat(name)
		return false, st, err
	}
	if errors.Is(err, pathsafe.ErrLeased) { // the holder of a lease has the file open
		st, err = d.Stat(name)
		return true, st, err
	}
	if err != nil {
		return false, st, err
	}
	defer f.Close()
	if open, err = d.s.hasWriter(f); err == nil && !open {
		st, err = d.s.Identify(f)
	}
	return open, st, err
}

// HeldOpen returns the paths of the old files of swaps that a change would keep at present: a process has them open for writing, or they keep changing. Nothing is
// changed. A file that cannot be read is not included.
func HeldOpen(root *pathsafe.Dir, swaps []Swap) (held []pathsafe.Path) {
	top := on(root, &sysHook{})
	for i := range swaps {
		old, path := swaps[i].Old, swaps[i].Path
		if old == nil || !old.Mode.IsRegular() {
			continue
		}
		in, err := top.open(parent(path))
		if err != nil {
			continue
		}
		open, _, err := in.isWritten(path.Base())
		in.Close()
		if err == nil && (open || swaps[i].Unsure) {
			held = append(held, path)
		}
	}
	return held
}

// hasWriter reports whether a process has a file open for writing: the kernel grants a read
// lease only if not. For another user's file only root can find out; for other users it counts
// as open. A file system without leases reports none.
func (s *sysHook) hasWriter(f *os.File) (has bool, err error) {
	err = s.Do("lease", f.Name(), func() error {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		if err == nil {
			_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		}
		runtime.KeepAlive(f)
		has = errors.Is(err, unix.EAGAIN) || errors.Is(err, fs.ErrPermission)
		return nil
	})
	return has, err
}
