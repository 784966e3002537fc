package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// MaxHoles is how many bytes of the outputs of one run may be holes, which take no
// room on the disk and all the time of hashing. It is a limit of this program and of
// no law: a run beyond it is neither accepted nor rejected.
const MaxHoles = 256 << 30

// ErrHoles means that a run was rejected because more than [MaxHoles] bytes of its
// outputs are holes. It is not a verdict.
var ErrHoles = errors.New("more of its outputs are holes than is hashed")

// sizes are what the outputs of a run have on the disk.
type sizes struct{ bytes, holes int64 }

// survey looks at every output, in parallel, before any is hashed. What cannot be
// looked at counts nothing: hashing finds out why.
func survey(ctx context.Context, project *pathsafe.Dir, declared []declaration) []sizes {
	all := make([]sizes, len(declared))
	_ = inorder.Do(ctx, len(declared), func(i int) error { // it always comes to its end, but for ctx
		path, err := pathsafe.Parse(declared[i].name)
		if err != nil {
			return nil
		}
		if st, err := project.StatPath(path, pathsafe.LinksUnder); err == nil && st.Mode.IsRegular() {
			all[i] = sizes{st.Size, max(0, st.Size-st.Allocated)}
		}
		return nil
	})
	return all
}

// checkHoles rejects a run whose holes are more than limit. What a file system stores
// in less room than it has bytes looks like holes, so where that is too much the
// files are asked for their holes.
func checkHoles(ctx context.Context, project *pathsafe.Dir, declared []declaration, all []sizes, limit int64) error {
	var suspected int64
	for _, s := range all {
		suspected = addUp(suspected, s.holes)
	}
	if suspected <= limit {
		return nil
	}
	var found int64
	for i, s := range all {
		if s.holes == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		found = addUp(found, declared[i].holes(project, limit))
		if found > limit {
			return fmt.Errorf("%w: at output %q it is %d bytes, and the limit for one run is %d", ErrHoles, declared[i].name, found, limit)
		}
	}
	return nil
}

// addUp adds sizes of files, of which a few reach the largest number.
func addUp(a, b int64) int64 {
	if a > 1<<62-b {
		return 1 << 62
	}
	return a + b
}

// holes is [Holes] of an output; 0 where it cannot be opened.
func (d *declaration) holes(project *pathsafe.Dir, limit int64) int64 {
	path, err := pathsafe.Parse(d.name)
	if err != nil {
		return 0
	}
	f, st, err := project.OpenRegular(path, pathsafe.LinksUnder)
	if err != nil {
		return 0
	}
	defer f.Close()
	return Holes(f, st.Size, limit)
}

// Holes returns how many bytes of a file of this size are holes, counted until they are more
// than limit; 0 where its file system does not tell. It moves the offset of f.
func Holes(f *os.File, size, limit int64) int64 {
	var found int64
	for at := int64(0); at < size && found <= limit; {
		hole, err := seek(f, at, unix.SEEK_HOLE)
		if err != nil || hole >= size {
			break
		}
		data, err := seek(f, hole, unix.SEEK_DATA)
		if err != nil || data > size {
			data = size // nothing but a hole follows
		}
		found, at = found+data-hole, data
	}
	return found
}

func seek(f *os.File, at int64, whence int) (int64, error) {
	for {
		to, err := unix.Seek(int(f.Fd()), at, whence)
		if !errors.Is(err, unix.EINTR) {
			return to, err
		}
	}
}

// sparse reads a file that has holes: their zeros are not read from it. It is for one
// reader, which reads from the beginning to the end.
type sparse struct {
	f    *os.File
	data int64 // from here on the file has to be asked again
	hole int64 // the hole that ends at data begins here
}

// newSparse returns a reader of f. A file whose holes cannot be told is read whole.
func newSparse(f *os.File, st pathsafe.Stat) io.ReaderAt {
	if st.Size <= st.Allocated {
		return f
	}
	return &sparse{f: f}
}

// ReadAt fills p with zeros where it lies in a hole, and else reads.
func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.data {
		s.look(off)
	}
	if off >= s.hole && off+int64(len(p)) <= s.data {
		clear(p)
		return len(p), nil
	}
	return s.f.ReadAt(p, off)
}

// look finds the next hole from off on. The last bytes of the file are always read, so
// that a file that has grown is noticed.
func (s *sparse) look(off int64) {
	hole, err := seek(s.f, off, unix.SEEK_HOLE)
	if err != nil {
		s.hole, s.data = 1<<62, 1<<62
		return
	}
	data, err := seek(s.f, hole, unix.SEEK_DATA)
	if err != nil { // a hole up to the end, or no hole at all
		info, statErr := s.f.Stat()
		if statErr != nil || info.Size() <= hole {
			s.hole, s.data = 1<<62, 1<<62
			return
		}
		data = info.Size()
	}
	s.hole, s.data = hole, data
}
