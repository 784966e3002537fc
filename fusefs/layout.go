package fusefs

import (
	"fmt"
	"strings"
)

// span is a directory whose children are not laid out yet: flat[lo:hi] are the nodes below it, and
// skip is the length of its path with the slash.
type span struct {
	dir    uint32
	lo, hi int
	skip   int
}

// layOut turns sorted files, whose names are still whole paths, into a tree.
// Directories are taken in the order in which they were found, so that the
// children of each are contiguous and come after it.
func layOut(flat []node) (*Tree, error) {
	t := &Tree{nodes: make([]node, 1, len(flat)+len(flat)/8+1)}
	t.nodes[rootNode].perm = dirPerm
	queue := []span{{dir: rootNode, hi: len(flat)}}
	for i := 0; i < len(queue); i++ {
		more, err := t.layOutDir(flat, queue[i])
		if err != nil {
			return nil, err
		}
		queue = append(queue, more...)
	}
	t.total()
	return t, nil
}

// layOutDir appends the children of one directory, and returns those that are
// directories.
func (t *Tree) layOutDir(flat []node, s span) ([]span, error) {
	first := uint32(len(t.nodes))
	var dirs []span
	for lo := s.lo; lo < s.hi; {
		name, leaf := cutName(flat[lo].name[s.skip:])
		hi := lo + 1
		for hi < s.hi && hasName(flat[hi].name[s.skip:], name) {
			hi++
		}
		if leaf && hi > lo+1 {
			return nil, fmt.Errorf("%w: %q and %q cannot both be there", ErrBadTree, flat[lo].name, flat[lo+1].name)
		}
		n := node{perm: dirPerm}
		if leaf {
			n = flat[lo]
		} else {
			dirs = append(dirs, span{uint32(len(t.nodes)), lo, hi, s.skip + len(name) + 1})
		}
		n.name, n.parent = name, s.dir
		t.nodes = append(t.nodes, n)
		lo = hi
	}
	d := &t.nodes[s.dir]
	d.first, d.count, d.subdirs = first, uint32(len(t.nodes))-first, uint32(len(dirs))
	return dirs, nil
}

// cutName returns the first component of a path, and whether it is the only one.
func cutName(path string) (name string, leaf bool) {
	name, _, found := strings.Cut(path, "/")
	return name, !found
}

// hasName reports whether name is the first component of a path.
func hasName(path, name string) bool {
	return strings.HasPrefix(path, name) && (len(path) == len(name) || path[len(name)] == '/')
}

// total computes the totals for statfs, and sets the time of each directory to the newest below it.
// Children follow their parents, so one backward pass suffices.
func (t *Tree) total() {
	for i := len(t.nodes) - 1; i > rootNode; i-- {
		n := &t.nodes[i]
		if !n.isDir() {
			t.bytes += uint64(n.size)
			t.blocks += (uint64(n.size) + statBlock - 1) / statBlock
		}
		p := &t.nodes[n.parent]
		if first := uint32(i) == p.first+p.count-1; first || newer(n, p) {
			p.sec, p.nsec = n.sec, n.nsec
		}
	}
}

func newer(a, b *node) bool {
	return a.sec > b.sec || a.sec == b.sec && a.nsec > b.nsec
}
