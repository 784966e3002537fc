package fusefs

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A VolumeSet adds directories to the root of a view: volumes, each a tree of its
// own that is made when it is first entered, and that may appear and vanish
// while the view is mounted. Its methods are called by several goroutines at
// once.
type VolumeSet interface {
	// Names lists the volumes that are there now, in ascending order. None is
	// called [LatestName] or [ControlName].
	Names() ([]string, error)

	// Find returns the volume of a name, or nil when it is not there now. For one
	// name it is the same volume as long as the view lives.
	Find(name string) Volume

	// Latest returns the name that the link "latest" leads to, "" for none. It may
	// take its time, until done is closed.
	Latest(done <-chan struct{}) string

	// ModTime is the time of the root.
	ModTime() time.Time

	// Perm returns what the root grants now. Only the bits of the group and of others
	// count, and the root of the view's tree may grant less.
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

	// ModTime is the time of the directory until the tree is there.
	ModTime() time.Time

	// Perm returns what the directory grants until the tree is there, as that of a
	// [VolumeSet] does.
	Perm() fs.FileMode
}

// volume is one tree of a view, with its number. The first, number 0, has the
// root of the view, and is always there.
type volume struct {
	number uint32
	name   string // in the root; "" for the first
	source Volume // nil for the first, and for one that was listed but never looked up

	tree    atomic.Pointer[Tree]
	spoiled atomic.Bool

	mu      sync.Mutex
	loading chan struct{} // closed when an attempt to load has ended; nil when none is under way
}

// volumes are the trees of a view by number and by name. None is ever taken
// out: a number stands for the same tree as long as the view lives.
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

// named returns the volume of a name, with a number of its own from then on. A
// source that is not nil is what the volume set has under that name.
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

// each calls f for every tree that there is.
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

// attempt does what a volume set has to do, in a goroutine of ours: a panic there
// would end the process, and not only the request as elsewhere.
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
