package verify

import (
	"context"
	"io"
	"os"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// MaxHoles is how many bytes of the outputs of one run may be holes, see [bundle.MaxHoles].
const MaxHoles = bundle.MaxHoles

// ErrHoles means that a run was rejected because more than [MaxHoles] bytes of its
// outputs are holes. It is not a verdict.
var ErrHoles = bundle.ErrHoles

// sizes are the sizes of the outputs of a run on the disk.
type sizes struct{ bytes, holes int64 }

// survey stats every output, in parallel, before any is hashed. An output that cannot be examined
// counts as empty: hashing returns the error.
func survey(ctx context.Context, project *pathsafe.Dir, declared []declaration) []sizes {
	all := make([]sizes, len(declared))
	newOpener := func() *pathsafe.Opener { return new(pathsafe.Opener) }
	_ = inorder.Each(ctx, 0, len(declared), newOpener, func(near *pathsafe.Opener, i int) error { // it fails only if ctx is done
		path, err := pathsafe.Parse(declared[i].name)
		if err != nil {
			return nil
		}
		if st, err := near.StatPath(project, path, pathsafe.LinksUnder); err == nil && st.Mode.IsRegular() {
			all[i] = sizes{st.Size, max(0, st.Size-st.Allocated)}
		}
		return nil
	})
	return all
}

// checkHoles rejects a run of which more than [MaxHoles] bytes are holes.
func checkHoles(ctx context.Context, project *pathsafe.Dir, declared []declaration, all []sizes) error {
	return bundle.CheckHoles(ctx, func(yield func(bundle.Suspect) bool) {
		for i, s := range all {
			if s.holes == 0 {
				continue
			}
			path, err := pathsafe.Parse(declared[i].name)
			if err != nil {
				continue
			}
			open := func() (*os.File, pathsafe.Stat, error) { return project.OpenRegular(path, pathsafe.LinksUnder) }
			if !yield(bundle.Suspect{Path: path.String(), Holes: s.holes, Count: bundle.HolesIn(open)}) {
				return
			}
		}
	}, ErrHoles)
}

// addUp adds sizes of files, of which a few reach the largest number.
func addUp(a, b int64) int64 {
	if a > 1<<62-b {
		return 1 << 62
	}
	return a + b
}

// sparse reads a file that has holes: their zeros are not read from it. It is for one
// reader, which reads from the beginning to the end.
type sparse struct {
	f    *pathsafe.File
	data int64 // from here on the file is queried again
	hole int64 // the start of the hole that ends at data
}

// newSparse returns a reader of f. A file whose holes are unknown is read as a whole.
func newSparse(f *pathsafe.File, st pathsafe.Stat) io.ReaderAt {
	if st.Size <= st.Allocated {
		return f
	}
	return &sparse{f: f}
}

// ReadAt fills the part of p that is in a hole with zeros, and reads the rest.
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
	hole, err := bundle.Seek(s.f, off, unix.SEEK_HOLE)
	if err != nil {
		s.hole, s.data = 1<<62, 1<<62
		return
	}
	data, err := bundle.Seek(s.f, hole, unix.SEEK_DATA)
	if err != nil { // a hole up to the end, or no hole at all
		st, statErr := pathsafe.StatFile(s.f)
		if statErr != nil || st.Size <= hole {
			s.hole, s.data = 1<<62, 1<<62
			return
		}
		data = st.Size
	}
	s.hole, s.data = hole, data
}
