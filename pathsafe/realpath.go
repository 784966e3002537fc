package pathsafe

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spectrumfs/spectrum/internal/scarce"
	"golang.org/x/sys/unix"
)

// ErrMoved is returned by [Dir.RealPath] for a directory that was removed, or if the kernel's path
// for it does not lead back to it.
var ErrMoved = errors.New("the directory has been moved or replaced")

// RealPath returns the absolute path of the directory, without links, as the kernel derives it from
// the descriptor. It is verified: opened again it is the same directory, on the same mount. The
// path under which the directory was opened is not used, since it may lead elsewhere now.
func (d *Dir) RealPath() (string, error) {
	if err := checkProc(); err != nil {
		return "", d.wrap("path of", ".", err)
	}
	path, err := os.Readlink(procPath(d.Fd()))
	runtime.KeepAlive(d)
	if err != nil {
		return "", d.wrap("path of", ".", err)
	}
	if !filepath.IsAbs(path) {
		return "", d.wrap("path of", ".", ErrMoved)
	}
	now, err := OpenRoot(path)
	if isOfMachine(err) {
		return "", err
	}
	if err != nil {
		return "", errors.Join(d.wrap("path of", ".", ErrMoved), err)
	}
	defer now.Close()
	return path, d.wrap("path of", ".", sameDir(d, now))
}

// IsWithin reports whether one of two clean absolute paths equals the other or is beneath it. It
// compares texts: the caller resolves links first.
func IsWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// isOfMachine reports whether an error is a fault of the machine, and not about the
// entry at a path.
func isOfMachine(err error) bool { return scarce.Is(err) || errors.Is(err, unix.EIO) }

// Holds returns nil if name in d is the directory sub, [ErrMoved] if it is another entry, and
// otherwise the error of the lookup.
func (d *Dir) Holds(name string, sub *Dir) error {
	now, err := d.Lstat(name)
	if err != nil {
		return err
	}
	was, err := sub.Stat()
	if err == nil && (now.ID.Dev != was.ID.Dev || now.ID.Ino != was.ID.Ino) {
		err = ErrMoved
	}
	return d.wrap("look up", name, err)
}

// sameDir is ErrMoved unless both are the same directory through the same mount.
func sameDir(a, b *Dir) error {
	x, err := a.Stat()
	if err != nil {
		return err
	}
	y, err := b.Stat()
	if err == nil && x.ID != y.ID {
		err = ErrMoved
	}
	return err
}
