package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/existing"
)

const (
	// maxViewPatch bounds the lines of a view's patch, in bytes: what its readers hold is in
	// memory. What follows is named, up to maxViewNames.
	maxViewPatch = 16 << 20
	maxViewNames = maxViewPatch + 1<<20

	// settledAfter is how long ago a file must have changed so that its times reveal the next
	// change.
	settledAfter = 2 * time.Second
)

// changes makes changes.patch of a view: what "spectrum diff" prints for it, up to a limit. The
// directory is opened for each, since an open one would keep its file system from being unmounted.
type changes struct {
	plan     *view.Scene
	files    iter.Seq[fusefs.File]
	rootPath string
	rootID   string
	store    string // of snapshots

	// Of the last patch, one of which is made at a time.
	text    []byte
	looked  [sha256.Size]byte // the earlier entry in the root
	settled bool
}

func newChanges(plan *view.Scene, files iter.Seq[fusefs.File], root *pathsafe.Dir, store string) (c *changes, err error) {
	c = &changes{plan: plan, files: files, store: store}
	if c.rootPath, err = root.RealPath(); err == nil {
		c.rootID, err = root.Identity()
	}
	return c, err
}

// patch returns the patch as of now. It is that of before where nothing in the root has changed:
// its bytes were checked then.
func (c *changes) patch(done <-chan struct{}) ([]byte, error) {
	if isClosed(done) {
		return nil, context.Canceled
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		select {
		case <-done:
			end()
		case <-ctx.Done():
		}
	}()
	root, err := pathsafe.OpenRoot(c.rootPath)
	if err != nil {
		return nil, fmt.Errorf("restore root: %w", err)
	}
	defer root.Close()
	if id, err := root.Identity(); err != nil || id != c.rootID {
		return nil, fmt.Errorf("restore root %q: it is another directory than when the view was mounted", c.rootPath)
	}
	d := rootDiff{plan: c.plan, candidate: slices.SortedFunc(c.files, byPath), root: root, rootPath: c.rootPath, store: c.store}
	began := time.Now()
	looked, newest, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	if c.settled && looked == c.looked {
		return c.text, nil
	}
	if err := d.compare(ctx, nil); err != nil {
		return nil, err
	}
	text, err := d.boundedPatch(ctx, maxViewPatch, maxViewNames)
	if err != nil {
		return nil, err
	}
	c.text, c.looked, c.settled = text, looked, newest.Add(settledAfter).Before(began)
	return text, nil
}

// look describes the existing files at the paths of the candidate without reading it, with the time of the
// last change.
func (d *rootDiff) look(ctx context.Context) (looked [sha256.Size]byte, newest time.Time, err error) {
	_, paths, err := d.names()
	if err != nil {
		return looked, newest, err
	}
	d.parents = map[string]string{}
	all := sha256.New()
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return looked, newest, err
		}
		name, err := d.resolve(p)
		_, _ = fmt.Fprintf(all, "%q %v\n", name, err)
		st, err := lookAt(d.root, p)
		if err != nil {
			obstacle, other := existing.Find(d.root, p)
			_, _ = fmt.Fprintf(all, "%v %v %v\n", err, obstacle, other)
			continue
		}
		_, _ = fmt.Fprintf(all, "%v %o %d %d %d\n", st.ID, st.Mode, st.Size, st.ModTime.UnixNano(), st.ChangeTime.UnixNano())
		if st.ChangeTime.After(newest) {
			newest = st.ChangeTime
		}
	}
	return [sha256.Size]byte(all.Sum(nil)), newest, nil
}

// lookAt describes the existing file at a path, which may be a link.
func lookAt(root *pathsafe.Dir, p pathsafe.Path) (pathsafe.Stat, error) {
	dir, err := root.OpenParent(p, len(p.Components())-1)
	if err != nil {
		return pathsafe.Stat{}, err
	}
	defer dir.Close()
	st, err := dir.Lstat(p.Base())
	if err == nil && st.Mode.Type() == fs.ModeSymlink {
		return st, pathsafe.ErrSymlink
	}
	return st, err
}

// boundedPatch is the patch, with the lines of as many files as there is room for, and the names of
// as many more.
func (d *rootDiff) boundedPatch(ctx context.Context, room, roomForNames int) ([]byte, error) {
	var out bytes.Buffer
	unnamed := 0
	err := d.eachSection(ctx, patchForm{room: room, hashes: true}, func(s section) error {
		isEnd := s.class == ""
		if !isEnd && out.Len() > roomForNames {
			unnamed++
			return nil
		}
		if isEnd && unnamed > 0 {
			s.comments = append(s.comments, fmt.Sprintf("# not named: %s with differences", numberOf(unnamed, "more file")))
		}
		for _, comment := range s.comments {
			out.WriteString(visible.Lines(comment) + "\n")
		}
		out.Write(s.text)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
