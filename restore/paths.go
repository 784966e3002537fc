package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Conflict is something that stands where a target would be, or in its way.
type Conflict struct {
	Path    string // of the target, beneath the restore root
	State   string // what is there now, in words
	Linked  string // another target that is the same file, by a hard link or through a symbolic link
	mount   string // a directory on the way that is another mount: nothing can be moved there
	removed bool   // it is of a path that is removed
}

// Failure is what EXECUTE fails with when it meets the conflict.
func (c Conflict) Failure() *Failure {
	if c.mount != "" {
		return Fail(FinalizeFailed, c.Path, fmt.Errorf("cannot move files there: %q %w", c.mount, pathsafe.ErrCrossesMount))
	}
	if c.removed {
		return Fail(TargetPathExists, c.Path, errors.New("it would be removed: "+c.State))
	}
	return Fail(TargetPathExists, c.Path, errors.New("the target exists: "+c.State))
}

// survey is step 1.3: path safety in the order of section 8.4.5. It also finds
// the entries where targets would be. root is nil for a view, which has none.
type survey struct {
	root      *pathsafe.Dir
	conflicts []Conflict
}

// surveyor is one of several that look at targets in ascending order.
type surveyor struct {
	*survey
	missing string // a directory beneath the root that does not exist, and "/"
}

// bundle surveys every output path of one bundle; the first in path order decides. In a chain the
// run's directory does not exist, so there is nothing to look at beneath it.
func (s *survey) bundle(ctx context.Context, g gated, i int) error {
	b := g.bundles[i]
	if g.chain {
		if _, err := pathsafe.Parse(b.RunID()); err != nil {
			return g.name(pathFailure(b.RunID(), err), b.RunID())
		}
	}
	names := make([]string, 0, b.Len())
	for name := range b.Paths() {
		names = append(names, name)
	}
	found := make([]*Conflict, len(names))
	err := inorder.Each(ctx, 0, len(names), func() *surveyor { return &surveyor{survey: s} }, func(by *surveyor, n int) error {
		path, err := pathsafe.Parse(names[n])
		if err == nil && s.root != nil && !g.chain {
			found[n], err = by.look(path)
		}
		if err != nil {
			return g.name(pathFailure(names[n], err), b.RunID())
		}
		return nil
	})
	if ctx.Err() != nil {
		return Internal(Preflight, ctx.Err())
	}
	for _, c := range found {
		if c != nil {
			s.conflicts = append(s.conflicts, *c)
		}
	}
	return err
}

// look returns the entry at one target; nil for nothing.
func (s *surveyor) look(path pathsafe.Path) (*Conflict, error) {
	if s.missing != "" && strings.HasPrefix(path.String(), s.missing) {
		return nil, nil
	}
	site, err := s.root.Survey(path)
	switch {
	case errors.Is(err, pathsafe.ErrCrossesMount):
		at := s.mountOn(path)
		return &Conflict{Path: path.String(), State: fmt.Sprintf("%q %v", at, pathsafe.ErrCrossesMount), mount: at}, nil
	case err != nil:
		return nil, err
	case site.Exists:
		return &Conflict{Path: path.String(), State: s.describe(path)}, nil
	}
	s.missing = strings.Join(path.Components()[:site.Missing+1], "/") + "/"
	return nil, nil
}

// mountOn returns the first directory on the way to a target that is another mount or
// subvolume.
func (s *survey) mountOn(path pathsafe.Path) string {
	for at := path; ; {
		above, ok := at.Parent()
		if !ok {
			return at.String()
		}
		if _, err := s.root.StatPath(above, pathsafe.LinksBeneath); !errors.Is(err, pathsafe.ErrCrossesMount) {
			return at.String()
		}
		at = above
	}
}

// artifacts looks for the two result artifacts, which count as targets, and sorts all
// conflicts by path. In a chain they are in directories that do not exist.
func (s *survey) artifacts(g gated) error {
	if s.root == nil || g.chain {
		return nil
	}
	for _, name := range []string{ManifestName, ReportName} {
		_, err := s.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Internal(Preflight, err)
		}
		path, _ := pathsafe.Parse(name)
		s.conflicts = append(s.conflicts, Conflict{Path: name, State: s.describe(path)})
	}
	slices.SortStableFunc(s.conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// describe describes the existing entry at a target.
func (s *survey) describe(path pathsafe.Path) string {
	st, err := Standing(s.root, path)
	switch {
	case err != nil:
		return "it, or a parent that is not a directory, is in the way"
	case st.Mode.Type() == fs.ModeSymlink:
		return "a symbolic link"
	case st.Mode.IsRegular() && st.Size == 1:
		return "a regular file of 1 byte"
	case st.Mode.IsRegular():
		return fmt.Sprintf("a regular file of %d bytes", st.Size)
	case st.Mode.IsDir():
		return "a directory"
	default:
		return "neither a file nor a directory"
	}
}

// Standing describes the entry at a target, a symbolic link itself: links are followed on
// the way to it only.
func Standing(root *pathsafe.Dir, path pathsafe.Path) (pathsafe.Stat, error) {
	names := path.Components()
	parent, err := root.OpenParent(path, len(names)-1)
	if err != nil {
		return pathsafe.Stat{}, err
	}
	defer parent.Close()
	return parent.Lstat(names[len(names)-1])
}

// pathFailure picks the code for a path, in the order of section 8.4.5.
func pathFailure(path string, err error) *Failure {
	switch {
	case errors.Is(err, pathsafe.ErrTraversal):
		return Fail(PathTraversalDetected, path, err)
	case errors.Is(err, pathsafe.ErrNullByte):
		return Fail(PathNullByteDetected, path, err)
	case errors.Is(err, pathsafe.ErrEscape):
		return Fail(SymlinkEscapeDetected, path, err)
	default:
		return Internal(Preflight, fmt.Errorf("looking at target %q: %w", path, err))
	}
}
