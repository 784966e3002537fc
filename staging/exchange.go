package staging

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// KindCommit is the kind of an attempt of [Session.Run].
const KindCommit = "commit"

// kindExchange stands for the kind of an exchange whose journal cannot be read.
const kindExchange = "exchange"

// An Exchange replaces names beneath a directory: all of them, or none.
type Exchange struct {
	// Kind is what the attempt is called in the journal, the log and an
	// outcome: lower-case letters and "_", at most 32; not "commit".
	Kind string
	// Swaps are made in this order and undone in reverse. No path is twice
	// there, and none is beneath that of an earlier swap.
	Swaps []Swap
	// Dirs are directories that stay: what they get after all swaps. What they
	// had comes back with an undo. None is at or beneath the path of a swap.
	Dirs []DirMeta
	// Stage makes, in the empty directory dir, for each swap i with New, the
	// thing to come under the name strconv.Itoa(i), and nothing else. It becomes
	// durable afterwards, and dir stays the session's. It may be nil when nothing
	// comes.
	Stage func(ctx context.Context, dir *pathsafe.Dir) error
	// Settled, unless nil, is called when all swaps are made and durable, and
	// may still be undone. The directory old holds what went, each under
	// strconv.Itoa(i). An error undoes everything.
	Settled func(ctx context.Context, old *pathsafe.Dir) error
	// Leftover, unless nil, is told when the exchange is complete and durable,
	// and its staging directory could not be removed. The next session does it.
	Leftover func(name string, err error)
}

// A Swap is what becomes of one name.
type Swap struct {
	// Path is beneath the base. Its parent is there before; symbolic links on
	// the way are followed beneath the base only.
	Path pathsafe.Path
	// Old is what stands there and goes: the same inode, of a file also the same
	// size and time. nil: nothing may stand there.
	Old *pathsafe.Stat
	// New: something comes.
	New bool
	// Empty: what goes is a directory that has to be empty by then.
	Empty bool
}

// DirMeta is what a directory gets.
type DirMeta struct {
	Path    pathsafe.Path // beneath the base; the zero path is the base
	Mode    uint32        // permission, set-id and sticky bits, 07777
	ModTime time.Time
}

// ErrNoExchange says that the root directory cannot be exchanged as a whole: its
// file system knows no such rename, or it is a mount point, or its parent may
// not be written. What stands in it can be exchanged name by name.
var ErrNoExchange = errors.New("the directory cannot be exchanged as a whole")

// Exchange carries e out beneath the root: all of it, durable, and then it
// returns nil; or nothing of it, and then the error is an [*Error]. A cancelled
// ctx stops it before the first swap; from then on only Settled hears of it.
//
// The root has to be clean: call [Session.Recover] first.
func (l *Session) Exchange(ctx context.Context, e Exchange) error {
	if err := e.validate(); err != nil {
		return err
	}
	t, failure := l.trade(e)
	if failure != nil {
		return failure
	}
	t.base, t.stageName = l.root, exchangePrefix+t.id
	return l.runTrade(ctx, t)
}

// ExchangeRoot puts another directory in the place of the root, in one step: e
// has one swap, of name in parent, where the root has to stand. From when it
// returns nil the session is one of the new directory, whose lock it has, and
// keeps the lock of the old one until it ends.
//
// An error that is [ErrNoExchange] says that this root has to be exchanged name
// by name. The root has to be clean, as for [Session.Exchange], and the session
// to know its Parent and Name for that.
func (l *Session) ExchangeRoot(ctx context.Context, parent *pathsafe.Dir, name string, e Exchange) error {
	if err := e.validateRoot(name); err != nil {
		return err
	}
	t, failure := l.trade(e)
	if failure != nil {
		return failure
	}
	t.base, t.stageName, t.whole = dir{parent, l.s}, rootExchangeName(name), true
	if err := l.standsAt(t.base, name); err != nil {
		return err
	}
	defer t.dropLock()
	if err := l.runTrade(ctx, t); err != nil {
		return err
	}
	l.moveTo(t.lock)
	t.lock = dir{}
	return nil
}

func (l *Session) trade(e Exchange) (*trade, *Error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fail(StepBegin, "", err)
	}
	t := &trade{e: e, s: l.s, log: l.Log, key: l.key, id: id.String(), kind: e.Kind, dirs: make([]staying, len(e.Dirs))}
	covered, above := coveredOf(e.Swaps), map[pathsafe.Path]bool{}
	for _, s := range e.Swaps {
		for up, ok := s.Path.Parent(); ok && !above[up]; up, ok = up.Parent() {
			above[up] = true
		}
	}
	for i, s := range e.Swaps {
		t.swaps = append(t.swaps, swapping{path: s.Path, live: s.Old, comes: s.New, goes: s.Old != nil, empty: s.Empty, covered: covered[i], covers: above[s.Path]})
	}
	return t, nil
}

func (l *Session) runTrade(ctx context.Context, t *trade) error {
	defer t.close()
	if err := t.look(); err != nil {
		return err
	}
	if l.Log != nil {
		if err := l.Log.Began(t.id, t.kind); err != nil {
			return fail(StepBegin, "", err)
		}
	}
	if err := t.run(ctx); err != nil {
		err.Rollback, err.Attempt, err.Staging = t.undo(), t.id, t.stageName
		return err
	}
	t.finish()
	return nil
}

// standsAt wants the root of the session to be what name means, and to be
// something that can be renamed there.
func (l *Session) standsAt(parent dir, name string) error {
	root, err := l.root.statSelf()
	if err != nil {
		return fail(StepBegin, name, err)
	}
	st, err := parent.stat(name)
	if err != nil {
		return fail(StepBegin, name, err)
	}
	above, err := parent.statSelf()
	if err != nil {
		return fail(StepBegin, name, err)
	}
	if st.ID.Dev != root.ID.Dev || st.ID.Ino != root.ID.Ino {
		return fail(StepConflict, name, errReplaced)
	}
	if !st.IsOn(above.ID) {
		return fail(StepBegin, name, fmt.Errorf("%w: it %w", ErrNoExchange, pathsafe.ErrCrossesMount))
	}
	if err := parent.writable(); err != nil {
		return fail(StepBegin, name, fmt.Errorf("%w: %w", ErrNoExchange, err))
	}
	return nil
}

// moveTo makes the session one of another directory that it has the lock of.
func (l *Session) moveTo(root dir) {
	l.former = append(l.former, l.root)
	l.root = root
}

var kindForm = regexp.MustCompile(`^[a-z_]{1,32}$`)

func validKind(kind string) bool { return kind != KindCommit && kindForm.MatchString(kind) }

// validate refuses an exchange that no caller of sound mind makes.
func (e *Exchange) validate() error {
	if !validKind(e.Kind) {
		return fail(StepBegin, "", fmt.Errorf("%q is no kind of exchange", e.Kind))
	}
	if len(e.Swaps)+len(e.Dirs) == 0 {
		return fail(StepBegin, "", errors.New("nothing to exchange"))
	}
	earlier := map[pathsafe.Path]bool{}
	for _, s := range e.Swaps {
		if err := s.validate(e, earlier); err != nil {
			return fail(StepBegin, s.Path.String(), err)
		}
		earlier[s.Path] = true
	}
	seen := map[pathsafe.Path]bool{}
	for _, d := range e.Dirs {
		if d.Mode&^0o7777 != 0 || seen[d.Path] || earlier[d.Path] || beneath(earlier, d.Path) {
			return fail(StepBegin, d.Path.String(), errors.New("it is no directory that stays, or is twice there, or its mode is wrong"))
		}
		seen[d.Path] = true
	}
	return nil
}

func (s *Swap) validate(e *Exchange, earlier map[pathsafe.Path]bool) error {
	switch {
	case s.Path == (pathsafe.Path{}):
		return errors.New("no path")
	case s.Old == nil && !s.New:
		return errors.New("nothing goes and nothing comes")
	case s.New && e.Stage == nil:
		return errors.New("nobody makes what comes")
	case s.Empty && (s.Old == nil || !s.Old.Mode.IsDir()):
		return errors.New("only a directory can be empty")
	case earlier[s.Path]:
		return errors.New("the same path twice")
	case beneath(earlier, s.Path):
		return errors.New("it is beneath an earlier one")
	}
	return nil
}

func (e *Exchange) validateRoot(name string) error {
	if err := e.validate(); err != nil {
		return err
	}
	if len(e.Swaps) != 1 {
		return fail(StepBegin, name, errors.New("a root is one swap"))
	}
	s := &e.Swaps[0]
	if s.Path.String() != name || s.Old == nil || !s.Old.Mode.IsDir() || !s.New || s.Empty {
		return fail(StepBegin, name, errors.New("a root is a directory that another one replaces"))
	}
	return nil
}

// beneath tells whether one of the paths is a directory on the way to p.
func beneath(paths map[pathsafe.Path]bool, p pathsafe.Path) bool {
	for up, ok := p.Parent(); ok; up, ok = up.Parent() {
		if paths[up] {
			return true
		}
	}
	return false
}

// coveredOf tells which swaps are beneath the path of another one: when all is
// done they cannot be seen any more.
func coveredOf(swaps []Swap) []bool {
	all := map[pathsafe.Path]bool{}
	for _, s := range swaps {
		all[s.Path] = true
	}
	covered := make([]bool, len(swaps))
	for i, s := range swaps {
		covered[i] = beneath(all, s.Path)
	}
	return covered
}
