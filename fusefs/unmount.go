package fusefs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// A BusyError says who keeps a live view from being unmounted.
type BusyError struct {
	Path    string
	Holders []Holder // those that this user may see
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
		who.WriteString("somebody whom this user cannot see")
	}
	return fmt.Sprintf("unmount %q: the view is in use by %s", e.Path, who.String())
}

// Unwrap makes it a unix.EBUSY.
func (e *BusyError) Unwrap() error { return unix.EBUSY }

// Unmount ends the view on a mount point, whichever process serves it. One whose
// server has gone ("transport endpoint is not connected") is taken away even
// while somebody holds it; a live one in use is a [*BusyError]. The server of another
// user is not asked; his view counts as live while a process has a connection of FUSE
// that may be its. What is not a
// spectrum view is left alone: [ErrNotMounted], [ErrNotSpectrum].
func Unmount(mountpoint string) error { return unmountWith(hostSystem(), mountpoint) }

func unmountWith(sys system, mountpoint string) error {
	p, err := openPlace(mountpoint)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.checkKind(); err != nil {
		return &MountpointError{p.path, err}
	}
	if !sys.direct {
		return sys.unmountOwn(p)
	}
	// Held, it cannot be unmounted but lazily: so the holders are looked for.
	holders := holdersOf(idOf(p.mount), p.fd)
	flags := 0
	if served.IsForeign(p.mount) {
		flags = unix.MNT_FORCE // or the end of the mount might wait for its server
	}
	// Only now ask the server whether it lives: one that does not answer keeps
	// the question, and so the mount, pending.
	if len(holders) > 0 && !p.isDead() {
		return &BusyError{p.path, holders}
	}
	return p.detach(flags)
}

// unmountOwn has the helper unmount, which takes a path. It unmounts nothing but
// views of this user, and that this one has gone is looked up afterwards.
func (s system) unmountOwn(p *place) error {
	p.close() // it would keep the mount busy itself
	err := s.unmountHelped(p.path, false)
	if err == nil {
		return p.isGone()
	}
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	holders := holdersOf(idOf(p.mount), -1)
	again, openErr := openPlace(p.path)
	if openErr != nil {
		return openErr
	}
	defer again.close()
	if !again.isSame(p) || !again.isDead() {
		return &BusyError{p.path, holders}
	}
	return s.clear(again)
}

// clear takes a mount of this user away although it is in use: its connection is cut
// first, by its number, and what is left is for the helper.
func (s system) clear(p *place) error {
	if s.direct {
		return p.detach(0)
	}
	_ = abortConnection(p.mount.Minor) // it may be dead already, or the control files not be mounted
	if err := s.unmountHelped(p.path, true); err != nil {
		return err
	}
	return p.isGone()
}

// isGone is an error while the mount is still in the table.
func (p *place) isGone() error {
	if m, err := inTable(idOf(p.mount)); err != nil || m == nil || !isThere(p.unique) {
		return err
	}
	return &MountpointError{p.path, errReplaced}
}

// isSame reports whether two places are in one mount.
func (p *place) isSame(q *place) bool { return idOf(p.mount) == idOf(q.mount) && p.unique == q.unique }
