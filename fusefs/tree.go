package fusefs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
)

// ErrBadTree is what every error of [NewTree] is: a path that is not in plain
// form, two files that cannot both be there, a size or content that makes no
// sense.
var ErrBadTree = errors.New("this tree cannot be shown")

// A File describes one regular file of a tree.
type File struct {
	Path    string      // relative, slash separated: "a/b/c"
	Size    int64       // bytes
	Mode    fs.FileMode // permission bits; the view clears the write bits
	ModTime time.Time

	// Open gives the content. It is called when somebody reads, any number of
	// times, from several goroutines; an error is EIO for the reader.
	Open func() (Content, error)
}

// Content gives the bytes of one file. ReadAt fills the buffer with bytes that
// have been checked, or it returns an error and no bytes; it is called by
// several goroutines at once. No unchecked byte may be in the buffer when it
// returns without an error.
type Content interface {
	io.ReaderAt
	io.Closer
}

// rootNode is the index of the root in Tree.nodes. The kernel's node number is
// the index plus one, so that the root is 1 as the protocol wants.
const rootNode = 0

// maxName is the longest name that Linux knows (NAME_MAX), in bytes.
const maxName = 255

// reservedRootName is answered by go-fuse itself, before it asks us: a file of
// that name would be shown as an empty one.
const reservedRootName = ".go-fuse-epoll-hack"

// node is a file or a directory. One is made per entry and kept as long as the
// view lives, so it is kept to 64 bytes; the name shares its memory with the
// File's path.
type node struct {
	name    string                  // the last component; "" for the root
	open    func() (Content, error) // nil for a directory
	size    int64
	sec     int64 // mtime; of a directory: the newest below it
	nsec    uint32
	perm    uint32 // as shown: no write bits
	parent  uint32
	first   uint32 // directory: index of the first child; children are contiguous, sorted by name
	count   uint32 // directory: number of children
	subdirs uint32 // directory: number of children that are directories
}

func (n *node) isDir() bool { return n.open == nil }

// A Tree is an immutable directory tree, ready to be mounted. The zero value
// holds nothing, not even a root, and cannot be mounted.
type Tree struct {
	nodes  []node
	bytes  uint64 // sum of the sizes
	blocks uint64 // sum of the sizes, each rounded up to statBlock
}

// NewTree makes a tree of the files, which may come in any order. Directories
// are those that the paths name. The errors, all [ErrBadTree], name the path,
// and both paths when two clash: the same path twice, or "a" and "a/b".
func NewTree(files iter.Seq[File]) (*Tree, error) {
	var flat []node // name still holds the whole path
	for f := range files {
		n, err := newNode(f)
		if err != nil {
			return nil, err
		}
		flat = append(flat, n)
	}
	if len(flat) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d files are too many", ErrBadTree, len(flat))
	}
	slices.SortFunc(flat, func(a, b node) int { return comparePaths(a.name, b.name) })
	return layOut(flat)
}

// newNode makes the node of a file, with the whole path for its name.
func newNode(f File) (node, error) {
	if err := checkPath(f.Path); err != nil {
		return node{}, err
	}
	if f.Size < 0 {
		return node{}, fmt.Errorf("%w: %q has the size %d", ErrBadTree, f.Path, f.Size)
	}
	if f.Open == nil {
		return node{}, fmt.Errorf("%w: %q has no content", ErrBadTree, f.Path)
	}
	return node{
		name: f.Path,
		open: f.Open,
		size: f.Size,
		sec:  f.ModTime.Unix(),
		nsec: uint32(f.ModTime.Nanosecond()),
		perm: uint32(f.Mode.Perm() &^ 0o222),
	}, nil
}

// checkPath refuses what the kernel could not show under exactly that name.
func checkPath(path string) error {
	if strings.IndexByte(path, 0) >= 0 {
		return fmt.Errorf("%w: path %q has a NUL byte", ErrBadTree, path)
	}
	if path == reservedRootName || strings.HasPrefix(path, reservedRootName+"/") {
		return fmt.Errorf("%w: the name %q is taken by the FUSE library", ErrBadTree, reservedRootName)
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || len(name) > maxName {
			return fmt.Errorf("%w: path %q has the component %q", ErrBadTree, path, name)
		}
	}
	return nil
}

// comparePaths orders by components, each by its bytes: as if the slash came
// before every other byte. What lies below one directory is then contiguous,
// and a file comes right before what would have to lie below it.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		switch {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// path gives the path of a node, "" for the root.
func (t *Tree) path(id uint32) string {
	var names []string
	for ; id != rootNode; id = t.nodes[id].parent {
		names = append(names, t.nodes[id].name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// children gives the nodes in a directory, sorted by name.
func (t *Tree) children(dir uint32) []node {
	d := &t.nodes[dir]
	return t.nodes[d.first : d.first+d.count]
}

// lookup finds a name in a directory.
func (t *Tree) lookup(dir uint32, name string) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(t.children(dir), name, func(n node, name string) int {
		return strings.Compare(n.name, name)
	})
	return t.nodes[dir].first + uint32(i), ok
}
