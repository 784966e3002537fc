package fusefs

import (
	"bytes"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Live is a [Source] of which every opening sees a new content: what it was at
// that moment, whole, however long it is read. The Size and ModTime of its
// [File] do not count. What was returned must not change afterwards.
type Live func() []byte

// Open is not used: see snapshots.
func (l Live) Open() (Content, error) {
	return snapshotContent{bytes.NewReader(l())}, nil
}

// XAttrs are none.
func (l Live) XAttrs() []XAttr { return nil }

type snapshotContent struct{ *bytes.Reader }

func (snapshotContent) Close() error { return nil }

// A live file gets a new node number whenever its name is looked up and its
// content is another one than before. So the kernel may cache each of them like
// any file, no reader sees two contents mixed, and nothing has to be done when
// a file is opened.
const liveBit = 1 << 63

// snapshot is what one lookup of a live file has seen.
type snapshot struct {
	number  uint64
	of      uint64 // the number that its name leads to, which is its inode number
	data    []byte
	time    time.Time
	lookups uint64 // how often the kernel was told of it; it counts down by FORGET
}

type snapshots struct {
	mu     sync.Mutex
	last   uint64
	all    map[uint64]*snapshot // by number
	newest map[uint64]*snapshot // by of
}

func newSnapshots() *snapshots {
	return &snapshots{all: make(map[uint64]*snapshot), newest: make(map[uint64]*snapshot)}
}

// look gives the snapshot of a live file as it is now.
func (ss *snapshots) look(of uint64, live Live) *snapshot {
	data := live()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if n := ss.newest[of]; n != nil && bytes.Equal(n.data, data) {
		n.lookups++
		return n
	}
	ss.last++
	n := &snapshot{number: liveBit | ss.last, of: of, data: data, time: time.Now(), lookups: 1}
	ss.all[n.number], ss.newest[of] = n, n
	return n
}

// numbered gives a snapshot that the kernel was told of, or nil.
func (ss *snapshots) numbered(number uint64) *snapshot {
	if number&liveBit == 0 {
		return nil
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[number]
}

// forget takes back lookups; what the kernel knows no more is dropped.
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
	delete(ss.all, number)
	if ss.newest[n.of] == n {
		delete(ss.newest, n.of)
	}
}

func (n *snapshot) attr(s *fileSystem, out *fuse.Attr) {
	*out = fuse.Attr{
		Ino:     n.of,
		Size:    uint64(len(n.data)),
		Blocks:  blocks512(uint64(len(n.data))),
		Mode:    fuse.S_IFREG | filePerm,
		Nlink:   1,
		Owner:   fuse.Owner{Uid: s.uid, Gid: s.gid},
		Blksize: statBlock,
	}
	out.SetTimes(&n.time, &n.time, &n.time)
}
