package harness

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/tree"
)

// A Thing is what stands at a path.
type Thing struct {
	Mode    fs.FileMode
	Content string // the SHA-256 of a file, or where a link leads
	Links   uint64 // of anything but a directory

	// Set for what has a history: two things are the same then.
	Inode    uint64
	Modified int64 // in nanoseconds, of anything but a directory
	UID, GID uint32
}

// A Tree is a picture of all that is beneath a directory, and of itself as ".".
type Tree map[string]Thing

// Take takes a picture. It opens nothing but regular files.
func Take(root string) (Tree, error) {
	seen := Tree{}
	err := tree.Walk(root, func(path string, n *tree.Node, err error) error {
		if err == nil {
			seen[path], err = thingOf(n)
		}
		return err
	})
	return seen, err
}

func thingOf(n *tree.Node) (Thing, error) {
	thing := Thing{Mode: n.FileMode(), Inode: n.Ino, UID: n.Uid, GID: n.Gid}
	if !n.IsDir() {
		thing.Links, thing.Modified = uint64(n.Nlink), n.Mtim.Nano()
	}
	content, err := n.Content()
	if thing.Content = content; thing.Mode.IsRegular() {
		thing.Content = digest([]byte(content))
	}
	return thing, err
}

func digest(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// same compares what is with what is wanted. A wanted thing without an inode is
// new, and what is 0 in it may be anything.
func same(want, is Thing) bool {
	if want.Inode == 0 {
		is.Inode = 0
		if want.Modified == 0 {
			is.Modified = 0
		}
	}
	return want == is
}

// Diff names what is not as wanted, one line for each; "" is none.
func Diff(want, is Tree) string {
	names := map[string]bool{}
	for name := range want {
		names[name] = true
	}
	for name := range is {
		names[name] = true
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w, wanted := want[name]
		i, there := is[name]
		switch {
		case !there:
			lines = append(lines, fmt.Sprintf("  missing %q", name))
		case !wanted:
			lines = append(lines, fmt.Sprintf("  extra   %q: %v", name, i.Mode))
		case !same(w, i):
			lines = append(lines, fmt.Sprintf("  other   %q: want %+v, is %+v", name, w, i))
		}
	}
	return strings.Join(lines, "\n")
}

// Stamp is all that stat tells about the times of a directory.
func Stamp(dir string) (string, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(dir, &s); err != nil {
		return "", err
	}
	return fmt.Sprint(s.Ino, s.Mtim, s.Ctim, s.Nlink), nil
}

// MustTake is Take of a tree that must be readable.
func MustTake(t testing.TB, root string) Tree {
	t.Helper()
	tree, err := Take(root)
	Must(t, err)
	return tree
}
