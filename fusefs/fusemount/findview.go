package fusemount

import (
	"fmt"

	"github.com/spectrumfs/spectrum/internal/served"
)

// FindView returns the real path of a live view that is mounted on a directory, by this user or by
// root. It returns a [*MountpointError]: [ErrNotMounted], [ErrNotSpectrum], [ErrDeadMount], or
// [ErrNotOwn] for a view of another user, whose server could answer anything or block forever.
func FindView(path string) (string, error) {
	p, err := openHeld(path)
	if err != nil {
		return "", err
	}
	defer p.close()
	if err := p.checkView(); err != nil {
		return "", &MountpointError{p.path, err}
	}
	return p.path, nil
}

// checkKind returns an error unless a view is mounted on the directory.
func (p *heldDir) checkKind() error {
	if !p.isMountpoint {
		return ErrNotMounted
	}
	if p.mount.FSType != fsType {
		return fmt.Errorf("%w but %s", ErrNotSpectrum, p.mount.FSType)
	}
	return nil
}

func (p *heldDir) checkView() error {
	if err := p.checkKind(); err != nil {
		return err
	}
	switch {
	case p.mount.Root != "/":
		return fmt.Errorf("%w but a part of one", ErrNotSpectrum) // whatever lies in it could pass for the view's own
	case served.IsForeign(p.mount):
		return ErrNotOwn
	case p.isDead():
		return ErrDeadMount
	}
	return nil
}

// ReadView returns a file of the control directory of a view that [FindView] finds, of at most
// limit bytes ([ErrTooLong]). It reads the view that was found, even if the path is replaced.
func ReadView(path, name string, limit int64) ([]byte, error) {
	p, err := openHeld(path)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.checkView(); err != nil {
		return nil, &MountpointError{p.path, err}
	}
	return readControl(p, name, limit)
}
