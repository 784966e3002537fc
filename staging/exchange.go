package staging

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
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
	// Attempt is its identity, a UUID; one is made where it is empty.
	Attempt string
	// Kind is what the attempt is called in the journal, the log and an
	// outcome: lower-case letters and "_", at most 32; not "commit".
	Kind string
	// Swaps are made in this order and undone in reverse. No path is twice
	// there, and none is beneath that of an earlier swap. Whatever else is in the
	// root, or becomes of it meanwhile, does not matter.
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
	// strconv.Itoa(i), but for what had gone by itself. An error undoes everything.
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
	// size and time. nil: nothing may stand there. Where nothing comes, it may be gone
	// already.
	Old *pathsafe.Stat
	// New: something comes.
	New bool
	// Empty: what goes is a directory that has to be empty by then.
	Empty bool
	// Last: what goes leaves before anything else changes, and what comes appears when all
	// else is in place and no crash takes it back. So the one is never seen beside what comes
	// at other names, nor the other beside what goes there.
	Last bool
}

// DirMeta is what a directory gets.
type DirMeta struct {
	Path     pathsafe.Path // beneath the base; the zero path is the base
	Mode     uint32        // permission, set-id and sticky bits, 07777
	UID, GID uint32
	Xattrs   []pathsafe.Xattr // all of them, sorted by name; access lists too
	ModTime  time.Time
}

// Exchange carries e out beneath the root: all of it, durable, and then it
// returns nil; or nothing of it, and then the error is an [*Error]. A cancelled
// ctx stops it before the first swap; from then on only Settled hears of it.
//
// The root has to be clean: call [Session.Recover] first.
func (l *Session) Exchange(ctx context.Context, e Exchange) error {
	if err := e.validate(); err != nil {
		return err
	}
	if e.Attempt == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return fail(StepBegin, "", err)
		}
		e.Attempt = id.String()
	}
	a := &attempt{
		s: l.s, log: l.Log, key: l.key, id: e.Attempt, kind: e.Kind, root: l.root, lock: l.lock,
		stageName: exchangePrefix + e.Attempt, leftover: e.Leftover, e: e, dirs: make([]staying, len(e.Dirs)),
	}
	covered, above := coveredOf(e.Swaps), map[pathsafe.Path]bool{}
	for _, s := range e.Swaps {
		for up, ok := s.Path.Parent(); ok && !above[up]; up, ok = up.Parent() {
			above[up] = true
		}
	}
	for i, s := range e.Swaps {
		a.swaps = append(a.swaps, swapping{
			path: s.Path, since: phasePrepared, name: strconv.Itoa(i), live: s.Old, comes: s.New, goes: s.Old != nil,
			empty: s.Empty, last: s.Last, covered: covered[i], covers: above[s.Path],
		})
	}
	if err := l.lookAndHold(ctx, a.look); err != nil {
		return err
	}
	return a.drive(
		ctx,
		a.open,
		a.makeNew,
		a.prepare,
		a.openDirs,
		a.swapAll, // the first move
		a.setDirs,
		a.check,
		a.settle,
		a.commit,
		a.placeLast,
	)
}

var kindForm = regexp.MustCompile(`^[a-z_]{1,32}$`)

func validKind(kind string) bool { return kind != KindCommit && kindForm.MatchString(kind) }

// validate refuses an exchange that no caller of sound mind makes.
func (e *Exchange) validate() error {
	if !validKind(e.Kind) {
		return fail(StepBegin, "", fmt.Errorf("%q is no kind of exchange", e.Kind))
	}
	if e.Attempt != "" && !isUUID(e.Attempt) {
		return fail(StepBegin, "", fmt.Errorf("%q is no identity of an attempt", e.Attempt))
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
