package staging

import (
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// CopyUp prepares a change on an overlay. The old entries and the directories that change
// may be in a lower layer, where the first change gives each another inode. CopyUp causes that
// change now, under the lock, so that every later look sees the inodes that the change
// moves. It updates Old where only the inode has changed. On other file systems it does
// nothing.
func (r *Root) CopyUp(swaps []Swap) error {
	kind, err := r.dir.H.FileSystem()
	if err != nil || kind != unix.OVERLAYFS_SUPER_MAGIC {
		return err
	}
	same := make([]*pathsafe.Stat, len(swaps)) // what each Old is now, if it is still the same
	for i, s := range swaps {
		if same[i], err = r.stillOld(&s); err != nil {
			return fail(StepBegin, s.Path.String(), err)
		}
	}
	up := map[pathsafe.Path]bool{}
	for i, s := range swaps {
		at := parent(s.Path)
		if s.isMetadata() {
			at = s.Path
		}
		err := r.copyUpDir(at, up)
		if err == nil && same[i] != nil {
			err = r.copyUpName(s.Path)
		}
		if err != nil {
			return fail(StepBegin, s.Path.String(), err)
		}
	}
	for i, s := range swaps {
		was := same[i]
		if was == nil {
			continue
		}
		is, err := r.dir.statName(s.Path)
		if gone(err) != nil {
			return fail(StepBegin, s.Path.String(), err)
		}
		sameSize := is.Size == was.Size || is.Mode.IsDir() // layers are of different file systems
		if err == nil && is.Mode == was.Mode && sameSize && is.ModTime.Equal(was.ModTime) && is.UID == was.UID && is.GID == was.GID {
			*s.Old = is
		}
	}
	return nil
}

// stillOld describes the entry at the name of a swap if it is its Old. Other errors are left
// to [Root.Plan] to report.
func (r *Root) stillOld(s *Swap) (*pathsafe.Stat, error) {
	if s.Old == nil {
		return nil, nil
	}
	st, err := r.dir.statName(s.Path)
	if err != nil || !(&swapping{live: s.Old}).isLive(st) {
		return nil, gone(err)
	}
	return &st, nil
}

// statName describes the entry at path p beneath d without following a final link.
func (d dir) statName(p pathsafe.Path) (pathsafe.Stat, error) {
	in, err := d.open(parent(p))
	if errors.Is(err, unix.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return pathsafe.Stat{}, err
	}
	defer in.Close()
	return in.Stat(p.Base())
}

// copyUpName copies up the old entry of a swap.
func (r *Root) copyUpName(p pathsafe.Path) error {
	in, err := r.dir.open(parent(p))
	if err != nil {
		return gone(err)
	}
	defer in.Close()
	return gone(in.copyUp(p.Base()))
}

// copyUpDir copies up a directory that stays, once. A missing one is left to [Root.Plan]
// to report.
func (r *Root) copyUpDir(path pathsafe.Path, up map[pathsafe.Path]bool) error {
	if up[path] {
		return nil
	}
	up[path] = true
	in, err := r.dir.open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return in.s.Do("copy up", path.String(), in.H.Node().CopyUp)
}

// copyUp copies up the entry of a name.
func (d dir) copyUp(name string) error {
	return d.s.Do("copy up", name, func() error {
		node, err := d.H.Pin(name)
		if err != nil {
			return err
		}
		defer node.Close()
		return node.CopyUp()
	})
}
