package fusefs

import (
	"bytes"
	"container/list"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Live is a [Source] with a new content at each opening: a reader sees all of the content of that
// moment, however long it reads. The Size and ModTime of its [File] are ignored. The returned slice
// must not change afterwards.
type Live func() []byte

// Made is a [Live] that can fail; a lookup of it is then EIO. A [SourceError] is a finding about
// that source, any other error is logged. It should return when done is closed, since its result is
// then ignored.
type Made func(done <-chan struct{}) ([]byte, error)

// SourceError is an error of a source that a [Made] content is made of.
type SourceError struct {
	Path string // of the file in the view
	Err  error
}

func (e *SourceError) Error() string { return fmt.Sprintf("%q: %v", e.Path, e.Err) }
func (e *SourceError) Unwrap() error { return e.Err }

// Open is not used: see snapshots.
func (m Made) Open() (Content, error) {
	data, err := m(nil)
	if err != nil {
		return nil, err
	}
	return snapshotContent{bytes.NewReader(data)}, nil
}

// XAttrs returns nil.
func (m Made) XAttrs() []XAttr { return nil }

// GuardedLive is a [Live] whose content is not always for all users: Perm returns the permissions
// that it grants now, within those of its [File]. Its owner can always read it.
type GuardedLive struct {
	Live
	Perm func() fs.FileMode
}

// Open is not used: see snapshots.
func (l Live) Open() (Content, error) {
	return snapshotContent{bytes.NewReader(l())}, nil
}

// XAttrs returns nil.
func (l Live) XAttrs() []XAttr { return nil }

type snapshotContent struct{ *bytes.Reader }

func (snapshotContent) Close() error { return nil }

// A live file gets a new node number whenever its name is looked up and its
// content is another one than before. So the kernel may cache each of them like
// any file, no reader sees two contents mixed, and nothing has to be done when
// a file is opened.
const liveBit = 1 << 63

// maxKept limits the total size of the contents that readers hold, in bytes, and maxSnapshots their
// number: a reader could hold a file for each content. Beyond that the oldest is dropped, and a
// reader that still holds it gets ESTALE for data that the kernel has not cached. The newest is
// always kept. A source whose content changes with every read should limit itself to one change a
// second.
const (
	maxKept      = 32 << 20
	maxSnapshots = 1024
)

// snapshot is the content of a live file at one lookup.
type snapshot struct {
	number  uint64
	of      uint64 // the number of the live file, which is its inode number
	data    []byte
	perm    uint32
	time    time.Time
	lookups uint64 // lookups by the kernel, less those returned by FORGET
	place   *list.Element
}

type snapshots struct {
	mu     sync.Mutex
	last   uint64
	all    map[uint64]*snapshot // by number
	order  *list.List           // of *snapshot, the oldest first
	kept   int                  // bytes of their contents
	newest map[uint64]*snapshot // by of
	made   map[uint64]*fresh[[]byte]
}

func newSnapshots() *snapshots {
	return &snapshots{
		all: make(map[uint64]*snapshot), order: list.New(), newest: make(map[uint64]*snapshot),
		made: make(map[uint64]*fresh[[]byte]),
	}
}

// content returns the present content of a live file. The error is [errInterrupted] if no
// caller waits for it any more.
func (ss *snapshots) content(cancel <-chan struct{}, of uint64, produce func() ([]byte, error)) ([]byte, error) {
	ss.mu.Lock()
	f := ss.made[of]
	if f == nil {
		f = new(fresh[[]byte])
		ss.made[of] = f
	}
	ss.mu.Unlock()
	m := f.ask(produce)
	if !await(cancel, m.ready) {
		return nil, errInterrupted
	}
	return m.value, m.err
}

// look returns the snapshot of a live file with the content that it has now.
func (ss *snapshots) look(of uint64, data []byte, granted func() uint32) *snapshot {
	perm := granted() // after the content, so that it is not older
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if n := ss.newest[of]; n != nil && n.perm == perm && bytes.Equal(n.data, data) {
		n.lookups++
		return n
	}
	ss.last++
	n := &snapshot{number: liveBit | ss.last, of: of, data: data, perm: perm, time: time.Now(), lookups: 1}
	ss.all[n.number], ss.newest[of] = n, n
	n.place = ss.order.PushBack(n)
	ss.kept += len(data)
	ss.bound()
	return n
}

// bound drops the oldest snapshots that are too many; under mu.
func (ss *snapshots) bound() {
	for e := ss.order.Front(); e != nil && (ss.kept > maxKept || len(ss.all) > maxSnapshots); {
		n := e.Value.(*snapshot)
		e = e.Next()
		if ss.newest[n.of] != n {
			ss.drop(n)
		}
	}
}

// drop removes a snapshot; under mu.
func (ss *snapshots) drop(n *snapshot) {
	delete(ss.all, n.number)
	ss.order.Remove(n.place)
	ss.kept -= len(n.data)
	if ss.newest[n.of] == n {
		delete(ss.newest, n.of)
	}
}

// numbered returns a snapshot that the kernel knows, or nil.
func (ss *snapshots) numbered(number uint64) *snapshot {
	if number&liveBit == 0 {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[number]
}

// forget subtracts lookups; a snapshot that the kernel no longer knows is dropped.
func (ss *snapshots) forget(number, lookups uint64) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	n := ss.all[number]
	if n == nil {
		return
	}
	if n.lookups -= min(lookups, n.lookups); n.lookups > 0 {
		return
	}
	ss.drop(n)
}

func (n *snapshot) attr(s *fileSystem, out *fuse.Attr) {
	*out = fuse.Attr{
		Ino:     n.of,
		Size:    uint64(len(n.data)),
		Blocks:  blocks512(uint64(len(n.data))),
		Mode:    fuse.S_IFREG | n.perm,
		Nlink:   1,
		Owner:   fuse.Owner{Uid: s.uid, Gid: s.gid},
		Blksize: statBlock,
	}
	out.SetTimes(&n.time, &n.time, &n.time)
}
