package fusemount

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// A BusyError lists the holders that keep a live view from being unmounted.
type BusyError struct {
	Path    string
	Holders []Holder // those that this user can see
}

func (e *BusyError) Error() string {
	var who strings.Builder
	for i, h := range e.Holders {
		if i > 0 {
			who.WriteString(", ")
		}
		who.WriteString(h.String())
	}
	if len(e.Holders) == 0 {
		who.WriteString("a process that this user cannot see")
	}
	return fmt.Sprintf("unmount %q: the view is in use by %s", e.Path, who.String())
}

// Unwrap makes it a unix.EBUSY.
func (e *BusyError) Unwrap() error { return unix.EBUSY }

// Unmount unmounts the view on a mount point, whichever process serves it. A view whose server
// has died ("transport endpoint is not connected") is unmounted even while it is held; a live
// one in use is a [*BusyError]. The server of another user gets no request; its view counts as
// live while a process has a FUSE connection open that may be its own. A mount that is not a
// spectrum view is left alone: [ErrNotMounted], [ErrNotSpectrum]; and so is a view of another
// user, except for root: [*NotOwnError].
func Unmount(mountpoint string) error { return unmountWith(hostSystem(), mountpoint, served.OpenDir) }

// UnmountReal is [Unmount] for a path without symbolic links: it returns ELOOP for a link.
func UnmountReal(mountpoint string) error {
	return unmountWith(hostSystem(), mountpoint, served.OpenReal)
}

func unmountWith(sys system, mountpoint string, open func(path string) (int, error)) error {
	p, err := openHeldWith(mountpoint, open)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.checkKind(); err != nil {
		return &MountpointError{p.path, err}
	}
	if !sys.direct {
		if !served.IsOwn(p.mount) {
			return &MountpointError{p.path, &NotOwnError{served.By(p.mount)}}
		}
		return sys.unmountOwn(p)
	}
	// The open descriptor allows only a lazy unmount, so the holders are listed. One that holds a
	// view briefly, as a rollback does, is waited for.
	holders := holdersOf(idOf(p.mount), p.fd)
	for try := 1; try < umountTries && len(holders) > 0; try++ {
		time.Sleep(retryEvery)
		holders = holdersOf(idOf(p.mount), p.fd)
	}
	flags := 0
	if served.IsForeign(p.mount) {
		flags = unix.MNT_FORCE // or the end of the mount might wait for its server
	}
	// The server is asked last: if it does not answer, the pending request keeps the mount busy.
	if len(holders) > 0 && !p.isDead() {
		return &BusyError{p.path, holders}
	}
	return p.detach(flags)
}

// umountTries is the number of tries to unmount a busy view: another process may hold it briefly
// while it reads what the view shows (see Others), or while the helper unmounts a view of that
// process (see holdOthers).
const umountTries = 5

// unmountOwn calls the helper to unmount. A live view is not cut off first, as a dead one is:
// this user cannot see all its holders, which would lose it. The helper then reports it as
// busy.
func (s system) unmountOwn(p *heldDir) error {
	p.close() // it would keep the mount busy itself
	err := s.unmountNamed(p, false)
	for try := 1; try < umountTries && errors.Is(err, unix.EBUSY); try++ {
		time.Sleep(retryEvery)
		err = s.unmountNamed(p, false)
	}
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	holders := holdersOf(idOf(p.mount), -1)
	again, openErr := openHeld(p.path)
	if openErr != nil {
		return openErr
	}
	defer again.close()
	if !again.isSame(p) || !again.isDead() {
		return &BusyError{p.path, holders}
	}
	return s.clear(again)
}

// clear unmounts a mount of this user although it is in use.
func (s system) clear(p *heldDir) error {
	if s.direct {
		return p.detach(0)
	}
	_ = abortConnection(p.mount, p.unique) // it may be dead already, or the control files not be mounted
	return s.unmountDead(p)
}

// unmountDead calls the helper to unmount a mount whose connection was aborted. A held mount
// is unmounted lazily, which spares no other mount: only then the path is checked again.
func (s system) unmountDead(p *heldDir) error {
	p.close()
	err := s.unmountNamed(p, false)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	again, err := openHeld(p.path)
	if err != nil {
		return err
	}
	again.close()
	if !again.isSame(p) {
		return &MountpointError{p.path, errLedAstray}
	}
	return s.unmountNamed(p, true)
}

// errLedAstray: another process replaces directories on the path of a mount.
var errLedAstray = errors.New("the path leads to another mount now, which was left alone; retry")

// unmountNamed calls the helper, which requires a path: if a directory above is replaced, it
// unmounts whatever this user has mounted where the path leads. So all other mounts of the user
// with that name are held open while the helper runs. Afterwards it checks that this mount is gone,
// and none of the others.
func (s system) unmountNamed(p *heldDir, lazily bool) error {
	others, release := p.holdOthers()
	defer release()
	err := s.unmountHelped(p.path, lazily)
	if err == nil {
		for _, other := range others {
			if other.isGone() == nil {
				return &MountpointError{p.path, fmt.Errorf("%w: that on %q", errReplaced, other.path)}
			}
		}
	}
	if gone := p.isGone(); gone == nil || err == nil {
		return gone
	}
	return err
}

// holdWithin is the time limit for opening the mounts to be held: a path may lead through a file
// system that does not answer.
const holdWithin = 2 * time.Second

// holdOthers keeps the other FUSE mounts of this user busy whose mount points have the same
// name, until release is called. The helper looks up the directories above anew, and keeps
// the name.
func (p *heldDir) holdOthers() (held []*heldDir, release func()) {
	name := filepath.Base(p.path)
	all, _ := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !served.IsFUSE(m) || !served.IsOwn(m) || idOf(m) == idOf(p.mount) || filepath.Base(m.Mountpoint) != name, false
	})
	opened, stop := make(chan *heldDir), make(chan struct{})
	go func() {
		defer close(opened)
		for _, m := range all {
			other, err := openHeld(m.Mountpoint)
			if err != nil {
				continue // no path leads to it now
			}
			select {
			case opened <- other:
			case <-stop:
				other.close()
				return
			}
		}
	}()
	release = func() {
		close(stop)
		for _, other := range held {
			other.close()
		}
	}
	late := time.After(holdWithin)
	for {
		select {
		case other, more := <-opened:
			switch {
			case !more:
				return held, release
			case other.isSame(p):
				other.close() // the path of another mount leads to this one
			default:
				held = append(held, other)
			}
		case <-late:
			return held, release
		}
	}
}

// isGone is an error while the mount is still in the table.
func (p *heldDir) isGone() error {
	if m, err := inTable(idOf(p.mount)); err != nil || m == nil || !isThere(p.unique) {
		return err
	}
	return &MountpointError{p.path, errReplaced}
}

// isSame reports whether two places are in one mount.
func (p *heldDir) isSame(q *heldDir) bool {
	return idOf(p.mount) == idOf(q.mount) && p.unique == q.unique
}
