package action

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
)

// undoPlan holds which of the entries created by commits exist, and can be removed.
type undoPlan struct {
	root  *pathsafe.Dir
	mount pathsafe.ID // that the root is on
	top   node
	swaps []staging.Swap
	files int // that go
	left  []Left
	edits []Edit

	unread  []unreadCommit       // the later ones
	befores []*snapshot.Snapshot // of what the commits were to create, the newest first
}

// unreadCommit is a commit whose savepoint cannot be read.
type unreadCommit struct {
	id     string
	before *snapshot.Snapshot // of the names that it creates; nil if there is none
}

// node is a name that a commit has created, or a directory on the way to one.
type node struct {
	path     string
	made     bool // created, and not only on the way
	removed  bool // a commit has removed the file that was there
	file     *verify.Entry
	was      *displaced // what the oldest of the commits has replaced or removed there; nil for nothing
	children map[string]*node
}

// Left is a name that stays, though it was to go.
type Left struct {
	Path, Why string
	Committed bool   // it is as a commit that is undone has made it, so that commit is not undone
	Away      bool   // nothing of it is there to be removed: what stood there cannot come back as things are
	Missing   string // the directory that has to be there for that, where it is gone
	Unread    bool   // it could not be read, so it was neither kept nor removed: the same restore, once it can, does the rest
	// Fixed is the path of the immutable or append-only entry that prevents a change, "." for
	// the root, "" for none: without these flags, the same command does the rest.
	Fixed string
	// Held: an earlier command has kept it of another user, so that it would only be kept again.
	Held bool
}

func newUndoPlan(root *pathsafe.Dir) *undoPlan { return &undoPlan{root: root} }

// add adds a file that a commit has created, at the path to which the links led at that time;
// later changes of the links are not the commit's. Files of later commits are added first.
func (p *undoPlan) add(e verify.Entry, before *snapshot.Snapshot) error {
	was, err := before.At(e.Path)
	if errors.Is(err, snapshot.ErrNotCovered) { // it was identical, and stayed as it was
		return nil
	}
	if err != nil {
		return err
	}
	at, err := p.nodeAt(was.Path, before)
	if err != nil {
		return err
	}
	if at.file == nil { // else a later commit has created it anew
		at.file = &e
	}
	if at.was != nil {
		p.noteEdit(at, &e)
	}
	at.was = nil
	if was.Type == snapshot.File {
		at.was = &displaced{before, was.Path}
	}
	return nil
}

// removedBy returns the files that a commit removes: those of the snapshot before it whose
// names it does not create.
func removedBy(created []verify.Entry, before *snapshot.Snapshot) (removed []snapshot.Entry, err error) {
	replaced := map[string]bool{}
	for _, e := range created {
		was, err := before.At(e.Path)
		if errors.Is(err, snapshot.ErrNotCovered) {
			continue
		}
		if err != nil {
			return nil, err
		}
		replaced[was.Path] = true
	}
	for was := range before.Entries() {
		if was.Asked && was.Type == snapshot.File && !replaced[was.Path] {
			removed = append(removed, was)
		}
	}
	return removed, nil
}

// addRemoved adds the files that a commit has removed.
func (p *undoPlan) addRemoved(created []verify.Entry, before *snapshot.Snapshot) error {
	removed, err := removedBy(created, before)
	if err != nil {
		return err
	}
	for _, was := range removed {
		at, err := p.nodeAt(was.Path, before)
		if err != nil {
			return err
		}
		at.removed, at.was = true, &displaced{before, was.Path}
	}
	return nil
}

// nodeAt returns the node of a path, and records which parent directories were made. A
// directory that was absent before was made by the commit.
func (p *undoPlan) nodeAt(to string, before *snapshot.Snapshot) (_ *node, err error) {
	at := &p.top
	for name := range strings.SplitSeq(to, "/") {
		if at.children == nil {
			at.children = map[string]*node{}
		}
		child := at.children[name]
		if child == nil {
			child = &node{path: path.Join(at.path, name)}
			at.children[name] = child
		}
		if isDir := child.path != to; isDir && !child.made {
			if child.made, err = absent(before, child.path); err != nil {
				return nil, err
			}
		}
		at = child
	}
	return at, nil
}

func absent(s *snapshot.Snapshot, path string) (bool, error) {
	at, err := pathsafe.Parse(path)
	if err != nil {
		return false, err
	}
	e, err := s.At(at)
	return e.Type == snapshot.Absent, err
}

func (n *node) name() string { return path.Base(n.path) }

// sorted are the children in the order of their names.
func (n *node) sorted() []*node {
	all := make([]*node, 0, len(n.children))
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		all = append(all, n.children[name])
	}
	return all
}

// survey reads everything that was created, and plans the removals.
func (p *undoPlan) survey() error {
	root, err := p.root.Reopen()
	if err != nil {
		return err
	}
	defer root.Close()
	st, err := root.Stat()
	if err != nil {
		return err
	}
	p.mount = st.ID
	return p.below(root, &p.top)
}

// below plans the removals in a directory that stays.
func (p *undoPlan) below(dir *pathsafe.Dir, n *node) error {
	for _, child := range n.sorted() {
		got, err := p.visit(dir, child)
		if err != nil {
			return err
		}
		p.swaps = append(p.swaps, got.swaps...)
	}
	return nil
}

// visited is the result of visiting a node: what is removed there, and whether that is all of
// it.
type visited struct {
	swaps []staging.Swap
	whole bool
}

func (p *undoPlan) visit(dir *pathsafe.Dir, n *node) (visited, error) {
	st, err := dir.Lstat(n.name())
	switch {
	case p.needsRoot(n):
		return visited{}, nil
	case errors.Is(err, fs.ErrNotExist) && n.was != nil && p.isFixed(dir, n, pathsafe.Stat{}):
		return visited{}, nil
	case errors.Is(err, fs.ErrNotExist) && n.was != nil:
		return p.comesBack(n)
	case errors.Is(err, fs.ErrNotExist) && p.revive(n):
		if p.isFixed(dir, n, pathsafe.Stat{}) {
			return visited{}, nil
		}
		return p.comesBack(n)
	case errors.Is(err, fs.ErrNotExist):
		p.lost(n, false)
		return visited{whole: true}, nil
	case err != nil:
		return visited{}, err
	case !st.IsOn(p.mount):
		p.left = append(p.left, Left{Path: n.path, Why: snapshot.Mount.Unkept(), Committed: true})
		return visited{}, nil
	case (n.isFile() || n.made) && (p.isFixed(dir, n, st) || p.isDenied(dir, n, st)):
		return visited{}, nil
	case n.isFile() && (st.Mode.IsRegular() || n.children == nil):
		return p.visitFile(n, st)
	case n.made:
		return p.visitMade(dir, n, st)
	}
	return visited{}, p.visitWay(dir, n, st)
}

func (p *undoPlan) visitFile(n *node, st pathsafe.Stat) (visited, error) {
	if !st.Mode.IsRegular() {
		why := "it is no longer a file"
		if n.was != nil {
			why += ", so the earlier file is not put back: move it away"
		}
		p.left = append(p.left, Left{Path: n.path, Why: why, Committed: n.was != nil, Away: n.was != nil})
		return visited{}, nil
	}
	if n.file != nil {
		p.files++
	}
	return p.goes(n, st)
}

// isFile reports whether a commit has put a file there, or has removed one.
func (n *node) isFile() bool { return n.file != nil || n.removed }

// goes plans the removal of an entry with everything in it.
func (p *undoPlan) goes(n *node, st pathsafe.Stat) (visited, error) {
	at, err := pathsafe.Parse(n.path)
	swap := staging.Swap{Path: at, Old: &st, Last: !st.Mode.IsDir() && isArtifact(at, nil)}
	if n.was != nil {
		swap.New = staging.Tree{}
	}
	return visited{[]staging.Swap{swap}, n.was == nil}, err
}

// visitMade visits a directory that was created. It is removed if all its entries are.
func (p *undoPlan) visitMade(dir *pathsafe.Dir, n *node, st pathsafe.Stat) (visited, error) {
	own, err := p.enter(dir, n, st)
	if own == nil {
		return visited{}, err
	}
	defer own.Close()
	all, err := p.visitAll(own, n)
	if err != nil || !all.whole {
		return all, err
	}
	itself, err := p.goes(n, st)
	if err != nil {
		return visited{}, err
	}
	itself.swaps[0].Empty = true
	return visited{append(all.swaps, itself.swaps...), true}, nil
}

func (p *undoPlan) visitAll(own *pathsafe.Dir, n *node) (visited, error) {
	names, err := own.Names()
	if err != nil {
		return visited{}, err
	}
	all := visited{whole: true}
	for _, name := range names {
		child := n.children[name]
		if child == nil || !child.isFile() && !child.made {
			p.left = append(p.left, Left{Path: n.path, Why: fmt.Sprintf("it contains %q, which the commit did not create", name)})
			all.whole = false
		}
		if child == nil {
			continue
		}
		got, err := p.visit(own, child)
		if err != nil {
			return visited{}, err
		}
		all.swaps, all.whole = append(all.swaps, got.swaps...), all.whole && got.whole
	}
	for _, child := range n.sorted() {
		if child.was == nil || slices.Contains(names, child.name()) {
			continue
		}
		got, err := p.visit(own, child) // it is restored
		if err != nil {
			return visited{}, err
		}
		all.swaps, all.whole = append(all.swaps, got.swaps...), all.whole && got.whole
	}
	return all, nil
}

// visitWay continues beneath a directory that existed before. If it no longer exists, nothing
// of a commit is beneath it.
func (p *undoPlan) visitWay(dir *pathsafe.Dir, n *node, st pathsafe.Stat) error {
	own, err := p.enter(dir, n, st)
	if own == nil {
		return err
	}
	defer own.Close()
	return p.below(own, n)
}

// enter opens a directory. The result is nil, also without an error, if the name stays as it
// is, which is recorded: it is no longer a directory, or is on another file system.
func (p *undoPlan) enter(dir *pathsafe.Dir, n *node, st pathsafe.Stat) (*pathsafe.Dir, error) {
	if !st.Mode.IsDir() {
		p.left = append(p.left, Left{Path: n.path, Why: "it is no longer a directory"})
		p.lost(n, true)
		return nil, nil
	}
	own, err := dir.OpenDir(n.name())
	if errors.Is(err, pathsafe.ErrCrossesMount) {
		p.left = append(p.left, Left{Path: n.path, Why: snapshot.Mount.Unkept(), Committed: true})
		return nil, nil
	}
	return own, err
}

// check takes from the snapshot before a rollback the entries that the swaps displace: no
// others are kept in it. It records which of them differ from what the commit created. Such an
// entry stays if a later commit may have created it.
func (p *undoPlan) check(before *snapshot.Snapshot, u *Undone) error {
	restless := before.Restless()
	held := map[string]string{} // directories that have to stay, and a name in each that stays
	leave := func(at, why string) {
		p.left = append(p.left, Left{Path: at, Why: why})
		held[path.Dir(at)] = path.Base(at)
	}
	all := p.swaps
	p.swaps = nil
	for _, swap := range all {
		if name, isHeld := held[swap.Path.String()]; isHeld {
			leave(swap.Path.String(), fmt.Sprintf("it holds %q, which stays", name))
			continue
		}
		e, err := before.At(swap.Path)
		if err != nil {
			return err
		}
		if at := unreadAt(before, swap.Path); at != nil { // what is there, or is beneath it, is not known
			leave(swap.Path.String(), at.Unkept())
			if at.Path != swap.Path.String() {
				p.left[len(p.left)-1].Why = fmt.Sprintf("it is in %q: %s", at.Path, at.Unkept())
			}
			p.left[len(p.left)-1].Committed = true
			continue
		}
		if swap.Old == nil || e.Type == snapshot.Absent && swap.New != nil { // it is gone, and comes back
			swap.Old = nil
			p.swaps = append(p.swaps, swap)
			continue
		}
		if e.Type == snapshot.Absent || (e.Type == snapshot.Dir) != swap.Old.Mode.IsDir() { // what is there by now is another's
			continue
		}
		if !e.Type.Kept() {
			leave(swap.Path.String(), e.Unkept())
			continue
		}
		n := p.top.find("/" + swap.Path.String())
		isChanged := e.Type == snapshot.File && n.isFile() && (n.file == nil || e.Digest != n.file.Digest)
		if isChanged && n.was != nil && e.Digest == n.was.entry().Digest {
			isChanged = false // it has come back already
		}
		if i := p.laterOf(swap.Path, isChanged); i >= 0 {
			if n.file != nil {
				p.files--
			}
			leave(n.path, fmt.Sprintf("it may belong to commit %s, whose savepoint cannot be read", p.unread[i].id))
			continue
		}
		if isChanged {
			u.Changed = append(u.Changed, n.path)
		}
		st := e.Stat()
		swap.Old, swap.Unsure = &st, slices.Contains(restless, e.First())
		p.swaps = append(p.swaps, swap)
	}
	return nil
}

// unreadAt returns the entry at a path, or of the nearest directory above it, that could not be
// read for a snapshot; nil if all of them were.
func unreadAt(s *snapshot.Snapshot, at pathsafe.Path) *snapshot.Entry {
	for more := true; more; at, more = at.Parent() {
		if e, err := s.At(at); err == nil && e.Type.IsUnread() {
			return &e
		}
	}
	return nil
}

// laterOf returns which of the unread commits may have created a name: one before which nothing
// was there, and of a file that is not as the commit made it, any; -1 for none.
func (p *undoPlan) laterOf(at pathsafe.Path, isChanged bool) int {
	return slices.IndexFunc(p.unread, func(u unreadCommit) bool {
		if isChanged || u.before == nil {
			return isChanged
		}
		was, err := u.before.At(at)
		return err == nil && was.Type == snapshot.Absent
	})
}

// find is the node at a path below, which begins with a slash unless it is empty;
// nil when there is none.
func (n *node) find(path string) *node {
	for path != "" && n != nil {
		name, rest, more := strings.Cut(path[1:], "/")
		if n = n.children[name]; more {
			path = "/" + rest
		} else {
			path = ""
		}
	}
	return n
}
