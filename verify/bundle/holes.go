package bundle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// MaxHoles is the maximum size of the holes in the outputs of one run, which take no space on the
// disk but must be hashed. It is a limit of this program and not of a law: a run beyond it is not
// sealed, and neither accepted nor rejected.
const MaxHoles = 256 << 30

// ErrHoles means that more than [MaxHoles] bytes of the outputs of a run are holes.
var ErrHoles = errors.New("more of its outputs are holes than is hashed")

// A HolesError names the file with which more than [MaxHoles] bytes are holes.
type HolesError struct {
	Path string
	Size int64
	Err  error // such as [ErrHoles]
}

func (e *HolesError) Error() string {
	return fmt.Sprintf("%v: with %q of %d bytes it is more than %d bytes", e.Err, e.Path, e.Size, int64(MaxHoles))
}

func (e *HolesError) Unwrap() error { return e.Err }

// Suspect is a file with fewer allocated bytes than its size.
type Suspect struct {
	Path  string
	Holes int64                                 // bytes without room
	Count func() (holes, size int64, err error) // of the file itself; see [HolesIn]
}

// HolesIn returns a function that measures the holes of the file that open opens. A file that
// cannot be opened has none: hashing returns the error.
func HolesIn(open func() (*os.File, pathsafe.Stat, error)) func() (holes, size int64, err error) {
	return func() (holes, size int64, err error) {
		f, st, err := open()
		if err != nil {
			return 0, 0, nil //nolint:nilerr // see above
		}
		defer f.Close()
		return Holes(f, st.Size), st.Size, nil
	}
}

// CheckHoles returns a [*HolesError] of why if more than [MaxHoles] bytes of the files are
// holes. Bytes that a file system stores in less space look like holes, so if these are too
// many the files are queried for their holes.
func CheckHoles(ctx context.Context, files iter.Seq[Suspect], why error) error {
	const tooMany = MaxHoles + 1 // sums of more could overflow
	var suspected, found int64
	for file := range files {
		suspected = min(suspected+min(file.Holes, tooMany), tooMany)
	}
	if suspected < tooMany {
		return nil
	}
	for file := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		holes, size, err := file.Count()
		if err != nil {
			return fmt.Errorf("%q: %w", file.Path, err)
		}
		if found += min(holes, tooMany); found >= tooMany {
			return &HolesError{file.Path, size, why}
		}
	}
	return nil
}

// Holes returns how many bytes of a file of this size are holes, counted until they exceed
// [MaxHoles]; 0 if its file system does not report holes. It moves the offset of f.
func Holes(f pathsafe.Opened, size int64) int64 {
	var found int64
	for at := int64(0); at < size && found <= MaxHoles; {
		hole, err := Seek(f, at, unix.SEEK_HOLE)
		if err != nil || hole >= size {
			break
		}
		data, err := Seek(f, hole, unix.SEEK_DATA)
		if err != nil || data > size {
			data = size // nothing but a hole follows
		}
		found, at = found+data-hole, data
	}
	return found
}

// Seek is lseek(2), repeated if a signal interrupts it.
func Seek(f pathsafe.Opened, at int64, whence int) (int64, error) {
	for {
		to, err := unix.Seek(int(f.Fd()), at, whence)
		if !errors.Is(err, unix.EINTR) {
			return to, err
		}
	}
}
