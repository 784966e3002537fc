package pathsafe

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// walkUnder walks as with LinksBeneath. If a link leads out, it walks again and resolves an
// absolute target that begins with the root's own path from the root. Only the text is compared:
// nothing outside the root is read, and the walk continues from the root's handle, so it stays
// beneath the root.
func (d *Dir) walkUnder(root int, rel string, flags int) (int, error) {
	fd, err := d.w.open(root, rel, flags, LinksBeneath)
	if !errors.Is(err, ErrEscape) {
		return fd, err
	}
	names, nameErr := d.ownNames(root)
	if nameErr != nil {
		return -1, nameErr
	}
	return climbFrom(root, rel, flags, LinksBeneath, names)
}

// ownNames returns the paths of the root: the one that the kernel returns for the handle, and the
// one under which it was opened, if that is absolute.
func (d *Dir) ownNames(root int) ([][]string, error) {
	if err := checkProc(); err != nil {
		return nil, err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(procPath(root), buf)
	if err != nil {
		return nil, fmt.Errorf("the root's own path: %w", err)
	}
	var names [][]string
	for _, name := range []string{string(buf[:n]), d.Name()} {
		if strings.HasPrefix(name, "/") {
			names = append(names, components(name))
		}
	}
	return names, nil
}

// components splits an absolute path and omits empty components and ".".
func components(path string) []string {
	var all []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			all = append(all, name)
		}
	}
	return all
}

// beneath returns the rest of an absolute target after the root's own path. A name with ".." never
// matches, since its meaning depends on the disk.
func beneath(names [][]string, target string) ([]string, bool) {
	parts := components(target)
	for _, name := range names {
		if hasPrefix(parts, name) {
			return parts[len(name):], true
		}
	}
	return nil, false
}

func hasPrefix(parts, prefix []string) bool {
	if len(parts) < len(prefix) {
		return false
	}
	for i, name := range prefix {
		if name == ".." || parts[i] != name {
			return false
		}
	}
	return true
}
