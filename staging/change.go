package staging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Change is what a transaction does to a root: all of its swaps, or none.
type Change struct {
	// Kind is what the attempt is called in the journal and an outcome: [KindCommit], or
	// lower-case letters and "_", at most 32. It decides what an undo does: of a commit no
	// name may be left, and nothing is displaced; of any other kind what others did at a
	// name that was not swapped yet is theirs, and what came out of a swap comes back.
	Kind string
	// Keep: other processes work at the swapped names, and nothing of theirs stops the change,
	// or its undo. What stands at such a name, and is not Old as the caller saw it, is
	// displaced all the same, and kept ([Tx.Kept]); so is Old itself where it changes later, or
	// is open for writing when it would be removed. A directory that is not empty when it is
	// to go stays ([Tx.Stayed]). Without it a name is only swapped where all of that is as the
	// caller saw it; else the change fails.
	Keep bool
	// Attempt is its identity, a UUID; one is made where it is empty.
	Attempt string
	// Swaps are made in this order and undone in reverse. No path is twice there. Those of a
	// commit are files, then removals of files, both of which ascend by the bytes of their
	// paths, then artifacts; a path is not beneath that of an earlier swap.
	Swaps []Swap
	// Absent are directories on the way to files that must not be there yet.
	Absent []pathsafe.Path
	// Manifest, unless nil, stands beside the staging directory as
	// .spectrum06_chain_<uuid>.json from before the first copy until the end
	// (SPECTRUM-06 section 6.5).
	Manifest []byte
	// DirPerm, unless nil, returns the permission bits of a directory that is made on
	// the way to a file, of which at most 0755 are set, less the umask, or less what a
	// default access list of its directory takes; its owner may do everything in it. nil
	// is 0755 for all.
	DirPerm func(path pathsafe.Path) uint32
	// Progress, unless nil, is told how many more bytes of a phase are done: 0
	// at its beginning. It may be called by several goroutines at once.
	Progress func(phase string, bytes int64)
	// Workers is how many files are copied or checked at a time, 0 for
	// GOMAXPROCS.
	Workers int
}

// KindCommit is the kind of a change that makes files and artifacts, also in the place of other
// files, and removes files.
const KindCommit = "commit"

// A Swap is what becomes of one name.
type Swap struct {
	// Path is beneath the root. Symbolic links on the way are followed beneath the root only.
	// Unless a file comes its parent is there before, or holds a file that comes.
	Path pathsafe.Path
	// Old is what stands there and goes: the same inode, of a file also the same
	// size and time. nil: nothing may stand there. Where nothing comes, it may be gone
	// already.
	Old *pathsafe.Stat
	// Empty: what goes is a directory that has to be empty by then.
	Empty bool
	// Unsure: the caller may not have seen what goes as it was: with [Change.Keep] it is kept.
	Unsure bool
	// Last: what goes leaves before anything else changes, and a [Tree] appears when all
	// else is in place and no crash takes it back. So the one is never seen beside what comes
	// at other names, nor the other beside what goes there.
	Last bool
	// New is what comes: a [*File], an [*Artifact], a [Tree], or [*Metadata] of the directory
	// that stands there and stays; nil for nothing.
	New New
}

// New is what comes at a name.
type New interface{ comes() }

// A File is a copy that is made at its name, or with a new directory on the way to it.
type File struct {
	Size    int64             // bytes
	SHA256  [sha256.Size]byte // of the content; it goes into the journal
	Perm    uint32            // permission bits, at most 0777
	ModTime time.Time         // of the file in place
	// Rank decides which error counts when several files fail: that of the
	// lowest rank, and within a rank the first in path order.
	Rank int
	// Open opens the source, a regular file, at its beginning. Stage closes it.
	Open func() (*os.File, error)
	// Check reads Size bytes of f, a copy, and returns nil only if they are
	// right; that there are no more Stage sees by itself. It is called for the
	// copy in staging and once more for the file in place, for many files at
	// the same time.
	Check func(ctx context.Context, f io.ReaderAt) error
}

// An Artifact is a small file that appears whole, after COMMITTED, when all other names are in
// place and checked. What it takes the place of leaves before anything else changes.
type Artifact struct {
	Data []byte
	// Perm are its permission bits less the umask, or less what a default access list
	// of its directory takes; its owner can read it whatever they are.
	Perm uint32
}

// A Tree is anything that the caller makes while the change is staged: of swap i under the
// name strconv.Itoa(i).
type Tree struct{}

// Metadata is what something has beside its content; as what comes, what a directory that stays
// gets after all swaps. What that had comes back with an undo.
type Metadata struct {
	Mode     uint32 // permission, set-id and sticky bits, 07777
	UID, GID uint32
	Xattrs   []pathsafe.Xattr // all of them, sorted by name; access lists too
	ModTime  time.Time
}

func (*File) comes()     {}
func (*Artifact) comes() {}
func (Tree) comes()      {}
func (*Metadata) comes() {}

// The phases that Change.Progress hears of. Each byte counts once in PhaseStage
// and once in PhaseVerify; the others have no bytes.
const (
	PhaseStage    = "stage"
	PhaseSync     = "sync"
	PhaseFinalize = "finalize"
	PhaseVerify   = "verify"
	PhasePublish  = "publish"
)

var kindForm = regexp.MustCompile(`^[a-z_]{1,32}$`)

func validKind(kind string) bool { return kind != KindCommit && kindForm.MatchString(kind) }

// validate rejects a malformed change.
func (c *Change) validate() error {
	if c.Kind != KindCommit && !validKind(c.Kind) {
		return fail(StepBegin, "", fmt.Errorf("%q is not a kind of change", c.Kind))
	}
	if c.Attempt != "" && !isUUID(c.Attempt) {
		return fail(StepBegin, "", fmt.Errorf("%q is not the identity of an attempt", c.Attempt))
	}
	if c.Kind == KindCommit && c.Keep {
		return fail(StepBegin, "", errors.New("a commit displaces nothing that the caller has not seen"))
	}
	if c.Kind != KindCommit && len(c.Swaps) == 0 {
		return fail(StepBegin, "", errors.New("nothing to swap"))
	}
	swapped, stays := map[pathsafe.Path]bool{}, map[pathsafe.Path]bool{}
	for i := range c.Swaps {
		s := &c.Swaps[i]
		err := s.validate(c)
		switch {
		case err != nil:
		case c.Kind == KindCommit:
			if i > 0 {
				err = s.follows(&c.Swaps[i-1])
			}
		case swapped[s.Path] || stays[s.Path]:
			err = errors.New("duplicate path")
		case s.isMetadata():
			stays[s.Path] = true
		case beneath(swapped, s.Path):
			err = errors.New("it is beneath an earlier one")
		default:
			swapped[s.Path] = true
		}
		if err != nil {
			return fail(StepBegin, s.Path.String(), err)
		}
	}
	for i := range c.Swaps {
		if at := c.Swaps[i].Path; stays[at] && beneath(swapped, at) {
			return fail(StepBegin, at.String(), errors.New("a directory above it is swapped"))
		}
	}
	return nil
}

func (s *Swap) isMetadata() bool {
	_, is := s.New.(*Metadata)
	return is
}

// follows requires files before removals, those before artifacts, and files and removals in the
// order of their paths.
func (s *Swap) follows(last *Swap) error {
	turn, before := s.turn(), last.turn()
	switch {
	case turn < before:
		return errors.New("not in the order of files, removals, artifacts")
	case turn == before && turn != artifactTurn && s.Path.String() <= last.Path.String():
		return errors.New("paths do not ascend")
	}
	return nil
}

// The order of the swaps of a commit.
const (
	fileTurn = iota
	removalTurn
	artifactTurn
)

func (s *Swap) turn() int {
	switch s.New.(type) {
	case *File:
		return fileTurn
	case nil:
		return removalTurn
	}
	return artifactTurn
}

func (s *Swap) validate(c *Change) error {
	if s.Empty && (s.Old == nil || !s.Old.Mode.IsDir()) {
		return errors.New("only a directory can be empty")
	}
	if c.Keep && s.Old != nil && s.Old.Mode.IsDir() && !s.Empty {
		return errors.New("what is in it goes by its own names")
	}
	if s.Path == (pathsafe.Path{}) && !s.isMetadata() {
		return errors.New("no path")
	}
	commit := false
	switch n := s.New.(type) {
	case *File:
		commit = true
		switch {
		case n.Open == nil || n.Check == nil:
			return errors.New("no source or no check")
		case n.Perm&^0o777 != 0:
			return fmt.Errorf("%o has more than permission bits", n.Perm)
		case !utf8.ValidString(s.Path.String()):
			return errors.New("not UTF-8, so the journal cannot name it")
		}
	case *Artifact:
		commit = true
		if n.Perm&^0o777 != 0 {
			return fmt.Errorf("%o has more than permission bits", n.Perm)
		}
	case *Metadata:
		if n.Mode&^0o7777 != 0 || s.Old != nil {
			return errors.New("bad mode, or what gets metadata is replaced too")
		}
	case nil:
		if s.Old == nil {
			return errors.New("swap has neither old nor new")
		}
		commit = c.Kind == KindCommit
	}
	if commit != (c.Kind == KindCommit) || commit && s.Old != nil && !s.Old.Mode.IsRegular() {
		return fmt.Errorf("it is not a swap of a %s", c.Kind)
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

// dirPerm is what a new directory gets before the umask is taken off.
func (c *Change) dirPerm(path pathsafe.Path) uint32 {
	const most = 0o755
	if c.DirPerm == nil {
		return most
	}
	return c.DirPerm(path)&most | ownDir
}
