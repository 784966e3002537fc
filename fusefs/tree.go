package fusefs

import (
	"context"
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

// ErrBadTree is wrapped by every error of [NewTree]: a path that is not in plain form, two files
// that cannot both exist, an invalid size or content.
var ErrBadTree = errors.New("this tree cannot be shown")

// A File describes one regular file of a tree or, with fs.ModeDir in its Mode and without a Source,
// the permissions of a directory.
type File struct {
	Path    string      // relative, slash separated: "a/b/c"; of a directory "" is the root
	Size    int64       // bytes
	Mode    fs.FileMode // permission bits; the view clears the write bits
	ModTime time.Time
	Source  Source
}

// Source is where a file's content is read from. A [Live] makes its content anew and is not read.
type Source interface {
	// Open returns the content. It is called for reads, any number of times, concurrently; an
	// error is EIO for the reader.
	Open() (Content, error)

	// XAttrs returns the file's extended attributes, with their full names ("user.x"), in the
	// order of listing. It is called on demand.
	XAttrs() []XAttr
}

// Unsized is a [Source] whose attributes are not part of the description: those of its [File] do not
// count. The kernel does not keep them until they are settled. Before the file is opened it is
// settled; its content then has a method Size, which bounds the read.
type Unsized interface {
	Source

	// Facts returns the attributes that are known now. It is called at every lookup, concurrently;
	// an error is EIO, and a finding.
	Facts() (Facts, error)

	// Settle checks the file as a whole. Without an error its Facts are settled from then on. It ends
	// when ctx is done, with the error of ctx.
	Settle(ctx context.Context) error
}

// Facts are the attributes of an [Unsized] source.
type Facts struct {
	Size    int64
	Mode    fs.FileMode // permission bits; the view clears the write bits
	ModTime time.Time
	Settled bool // they will not change any more
}

// SourceFunc is a [Source] without extended attributes.
type SourceFunc func() (Content, error)

// Open calls the function.
func (f SourceFunc) Open() (Content, error) { return f() }

// XAttrs returns nil.
func (f SourceFunc) XAttrs() []XAttr { return nil }

// XAttr is an extended attribute.
type XAttr struct{ Name, Value string }

// Content returns the bytes of one file. ReadAt fills the buffer with bytes that
// have been checked, or it returns an error and no bytes; it is called by
// several goroutines at once. No unchecked byte may be in the buffer when it
// returns without an error.
type Content interface {
	io.ReaderAt
	io.Closer
}

// rootNode is the index of the root in Tree.nodes.
const rootNode = 0

// ControlName is the directory of a tree's root that is found but not listed.
const ControlName = ".spectrum"

// Interruptible is a [Content] that may have to wait for its bytes.
type Interruptible interface {
	Content

	// ReadContext is ReadAt that returns when ctx is done: its reader was interrupted, or the view
	// ends.
	ReadContext(ctx context.Context, p []byte, off int64) (int, error)
}

// Unavailable is an error of a source or a content that reports no finding about its bytes: they are
// not available now. The reader gets an I/O error.
type Unavailable interface {
	error
	Unavailable() bool
}

// maxName is the longest name that Linux accepts (NAME_MAX), in bytes.
const maxName = 255

// reservedRootName is answered by go-fuse itself: a file of that name would be shown as an empty
// one.
const reservedRootName = ".go-fuse-epoll-hack"

// node is a file or a directory. There is one per entry as long as the view exists, so it is
// limited to 72 bytes; the name shares its memory with the File's path.
type node struct {
	name    string // the last component; "" for the root
	source  Source // nil for a directory
	size    int64
	sec     int64 // mtime; of a directory: the newest below it
	nsec    uint32
	perm    uint32 // as shown: no write bits
	parent  uint32
	first   uint32 // directory: index of the first child; children are contiguous, sorted by name
	count   uint32 // directory: number of children
	subdirs uint32 // directory: number of children that are directories
}

func (n *node) isDir() bool { return n.source == nil }

// A Tree is an immutable directory tree, ready to be mounted. The zero value has not even a root,
// and cannot be mounted.
type Tree struct {
	nodes   []node
	control uint32 // the root of the control directory, which is not listed; 0 if there is none
	unsized bool   // it has a source that is [Unsized]
	bytes   uint64 // sum of the sizes of the listed files
	blocks  uint64 // sum of those sizes, each rounded up to statBlock
}

// NewTree returns a tree of the files, in any order. Their paths determine the directories. The
// mode of a directory is 0555, reduced for the group and for others to the bits that every
// description of the directory has. The files of control, which may be nil, are below
// [ControlName]: they can be looked up by that name, but are not listed and not counted. Its
// errors, all [ErrBadTree], name the path, and both paths of a clash: the same path twice, or "a"
// and "a/b".
func NewTree(files, control iter.Seq[File]) (*Tree, error) {
	t, err := newTree(files)
	if err != nil || control == nil {
		return t, err
	}
	hidden, err := newTree(control)
	if err != nil {
		return nil, err
	}
	if _, taken := t.lookup(rootNode, ControlName); taken {
		return nil, fmt.Errorf("%w: the name %q is reserved by the view", ErrBadTree, ControlName)
	}
	t.hide(hidden)
	return t, nil
}

func newTree(files iter.Seq[File]) (*Tree, error) {
	var nodes gathered // names are still whole paths
	var dirs []File
	for f := range files {
		if f.Mode.IsDir() && f.Source == nil {
			dirs = append(dirs, f)
			continue
		}
		n, err := newNode(f)
		if err != nil {
			return nil, err
		}
		nodes.add(n)
	}
	flat := nodes.all()
	if len(flat) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d files are too many", ErrBadTree, len(flat))
	}
	slices.SortFunc(flat, func(a, b node) int { return comparePaths(a.name, b.name) })
	if err := checkDirectories(flat); err != nil {
		return nil, err
	}
	t, err := layOut(flat)
	if err != nil {
		return nil, err
	}
	t.unsized = slices.ContainsFunc(flat, func(n node) bool {
		_, is := n.source.(Unsized)
		return is
	})
	for _, d := range dirs {
		if err := t.restrict(d); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkDirectories rejects sorted files in more directories than real trees have: each directory
// requires a node, and a path can have 2,000.
func checkDirectories(flat []node) error {
	most, dirs, last := 4*len(flat)+100_000, 0, ""
	for i := range flat {
		path, shared := flat[i].name, 0
		for j := range min(len(last), len(path)) {
			if last[j] != path[j] {
				break
			}
			if path[j] == '/' {
				shared = j + 1
			}
		}
		if dirs += strings.Count(path[shared:], "/"); dirs > most {
			return fmt.Errorf("%w: more than %d directories, for %d files", ErrBadTree, most, len(flat))
		}
		last = path
	}
	return nil
}

// gathered are nodes in chunks. A slice that grows to a million nodes is copied ten times, and
// takes twice the memory at the end.
type gathered struct {
	full [][]node
	last []node
}

const pieceLen = 1 << 14

func (g *gathered) add(n node) {
	if len(g.last) == pieceLen {
		g.full, g.last = append(g.full, g.last), make([]node, 0, pieceLen)
	}
	g.last = append(g.last, n)
}

func (g *gathered) all() []node {
	if g.full == nil {
		return g.last
	}
	return slices.Concat(append(g.full, g.last)...)
}

// restrict removes from a directory the group and other permissions that d does not grant. It
// ignores a directory without files.
func (t *Tree) restrict(d File) error {
	id := uint32(rootNode)
	if d.Path != "" {
		for name := range strings.SplitSeq(d.Path, "/") {
			if !t.nodes[id].isDir() {
				break
			}
			next, ok := t.lookup(id, name)
			if !ok {
				return nil
			}
			id = next
		}
	}
	n := &t.nodes[id]
	if !n.isDir() {
		return fmt.Errorf("%w: %q is a file and a directory", ErrBadTree, d.Path)
	}
	n.perm = dirPermOf(fs.FileMode(n.perm) & (d.Mode.Perm() | 0o700))
	return nil
}

// dirPermOf returns the permissions that a view shows for a directory that grants these.
func dirPermOf(granted fs.FileMode) uint32 { return uint32(granted.Perm())&dirPerm | ownerPerm }

// hide appends another tree as the control directory: behind the last child of the last directory,
// so that no listing includes it.
func (t *Tree) hide(control *Tree) {
	t.control = uint32(len(t.nodes))
	t.nodes = slices.Grow(t.nodes, len(control.nodes))
	for _, n := range control.nodes {
		n.parent += t.control
		n.first += t.control
		t.nodes = append(t.nodes, n)
	}
	root := &t.nodes[t.control]
	root.name, root.parent = ControlName, rootNode
}

// listed is the number of nodes that can be found by listing.
func (t *Tree) listed() int {
	if t.control != 0 {
		return int(t.control)
	}
	return len(t.nodes)
}

// newNode makes the node of a file, with the whole path for its name.
func newNode(f File) (node, error) {
	if err := checkPath(f.Path); err != nil {
		return node{}, err
	}
	if f.Size < 0 {
		return node{}, fmt.Errorf("%w: %q has the size %d", ErrBadTree, f.Path, f.Size)
	}
	if f.Source == nil {
		return node{}, fmt.Errorf("%w: %q has no content", ErrBadTree, f.Path)
	}
	return node{
		name:   f.Path,
		source: f.Source,
		size:   f.Size,
		sec:    f.ModTime.Unix(),
		nsec:   uint32(f.ModTime.Nanosecond()),
		perm:   uint32(f.Mode.Perm() &^ 0o222),
	}, nil
}

// checkPath rejects a path that the kernel could not show under exactly that name.
func checkPath(path string) error {
	if strings.IndexByte(path, 0) >= 0 {
		return fmt.Errorf("%w: path %q has a NUL byte", ErrBadTree, path)
	}
	if path == reservedRootName || strings.HasPrefix(path, reservedRootName+"/") {
		return fmt.Errorf("%w: the name %q is reserved by the FUSE library", ErrBadTree, reservedRootName)
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." || name == ".." || len(name) > maxName {
			return fmt.Errorf("%w: path %q has the component %q", ErrBadTree, path, name)
		}
	}
	return nil
}

// comparePaths orders by components, each by its bytes: as if the slash were less than every other
// byte. So the files below one directory are contiguous, and a file comes right before a path that
// would have to be below it.
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

// path returns the path of a node, "" for the root.
func (t *Tree) path(id uint32) string {
	var names []string
	for ; id != rootNode; id = t.nodes[id].parent {
		names = append(names, t.nodes[id].name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// children returns the nodes in a directory, sorted by name.
func (t *Tree) children(dir uint32) []node {
	d := &t.nodes[dir]
	return t.nodes[d.first : d.first+d.count]
}

// lookup finds a name in a directory.
func (t *Tree) lookup(dir uint32, name string) (uint32, bool) {
	if dir == rootNode && t.control != 0 && name == ControlName {
		return t.control, true
	}
	i, ok := slices.BinarySearchFunc(t.children(dir), name, func(n node, name string) int {
		return strings.Compare(n.name, name)
	})
	return t.nodes[dir].first + uint32(i), ok
}
