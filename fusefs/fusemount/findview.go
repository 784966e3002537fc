package fusemount

import (
	"fmt"

	"github.com/spectrumfs/spectrum/internal/served"
)

// FindView returns the real path of a live view that is mounted on a directory,
// by this user or by root. The errors are [*MountpointError]: [ErrNotMounted],
// [ErrNotSpectrum], [ErrDeadMount], and [ErrNotOwn] for a view of another user,
// whose server might say anything, or nothing for ever.
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

// checkKind makes sure that some view is mounted on the place.
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

// ReadView returns a file of the control directory of a view that [FindView] finds, at
// most limit bytes ([ErrTooLong]). What was found is what is read, whatever becomes of
// the path meanwhile.
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
