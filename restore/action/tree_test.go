package action_test

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/tree"
	"golang.org/x/sys/unix"
)

// A thing is what stands at one name, or at several: an inode.
type thing struct {
	kind    byte // 'f', 'd', 'l' or 'p'
	mode    uint32
	content string // of a file; of a link where it leads
	time    int64  // of modification of a file, nanoseconds since 1970
	note    string // an extended attribute; "" for none
}

// A forest is a tree of things by their paths; "" is its root. Two names of one
// file are two paths of one thing.
type forest map[string]*thing

func (f forest) clone() forest {
	again := map[*thing]*thing{}
	g := forest{}
	for path, th := range f {
		if again[th] == nil {
			own := *th
			again[th] = &own
		}
		g[path] = again[th]
	}
	return g
}

func (f forest) sorted() []string { return slices.Sorted(maps.Keys(f)) }

// below are a path and all beneath it that stand there.
func (f forest) below(top string) []string {
	var all []string
	for _, p := range f.sorted() {
		if p == top || top == "" || strings.HasPrefix(p, top+"/") {
			all = append(all, p)
		}
	}
	return all
}

func (f forest) drop(top string) {
	for _, p := range f.below(top) {
		delete(f, p)
	}
}

// graft makes what g has at a path that of f; hard links among names that come are
// kept, and those to names that do not are not.
func (f forest) graft(g forest, tops []string) {
	g = g.clone()
	for _, top := range tops {
		f.drop(top)
	}
	for _, top := range tops {
		for _, p := range g.below(top) {
			f[p] = g[p]
		}
	}
}

// print prints for each path what is there, with the first name of each file.
func (f forest) print() map[string]string {
	first, said := map[*thing]string{}, map[string]string{}
	for _, p := range f.sorted() {
		th := f[p]
		if _, seen := first[th]; !seen {
			first[th] = p
		}
		line := fmt.Sprintf("%c %#o %q %s", th.kind, th.mode, th.content, th.note)
		if th.kind == 'f' {
			line += fmt.Sprintf(" %d, as %q", th.time, first[th])
		}
		said[p] = line
	}
	return said
}

// isDir reports whether a path is one of a directory, through no link.
func (f forest) isDir(p string) bool { return f[p] != nil && f[p].kind == 'd' }

// parentIsDir: through no link, all the way up.
func (f forest) parentIsDir(p string) bool {
	for p != "" {
		if p = upOf(p); !f.isDir(p) {
			return false
		}
	}
	return true
}

func upOf(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

func beneath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

var errWay = errors.New("no way leads there")

// land is where a path leads: through links on its way, beneath the root. missing
// is the first name that is not there, as it is really; "" when something stands
// at the path.
func (f forest) land(p string) (real, missing string, err error) {
	at, todo, own := "", strings.Split(p, "/"), strings.Count(p, "/")+1
	for budget := 40; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		ofLink := len(todo) >= own
		own = min(own, len(todo))
		switch name {
		case "", ".":
			continue
		case "..":
			if at == "" {
				return "", "", errWay
			}
			at = upOf(at)
			continue
		}
		next := beneath(at, name)
		th := f[next]
		switch {
		case th == nil:
			if ofLink {
				return "", "", errWay
			}
			return path.Join(append([]string{next}, todo...)...), next, nil
		case len(todo) == 0:
			at = next
		case th.kind == 'd':
			at = next
		case th.kind == 'l' && !strings.HasPrefix(th.content, "/") && budget > 0:
			budget--
			todo = append(strings.Split(th.content, "/"), todo...)
		default:
			return "", "", errWay
		}
	}
	return at, "", nil
}

// read is the forest that stands in a directory.
func read(t testing.TB, dir string) forest {
	t.Helper()
	f := forest{}
	seen := map[[2]uint64]*thing{} // overlay has inodes of several devices
	must(t, tree.Walk(dir, func(p string, n *tree.Node, err error) error {
		must(t, err)
		th := seen[[2]uint64{n.Dev, n.Ino}]
		if th == nil {
			th = look(t, filepath.Join(dir, p), n)
			seen[[2]uint64{n.Dev, n.Ino}] = th
		}
		if p == "." {
			p = ""
		}
		f[p] = th
		return nil
	}))
	return f
}

const attribute = "user.note"

func look(t testing.TB, name string, n *tree.Node) *thing {
	t.Helper()
	kinds := map[uint32]byte{unix.S_IFREG: 'f', unix.S_IFDIR: 'd', unix.S_IFLNK: 'l', unix.S_IFIFO: 'p'}
	th := &thing{kind: kinds[n.Kind()], mode: n.Mode & 0o7777}
	if th.kind == 'f' {
		th.time = n.Mtim.Nano()
	}
	var err error
	th.content, err = n.Content()
	must(t, err)
	value := make([]byte, 100)
	if n, err := unix.Lgetxattr(name, attribute, value); err == nil {
		th.note = string(value[:n])
	}
	return th
}
