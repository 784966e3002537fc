package savepoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"golang.org/x/sys/unix"
)

// DriftState is how a file stands to the savepoint that it is in.
type DriftState string

// The states, in the words of the program's JSON.
const (
	Same       DriftState = "same"
	Changed    DriftState = "changed"     // another content
	Missing    DriftState = "missing"     // nothing is there
	NotRegular DriftState = "not_regular" // a link, a directory, a FIFO; or a link or a mount leads elsewhere
)

// Drift is one file.
type Drift struct {
	Path  string // beneath the restore root
	State DriftState
}

// Drift compares every file of the savepoint with what is beneath a restore root
// now, on all cores, and returns them in ascending order of their paths, the same
// ones too. Links on the way are followed as a commit follows them, beneath the
// root only (decision D17); one in the place of a file is not. Nothing but regular
// files is opened. done is called with the number of bytes that were read more, by
// one goroutine at a time; it may be nil. The error tells of a file that could not
// be read, or of ctx.
func (sp Savepoint) Drift(ctx context.Context, root *pathsafe.Dir, done func(bytes int64)) ([]Drift, error) {
	if sp.listing == nil {
		return nil, nil
	}
	entries := slices.Collect(sp.listing.Entries())
	drifts := make([]Drift, len(entries))
	d := drifter{root: root, done: done}
	err := inorder.Each(ctx, 0, len(entries), blockhash.NewHasher, func(h *blockhash.Hasher, i int) error {
		state, err := d.compare(ctx, h, entries[i])
		if err != nil {
			return fmt.Errorf("file %q: %w", entries[i].Path, err)
		}
		drifts[i] = Drift{entries[i].Path.String(), state}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return drifts, nil
}

// drifter is what the goroutines of one comparison share.
type drifter struct {
	root *pathsafe.Dir
	mu   sync.Mutex
	done func(int64)
}

func (d *drifter) compare(ctx context.Context, h *blockhash.Hasher, e verify.Entry) (DriftState, error) {
	f, size, err := d.open(e.Path)
	if err != nil {
		return stateOf(err)
	}
	defer f.Close()
	table, err := h.Sum(ctx, counted{f, d}, size+1)
	if err != nil {
		return "", err
	}
	if table.Digest() != e.Digest {
		return Changed, nil
	}
	return Same, nil
}

func (d *drifter) open(p pathsafe.Path) (*os.File, int64, error) {
	dir, err := d.root.OpenParent(p, len(p.Components())-1)
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	f, st, err := dir.Open(p.Base())
	return f, st.Size, err
}

// stateOf is what it means that a file could not be opened.
func stateOf(err error) (DriftState, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // a parent is a file
		return Missing, nil
	}
	for _, other := range []error{pathsafe.ErrNotRegular, pathsafe.ErrSymlink, pathsafe.ErrEscape, pathsafe.ErrCrossesMount} {
		if errors.Is(err, other) {
			return NotRegular, nil
		}
	}
	return "", err
}

// counted is a file that tells how much of it was read.
type counted struct {
	io.ReaderAt
	d *drifter
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	if c.d.done != nil {
		c.d.mu.Lock()
		defer c.d.mu.Unlock()
		c.d.done(int64(n))
	}
	return n, err
}
