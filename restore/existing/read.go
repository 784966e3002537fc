package existing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// File is the entry at a path.
type File struct {
	Size   int64
	Digest [sha256.Size]byte // SHA-256

	Executable bool // for its owner

	// Refused is the reason why no regular file could be read; then the rest
	// is zero. [File.Absent] reports whether the path is free.
	Refused error
}

// Absent reports whether the path is free, also because a parent is not
// a directory.
func (f File) Absent() bool {
	return errors.Is(f.Refused, fs.ErrNotExist) || errors.Is(f.Refused, unix.ENOTDIR)
}

// ErrHoles reports that more than [bundle.MaxHoles] bytes of the files are holes, which need no disk space but
// take as long to hash as data.
var ErrHoles = errors.New("the files have too many holes")

// Read reads the entries at some paths beneath a root, and returns them in the order of the paths. It calls
// done, which may be nil, with the number of further bytes that were read, from one goroutine at a time. The
// error is that of the first file that could not be read, [ErrHoles], or that of ctx.
func Read(ctx context.Context, root *pathsafe.Dir, paths []pathsafe.Path, done func(bytes int64)) ([]File, error) {
	files := make([]File, len(paths))
	r := reader{root: root, done: done}
	err := inorder.Each(ctx, 0, len(paths), blockhash.NewHasher, func(h *blockhash.Hasher, i int) (err error) {
		if files[i], err = r.read(ctx, h, paths[i]); err != nil {
			return fmt.Errorf("file %q: %w", paths[i], err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return files, nil
}

// reader is the shared state of the goroutines of one call.
type reader struct {
	root *pathsafe.Dir
	mu   sync.Mutex
	done func(int64)

	holes int64 // bytes, in the files so far
}

func (r *reader) read(ctx context.Context, h *blockhash.Hasher, p pathsafe.Path) (File, error) {
	f, st, err := Open(r.root, p)
	if isRejection(err) {
		return File{Refused: err}, nil
	}
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if st.Size > st.Allocated {
		if err := r.addHoles(f, p, st.Size); err != nil {
			return File{}, err
		}
	}
	table, err := h.Sum(ctx, counted{f, r}, st.Size+1)
	if err != nil {
		return File{}, err
	}
	return File{Size: table.Size(), Digest: table.Digest(), Executable: st.Perm&0o100 != 0}, nil
}

func (r *reader) addHoles(f *os.File, p pathsafe.Path, size int64) error {
	found := min(bundle.Holes(f, size), bundle.MaxHoles+1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holes += found; r.holes > bundle.MaxHoles {
		return &bundle.HolesError{Path: p.String(), Size: size, Err: ErrHoles}
	}
	return nil
}

// Open opens the regular file at a path beneath a root as [Read] does.
func Open(root *pathsafe.Dir, p pathsafe.Path) (*os.File, pathsafe.Stat, error) {
	dir, err := root.OpenParent(p, len(p.Components())-1)
	if err != nil {
		return nil, pathsafe.Stat{}, err
	}
	defer dir.Close()
	return dir.Open(p.Base())
}

// isRejection distinguishes an existing entry from a fault of the machine.
func isRejection(err error) bool {
	for _, reason := range []error{
		fs.ErrNotExist, unix.ENOTDIR, // a parent is a file
		pathsafe.ErrNotRegular, pathsafe.ErrSymlink, pathsafe.ErrEscape, pathsafe.ErrCrossesMount,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// counted is a file that reports the number of bytes that were read.
type counted struct {
	io.ReaderAt
	r *reader
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	if c.r.done != nil {
		c.r.mu.Lock()
		defer c.r.mu.Unlock()
		c.r.done(int64(n))
	}
	return n, err
}
