package fusefs

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A VolumeSet adds directories to the root of a view: volumes, each with its own tree that is made
// when it is first entered, and that may appear and disappear while the view is mounted. Its
// methods are called concurrently.
type VolumeSet interface {
	// Names returns the present volumes, in ascending order. None is called [LatestName] or
	// [ControlName].
	Names() ([]string, error)

	// Find returns the volume of a name, or nil if there is none now. It returns the same volume
	// for a name as long as the view exists.
	Find(name string) Volume

	// Latest returns the target of the link "latest", or "" for none. It may block until done is
	// closed.
	Latest(done <-chan struct{}) string

	// ModTime is the time of the root.
	ModTime() time.Time

	// Perm returns the permissions of the root now. Only the bits of the group and of others count,
	// and the root of the view's tree may grant less.
	Perm() fs.FileMode
}

// A Volume is one directory of a [VolumeSet].
type Volume interface {
	// Tree returns the content of the directory. It is called when the directory is first
	// entered, not concurrently, until it returns a tree, and never after that. It may block
	// until done is closed. An error is EIO.
	Tree(done <-chan struct{}) (*Tree, error)

	// Spoiled reports whether the content has changed since the tree was made. From then on
	// all reads of its files are EIO, except for live ones. It is called at every lookup of
	// the name and at every read that the kernel cannot answer.
	Spoiled() bool

	// ModTime returns the time of the directory until the tree is loaded.
	ModTime() time.Time

	// Perm returns the permissions of the directory until the tree is loaded, as [VolumeSet.Perm]
	// does.
	Perm() fs.FileMode
}

// volume is one tree of a view, with its number. The first, number 0, has the root of the view and
// always exists.
type volume struct {
	number uint32
	name   string // in the root; "" for the first
	source Volume // nil for the first, and for one that was listed but never looked up

	tree    atomic.Pointer[Tree]
	spoiled atomic.Bool

	mu      sync.Mutex
	loading chan struct{} // closed when an attempt to load has ended; nil when none is in progress
}

// volumes are the trees of a view by number and by name. None is ever removed: a number identifies
// the same tree as long as the view exists.
type volumes struct {
	mu     sync.RWMutex
	all    []*volume
	byName map[string]*volume
}

func newVolumes(first *Tree) *volumes {
	v := &volume{}
	v.tree.Store(first)
	return &volumes{all: []*volume{v}, byName: make(map[string]*volume)}
}

// numbered returns a volume by its number, or nil, also if the name was only listed: the
// kernel cannot refer to that number.
func (vs *volumes) numbered(number uint64) *volume {
	vs.mu.RLock()
	defer vs.mu.RUnlock()
	if number >= uint64(len(vs.all)) {
		return nil
	}
	if v := vs.all[number]; v.source != nil || number == 0 {
		return v
	}
	return nil
}

// named returns the volume of a name, and numbers it if it is new. source, unless it is nil, is the
// volume set's volume of that name.
func (vs *volumes) named(name string, source Volume) *volume {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v := vs.byName[name]
	if v == nil {
		v = &volume{number: uint32(len(vs.all)), name: name}
		vs.all = append(vs.all, v)
		vs.byName[name] = v
	}
	if v.source == nil {
		v.source = source
	}
	return v
}

// each calls f for every loaded tree.
func (vs *volumes) each(f func(*Tree)) {
	vs.mu.RLock()
	defer vs.mu.RUnlock()
	for _, v := range vs.all {
		if t := v.tree.Load(); t != nil {
			f(t)
		}
	}
}

// load returns the tree of a volume, and makes it at the first entry. Concurrent callers wait
// too, and may be interrupted: the work continues for the others.
func (s *fileSystem) load(cancel <-chan struct{}, v *volume) (*Tree, fuse.Status) {
	if t := v.tree.Load(); t != nil {
		return t, fuse.OK
	}
	if !await(cancel, s.startLoading(v)) {
		return nil, fuse.EINTR
	}
	if t := v.tree.Load(); t != nil {
		return t, fuse.OK
	}
	return nil, fuse.EIO
}

func (s *fileSystem) startLoading(v *volume) <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.loading != nil {
		return v.loading
	}
	ended := make(chan struct{})
	v.loading = ended
	go func() {
		defer close(ended)
		s.loadNow(v)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.loading = nil // the next one tries again, or finds the tree
	}()
	return ended
}

func (s *fileSystem) loadNow(v *volume) {
	if v.tree.Load() != nil {
		return // another goroutine was faster
	}
	var t *Tree
	err := attempt(func() (err error) {
		t, err = v.source.Tree(s.done)
		return err
	})
	if err == nil && (t == nil || len(t.nodes) == 0) {
		err = fmt.Errorf("%w: there is no tree", ErrBadTree)
	}
	if err == nil && t.unsized && !s.unsized {
		err = fmt.Errorf("%w: it has files without a size", ErrBadTree)
	}
	if err != nil {
		s.log.Error("cannot show a directory of the view: the reader gets an I/O error", "path", v.name, "error", err)
		return
	}
	v.tree.Store(t)
}

// attempt calls do and returns a panic as an error: in a goroutine of this package it would end the
// process.
func attempt(do func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("panic: %v", what)
		}
	}()
	return do()
}

// checkSpoiled checks whether a volume has changed, and then makes the kernel drop its cache
// of it.
func (s *fileSystem) checkSpoiled(v *volume) bool {
	if v.source == nil {
		return false
	}
	if !v.spoiled.Load() && v.source.Spoiled() && v.spoiled.CompareAndSwap(false, true) {
		go s.dropPages(v)
	}
	return v.spoiled.Load()
}

// dropPages has the kernel forget the content of every file of a volume.
func (s *fileSystem) dropPages(v *volume) {
	t := v.tree.Load()
	if t == nil {
		return
	}
	for id := range t.nodes {
		if !t.nodes[id].isDir() {
			s.notify(at{v, t, uint32(id)}.number())
		}
	}
}
