package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A scanner looks at everything below a directory, several directories at a
// time. It reads no file.
type scanner struct {
	mount pathsafe.ID // what is on another mount is not entered
	// all records entries that a snapshot cannot hold by name only; otherwise a requested name
	// with such an entry is rejected.
	all bool
	own func(pathsafe.ID) bool
	// fill completes the entry of something that is not a directory, which stands
	// at name in d. nil: the metadata will do.
	fill func(d dir, name string, e *Entry) error
	// attributes: also those of directories are read.
	attributes bool
	// gone is called with an entry that is missing when it is looked at; if it is nil, that is
	// an error.
	gone func(path string)
	// last: so is what has become another thing.
	last bool

	mu      sync.Mutex
	wake    *sync.Cond
	todo    []scanTask
	busy    int
	stopped error
	failure *scanError // the first in the order of paths
}

// A scanError is what was wrong at a path. All of the tree is looked at before
// one is reported, so that which one it is does not depend on timing.
type scanError struct {
	path string
	err  error
}

func (e *scanError) Error() string { return fmt.Sprintf("%q: %v", e.path, e.err) }
func (e *scanError) Unwrap() error { return e.err }

// A scanTask is a directory to enter, or a part of one that was entered.
type scanTask struct {
	in    *sharedDir
	name  string // of a directory in in; "": names of level are to be looked at
	at    *Entry // of that directory
	into  *level
	start int
	end   int
}

// scanBatch is how many names of a directory are looked at in one go.
const scanBatch = 256

// A level is what was found in a directory.
type level struct {
	path    string
	names   []string
	entries []Entry
	below   []*level // of the directories, by index
}

// A sharedDir is a handle that is closed by the last of its users.
type sharedDir struct {
	dir
	users atomic.Int64
}

func (d *sharedDir) release() {
	if d.users.Add(-1) == 0 {
		d.Close()
	}
}

// scan returns the entries of the directory that d holds, which is at path, and
// of everything below it. top is its own entry.
func (s *scanner) scan(ctx context.Context, d dir, top Entry) ([]Entry, error) {
	s.wake = sync.NewCond(&s.mu)
	first := &sharedDir{dir: d}
	first.users.Store(2) // one more: d is the caller's to close
	root := &level{path: top.Path}
	s.todo = []scanTask{{in: first, at: &top, into: root}}
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() { s.work(ctx) })
	}
	group.Wait()
	switch {
	case s.stopped != nil:
		return nil, s.stopped
	case s.failure != nil:
		return nil, s.failure
	}
	return root.flatten(append(make([]Entry, 0, 1+root.count()), top)), nil
}

func (l *level) count() int {
	n := len(l.entries)
	for _, below := range l.below {
		if below != nil {
			n += below.count()
		}
	}
	return n
}

func (l *level) flatten(all []Entry) []Entry {
	for i := range l.entries {
		if l.entries[i].gone {
			continue
		}
		all = append(all, l.entries[i])
		if l.below[i] != nil {
			all = l.below[i].flatten(all)
		}
	}
	return all
}

func (s *scanner) work(ctx context.Context) {
	for {
		task, ok := s.take()
		if !ok {
			return
		}
		err := ctx.Err()
		if err == nil {
			s.run(task)
		}
		task.in.release()
		s.done(err)
	}
}

func (s *scanner) take() (scanTask, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.todo) == 0 && s.busy > 0 {
		s.wake.Wait()
	}
	if len(s.todo) == 0 {
		return scanTask{}, false
	}
	last := len(s.todo) - 1
	task := s.todo[last]
	s.todo = s.todo[:last]
	s.busy++
	return task, true
}

func (s *scanner) done(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stopped = err
	}
	if s.busy--; len(s.todo) > 0 || s.busy == 0 {
		s.wake.Broadcast()
	}
}

func (s *scanner) add(task scanTask) {
	task.in.users.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.todo = append(s.todo, task)
	s.wake.Signal()
}

func (s *scanner) fail(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil || comparePaths(path, s.failure.path) < 0 {
		s.failure = &scanError{path, asMounted(err)}
	}
}

func (s *scanner) run(task scanTask) {
	switch {
	case task.at == nil:
		s.names(task)
	case task.name == "":
		s.list(task.in, task)
	default:
		d, err := task.in.open(task.name)
		if s.isGone(task.at, err) || s.isBarred(task.at, err) {
			return
		}
		if err != nil {
			s.fail(task.at.Path, err)
			return
		}
		own := &sharedDir{dir: d}
		own.users.Store(1)
		defer own.release()
		s.list(own, task)
	}
}

// tries is how often something is looked at that changes meanwhile.
const tries = 4

var errUnsettled = refuse("it changed while it was read")

// list reads the names of a directory, and looks at them in parts.
func (s *scanner) list(d *sharedDir, task scanTask) {
	into := task.into
	names, err := s.settle(d.dir, task.at)
	if task.name != "" && (s.isGone(task.at, err) || s.isBarred(task.at, err)) {
		return
	}
	if err != nil {
		s.fail(into.path, err)
		return
	}
	if s.all && slices.ContainsFunc(names, func(name string) bool { return len(join(into.path, name)) > pathsafe.MaxPath }) {
		task.at.Type = Deep
		return
	}
	into.names = names
	into.entries = make([]Entry, len(names))
	into.below = make([]*level, len(names))
	for start := 0; start < len(names); start += scanBatch {
		s.add(scanTask{in: d, into: into, start: start, end: min(start+scanBatch, len(names))})
	}
}

// settle reads names and attributes of a directory that stays the same
// meanwhile, and makes its entry what it is then. In one that others work in all the
// time, names that come or go at the moment may be there or not.
func (s *scanner) settle(d dir, at *Entry) ([]string, error) {
	for try := 1; ; try++ {
		before, err := d.StatSelf()
		if err != nil {
			return nil, err
		}
		if s.own(before.ID) {
			return nil, refuse("the state directory with the snapshots is inside the restore root")
		}
		names, err := d.Names()
		if err == nil && s.attributes {
			at.xattrs, err = readXattrs(d.s, at.Path, d.H.Node())
		}
		if err != nil {
			return nil, err
		}
		after, err := d.StatSelf()
		if err != nil {
			return nil, err
		}
		now, then := makeEntry(at.Path, after), makeEntry(at.Path, before)
		if now.same(&then) || try == tries {
			now.xattrs, now.Asked = at.xattrs, at.Asked
			*at = now
			return names, nil
		}
	}
}

func (s *scanner) names(task scanTask) {
	l := task.into
	for i := task.start; i < task.end; i++ {
		path := join(l.path, l.names[i])
		e := &l.entries[i]
		err := s.look(task.in.dir, l.names[i], path, e)
		if e.Path = path; s.isGone(e, err) || s.isBarred(e, err) {
			continue
		}
		if err != nil {
			s.fail(path, err)
			continue
		}
		if e.Type == Dir {
			l.below[i] = &level{path: path}
			s.add(scanTask{in: task.in, name: l.names[i], at: e, into: l.below[i]})
		}
	}
}

// isGone marks an entry whose name is not there any more.
func (s *scanner) isGone(e *Entry, err error) bool {
	if s.gone == nil || !errors.Is(err, fs.ErrNotExist) && !(s.last && isReplaced(err)) {
		return false
	}
	e.gone = true
	s.gone(e.Path)
	return true
}

// isBarred makes an entry one that could not be read.
func (s *scanner) isBarred(e *Entry, err error) bool {
	switch {
	case !s.all:
		return false
	case errors.Is(err, fs.ErrPermission):
		e.bar()
		return true
	}
	return e.breaks(err)
}

// breaks turns the entry into a broken one if the error of reading it is one of the disk.
func (e *Entry) breaks(err error) bool {
	var errno unix.Errno
	if !machine.IsUnreadable(err) || !errors.As(err, &errno) {
		return false
	}
	e.bar()
	e.Type, e.Err = Broken, errno.Error()
	return true
}

// bar makes it an entry of something that could not be read. What could not even be described
// has the time 0.
func (e *Entry) bar() {
	e.Type, e.Size, e.Target, e.xattrs, e.unread = Unread, 0, "", nil, false
	if e.ChangeTime.IsZero() {
		e.ChangeTime, e.ModTime = time.Unix(0, 0), time.Unix(0, 0)
	}
}

// look makes the entry of name, as far as it can be known without reading.
func (s *scanner) look(d dir, name, path string, e *Entry) error {
	for range tries {
		st, err := d.Stat(name)
		if err != nil {
			return err
		}
		*e = makeEntry(path, st)
		if err := s.check(e, st); err != nil {
			return err
		}
		if e.Type == Dir || s.fill == nil || !e.Type.Kept() {
			return nil
		}
		err = s.fill(d, name, e)
		if !errors.Is(err, errUnsettled) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errReplaced, errUnsettled)
}

func (s *scanner) check(e *Entry, st pathsafe.Stat) error {
	if !st.IsOn(s.mount) {
		e.Type, e.Size = Mount, 0
	}
	if s.all && strings.HasPrefix(e.Path, reserved) {
		e.Type, e.Size = Reserved, 0
	}
	switch {
	case e.Type == Mount && !s.all:
		return pathsafe.ErrCrossesMount
	case e.Type == Special && !s.all:
		return refuse("snapshots cannot hold this type of file (%s)", st.Mode.Type())
	case len(e.Path) > pathsafe.MaxPath:
		return pathsafe.ErrTooLong
	}
	return nil
}

// maxXattrs bounds the names and values of an inode's extended attributes
// together, in bytes.
const maxXattrs = 128 << 10

func readXattrs(s *sysHook, path string, node *pathsafe.Node) ([]pathsafe.Xattr, error) {
	all, err := s.Xattrs(node)
	return all, errors.Join(err, boundXattrs(all))
}

func boundXattrs(all []pathsafe.Xattr) error {
	total := 0
	for _, x := range all {
		total += len(x.Name) + len(x.Value)
	}
	if total > maxXattrs {
		return refuse("its extended attributes take %d bytes, more than %d", total, maxXattrs)
	}
	return nil
}
