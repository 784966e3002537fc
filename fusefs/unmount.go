package fusefs

import (
	"errors"
	"fmt"
	"strings"

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
// while somebody holds it; a live one in use is a [*BusyError]. What is not a
// spectrum view is left alone: [ErrNotMounted], [ErrNotSpectrum].
func Unmount(mountpoint string) error { return unmountWith(hostSystem(), mountpoint) }

func unmountWith(sys system, mountpoint string) error {
	p, err := openPlace(mountpoint)
	if err != nil {
		return err
	}
	p.close() // it would keep the mount busy itself
	if err := p.checkKind(); err != nil {
		return &MountpointError{p.path, err}
	}
	err = sys.unmount(p.path, false)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	// Only now ask the server whether it lives: one that does not answer keeps
	// the question, and so the mount, pending.
	holders := holdersOf(idOf(p.mount))
	if isDeadView(p.path) {
		return sys.unmount(p.path, true)
	}
	return &BusyError{p.path, holders}
}

func isDeadView(path string) bool {
	p, err := openPlace(path)
	if err != nil {
		return false
	}
	defer p.close()
	return p.checkKind() == nil && p.isDead()
}
