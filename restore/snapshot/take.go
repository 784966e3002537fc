package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// Request is what a snapshot is to be of, and what it is to keep of its reason.
type Request struct {
	Root   string        // absolute path that the snapshots of this root are known by
	Dir    *pathsafe.Dir // the root, open
	Kind   Kind
	Action string // id of the action that it comes before; "" for none
	Reason string
	// Texts are a few small texts of the caller that the snapshot keeps.
	Texts map[string]string
	Log   string // where the audit log stands, as the snapshot signs it; "" to leave that out
	// Key returns the key of the host, which signs the snapshot.
	Key func() (bundle.Key, error)
	// AnyKey has the snapshot signed by a key of its own where that of the host cannot be
	// used: a rollback must not fail for that. Its [Header.Signer] is not the host then.
	AnyKey bool
	// Scope is nil for the whole root. Else it has these names: each whole if it
	// is there, Absent if not, and the metadata of every directory on the way.
	Scope []pathsafe.Path
	// Live: others may go on writing to what a snapshot before an action is of. A file that is
	// written to all the time is kept as far as it could be read, and reported, as with the other
	// kinds: the caller keeps what it displaces.
	Live bool
	// Becomes, unless nil, is the snapshot that the root is made equal to, before which this one is
	// taken. The objects of unchanged files that it has too are not read: these stay in the root.
	Becomes *Snapshot
	// Still, unless nil, is called when everything was read: an error voids the snapshot.
	Still func() error
	// Follows, unless nil, is called with the ID of the snapshot of the root that this one is about to
	// follow, while no other can be taken: an error voids the snapshot.
	Follows func(id string) error
}

// A take is one call of Take.
type take struct {
	*Store
	req   Request
	root  dir
	mount pathsafe.ID
	base  func() *baseline

	looks   bool      // nothing is kept, see Look
	tight   bool      // there may be no room for what is known already
	tracked bool      // content may be taken over, see syncBeforeReading
	synced  time.Time // when the sync began that ended before content is read
	last    bool      // what became another thing counts as gone: all was looked at often enough
	noting  sync.Mutex
	notes

	loading sync.WaitGroup // of base

	incoming dir // of this take
	name     string
	objects  *objects
}

// Take takes a snapshot, which is durable when it returns. Nothing half made is
// ever seen. The store itself, and a file that keeps changing, are errors that name the path. So
// is a name of a scope that cannot be kept; in a root, and in a directory of a scope, that is an
// entry without content.
func (s *Store) Take(ctx context.Context, req Request) (*Snapshot, error) {
	req.Root = filepath.Clean(req.Root)
	snap, err := s.take(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %q: %w", req.Root, err)
	}
	return snap, nil
}

// header is that of a snapshot that is requested now, without what is in it.
func (req *Request) header() (Header, error) {
	h := Header{
		Version: version,
		Root:    req.Root, Kind: req.Kind, Action: req.Action, Reason: req.Reason, Log: req.Log,
		Texts: maps.Clone(req.Texts), Whole: req.Scope == nil, Time: time.Now().UTC().Round(0),
	}
	if req.Scope != nil && len(req.Scope) == 0 {
		return Header{}, errors.New("a scope without a name")
	}
	return h, h.check()
}

// key returns the key that signs the snapshot.
func (req *Request) key() (bundle.Key, error) {
	if req.Key == nil {
		return bundle.Key{}, errors.New("no key to sign the snapshot")
	}
	key, err := req.Key()
	if err != nil && req.AnyKey {
		return bundle.GenerateKey()
	}
	if err != nil {
		return bundle.Key{}, fmt.Errorf("the key that signs snapshots: %w", err)
	}
	return key, nil
}

func (s *Store) take(ctx context.Context, req Request) (_ *Snapshot, err error) {
	h, err := req.header()
	if err != nil {
		return nil, err
	}
	key, err := req.key()
	if err != nil {
		return nil, err
	}
	lock, err := s.enterTake(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	t := &take{Store: s, req: req, root: on(req.Dir, s.sysHook)}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.run(ctx, h, key)
}

// enterTake takes the shared lock. If no other take is running it first removes what killed
// ones have left.
func (s *Store) enterTake(ctx context.Context) (dir, error) {
	lock, err := s.base.reopen()
	if err != nil {
		return dir{}, err
	}
	defer lock.Close()
	if s.sysHook.Do("lock", s.path, lock.H.TryLock) == nil {
		if err := s.sweep(); err != nil {
			return dir{}, err
		}
	}
	lock.Close()
	return s.share(ctx)
}

func (t *take) run(ctx context.Context, h Header, key bundle.Key) (*Snapshot, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	entries, err := t.settled(ctx)
	if err != nil {
		return nil, err
	}
	h.Synced = t.synced
	link(entries)
	var parts []part
	if t.division.isDivided(&h, entries) {
		if parts, err = t.makeParts(ctx, entries[1:]); err != nil {
			return nil, err
		}
	}
	t.sysHook.watch.sync()
	if err := t.objects.persist(); err != nil {
		return nil, err
	}
	total(&h, entries)
	err = ctx.Err()
	if err == nil && t.req.Still != nil {
		err = t.req.Still()
	}
	if err != nil {
		return nil, err
	}
	return t.publish(ctx, h, entries, parts, key)
}

// errReplaced: something else stands at a name than a moment ago.
var errReplaced = machine.Disturbed("it was replaced")

// settled looks at everything and keeps its content. What goes away meanwhile is left
// out. Where a name becomes another thing in between it looks again, and in the end leaves
// that out too; before an action it is an error, since something is there.
func (t *take) settled(ctx context.Context) ([]Entry, error) {
	var replaced error
	for try := range tries {
		t.notes, t.last = notes{}, try == tries-1 && !t.still()
		entries, err := t.look(ctx)
		if err == nil {
			err = t.reuse(ctx, entries)
		}
		if err == nil {
			err = t.syncBeforeReading(ctx, entries)
		}
		if err == nil {
			err = t.contents(ctx, entries)
		}
		if errors.As(err, new(*storeError)) || !errors.Is(err, errReplaced) && !errors.Is(err, fs.ErrNotExist) {
			return stayed(entries), err
		}
		replaced = err
	}
	return nil, fmt.Errorf("%w: %v%s", ErrUnsettled, replaced, t.whose(replaced)) //nolint:errorlint // why they could not be is of no use to a caller
}

// whose describes the present entry at the path of an error, its owner and that of its
// directory.
func (t *take) whose(err error) string {
	at, is := errors.AsType[*scanError](err)
	if !is {
		return ""
	}
	d := descent{base: t.root}
	defer d.close()
	up, name := split(at.path)
	in, err := d.open(up)
	if err != nil {
		return ""
	}
	dir, err := in.StatSelf()
	if err != nil {
		return ""
	}
	now := "nothing"
	if st, err := in.Stat(name); err == nil {
		now = fmt.Sprintf("%s of %s", st.Mode, machine.UserText(int(st.UID)))
	}
	return fmt.Sprintf("; now it is %s, in a directory of %s", now, machine.UserText(int(dir.UID)))
}

// stayed returns the entries that still exist. A requested name becomes absent.
func stayed(entries []Entry) []Entry {
	for i := range entries {
		if e := &entries[i]; e.gone && e.Asked {
			*e = Entry{Path: e.Path, Type: Absent, Asked: true}
		}
	}
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.gone })
}

// strict reports whether the snapshot comes before an action: what that displaces may be
// gone afterwards. Nothing stands for it that was not read now.
func (t *take) strict() bool { return t.req.Kind != Manual && t.req.Kind != Scheduled }

// still reports whether what the snapshot is of has to come to rest.
func (t *take) still() bool { return t.strict() && !t.req.Live }

// compareWith notes which mount the root is on, and loads what it is compared with.
func (t *take) compareWith() error {
	st, err := t.root.StatSelf()
	if err != nil {
		return err
	}
	t.mount = st.ID
	if t.tracked, err = tracksMappings(t.root); err != nil {
		return err
	}
	t.base = sync.OnceValue(t.baseline)
	if t.req.Scope == nil {
		t.loading.Go(func() { t.base() }) // while the root is looked at
	}
	return nil
}

func (t *take) begin() error {
	if err := t.compareWith(); err != nil {
		return err
	}
	name := uuid.NewString()
	if err := t.Store.incoming.Mkdir(name, 0o700); err != nil {
		return err
	}
	t.name = name
	var err error
	if t.incoming, err = t.Store.incoming.open(name); err != nil {
		return err
	}
	t.objects = newObjects(t.Store, t.incoming)
	return nil
}

// close removes what the take has made in incoming.
func (t *take) close() error {
	t.loading.Wait()
	if t.objects != nil {
		t.objects.close()
	}
	t.incoming.Close()
	if t.name == "" {
		return nil
	}
	return removeTree(t.Store.incoming, t.name)
}

// look returns the entries without the contents that have to be read.
func (t *take) look(ctx context.Context) ([]Entry, error) {
	if t.req.Scope != nil {
		return t.lookAtScope(ctx)
	}
	st, err := t.root.StatSelf()
	if err != nil {
		return nil, err
	}
	return t.scan(ctx, t.root, makeEntry("", st))
}

func (t *take) scan(ctx context.Context, d dir, top Entry) ([]Entry, error) {
	s := scanner{
		mount: t.mount, all: true, own: t.isOwn, fill: t.fill, attributes: true, last: t.last,
		gone: func(path string) { t.note(&t.leftOut, path) },
	}
	if top.Path != "" {
		return s.scan(ctx, d, top)
	}
	entries, err := s.scan(ctx, d, top)
	isOurs := func(e Entry) bool { return e.Path == lockName || strings.HasPrefix(e.Path, lockName+"_") }
	if t.looks && !t.strict() { // also at a root in which something is unfinished
		isOurs = func(e Entry) bool { return strings.HasPrefix(e.Path, reserved) }
	}
	return slices.DeleteFunc(entries, isOurs), err
}

// reserved is how the names begin that a transaction leaves in a root when it
// has not ended. The root was entered, so what is still there is not of one: it is named, and
// left as it is.
const reserved = sys.Prefix

// lockName is the name of the lock of a root. It is there while an action takes a snapshot of
// what it changes, and is never a part of that.
const lockName = reserved + "lock"

// fill completes an entry, but for the content of a file.
func (t *take) fill(d dir, name string, e *Entry) (err error) {
	if e.Type == File {
		e.unread = true
		return nil
	}
	if e.Type == Link {
		e.Target, err = d.readlink(name)
		if errors.Is(err, unix.EINVAL) {
			return errUnsettled // it is not a link any more
		}
		if err != nil {
			return err
		}
	}
	if e.xattrs, err = d.xattrs(name); err != nil {
		return err
	}
	return errors.Join(boundXattrs(e.xattrs), settled(d, name, e))
}

// settled checks again whether name matches e.
func settled(d dir, name string, e *Entry) error {
	st, err := d.Stat(name)
	if err != nil {
		return err
	}
	if now := makeEntry(e.Path, st); !now.same(e) {
		return errUnsettled
	}
	return nil
}

// link sets which files are the same inode, in the order of their paths.
func link(entries []Entry) {
	type inode struct{ dev, ino uint64 }
	first := map[inode]int{}
	for i := range entries {
		e := &entries[i]
		if e.Links < 2 || e.Type == Absent || !e.Type.Kept() {
			continue
		}
		j, seen := first[inode{e.Dev, e.Ino}]
		if !seen {
			first[inode{e.Dev, e.Ino}] = i
			continue
		}
		if f := &entries[j]; f.same(e) && f.Digest == e.Digest && f.Target == e.Target {
			e.Hard = f.Path
		}
	}
}

func total(h *Header, entries []Entry) {
	for i := range entries {
		e := &entries[i]
		if e.Asked {
			h.Names++
		}
		switch {
		case e.Type == File:
			h.Files++
		case e.Type.IsUnread():
			h.Unread++
		}
		if e.Type == File && e.Hard == "" {
			h.Bytes += e.Size
		}
	}
}

// hadNothing reports whether the root is made equal to a snapshot that has nothing at p. A link that
// leaves the root now is not an obstacle then: nothing of the root is beneath it.
func (req *Request) hadNothing(p pathsafe.Path) bool {
	if req.Becomes == nil {
		return false
	}
	e, err := req.Becomes.At(p)
	return err == nil && e.Type == Absent
}

// lookAtScope returns the entries of the requested names, and of their parents.
func (t *take) lookAtScope(ctx context.Context) ([]Entry, error) {
	g := gatherer{take: t, at: &descent{base: t.root}, found: map[string]Entry{}}
	defer g.at.close()
	st, err := t.root.StatSelf()
	if err != nil {
		return nil, err
	}
	top := makeEntry("", st)
	if top.xattrs, err = readXattrs(t.sysHook, "", t.root.H.Node()); err != nil {
		return nil, err
	}
	g.found[""] = top
	scope := slices.Clone(t.req.Scope)
	slices.SortFunc(scope, func(a, b pathsafe.Path) int { return comparePaths(a.String(), b.String()) })
	for _, p := range scope {
		err := g.gather(ctx, p)
		if t.last && isReplaced(err) {
			t.note(&t.leftOut, p.String())
			g.found[p.String()] = Entry{Path: p.String(), Type: Absent, Asked: true}
			err = nil
		}
		if errors.Is(err, pathsafe.ErrEscape) && t.req.hadNothing(p) {
			g.found[p.String()] = Entry{Path: p.String(), Type: Absent, Asked: true}
			err = nil
		}
		if err != nil {
			return nil, &scanError{p.String(), asReplaced(err)}
		}
	}
	all := make([]Entry, 0, len(g.found))
	for _, e := range g.found {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return comparePaths(a.Path, b.Path) })
	return all, nil
}
