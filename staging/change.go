package staging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Change is what a transaction does to a root: all of its swaps, or none.
type Change struct {
	// Kind is the name of the attempt in the journal and in an outcome: [KindCommit], or at
	// most 32 lower-case letters and "_". It is the policy for what other processes do.
	//
	// A commit changes a name only if its entry is as the caller saw it; otherwise everything is
	// undone. Its undo leaves no target behind.
	//
	// Other processes do not stop a change of another kind, nor its undo. An existing entry that
	// is not Old as the caller saw it is displaced all the same, and kept ([Tx.Kept]); so is Old
	// itself if it changes later, or is open for writing when it would be removed. A directory to
	// be removed that is not empty stays ([Tx.Stayed]). The undo ignores names that were not
	// swapped yet.
	Kind string
	// Attempt is the UUID of the attempt; if it is empty, one is generated.
	Attempt string
	// Swaps are made in this order and undone in reverse, those with [*Metadata] last. Paths are
	// unique. Those of a commit are files, then removals of files, both in byte order of their
	// paths, then artifacts; no path is beneath that of an earlier swap.
	Swaps []Swap
	// Absent are parent directories of files that must not exist yet.
	Absent []pathsafe.Path
	// Manifest, unless nil, is written beside the staging directory as
	// .spectrum06_chain_<uuid>.json before the first copy, and removed at the end (SPECTRUM-06
	// section 6.5).
	Manifest []byte
	// DirPerm, unless nil, returns the permission bits of a new parent directory, limited to
	// 0755 and reduced by the umask or by the default access list of its parent; the owner
	// always gets all permissions. nil means 0755 for all.
	DirPerm func(path pathsafe.Path) uint32
	// Progress, unless nil, is called with the number of further bytes done in a phase, and
	// with 0 at its beginning. It may be called concurrently.
	Progress func(phase string, bytes int64)
	// Workers is the number of files that are copied or checked at a time, 0 for GOMAXPROCS.
	Workers int
}

// KindCommit is the kind of a change that adds or replaces files and artifacts, and removes
// files.
const KindCommit = "commit"

// A Swap is the change of one name.
type Swap struct {
	// Path is beneath the root. Symbolic links in its parents are followed beneath the root
	// only. Unless the new entry is a file, the parent must exist or hold a new file.
	Path pathsafe.Path
	// Old is the existing entry, which is removed: the same inode, and for a file the same
	// size and time. If it is nil, the name must be free. If there is no new entry, the old
	// one may already be gone.
	Old *pathsafe.Stat
	// Empty requires the old entry to be a directory that is empty when it is removed. It is set
	// for every directory: the entries in it have swaps of their own.
	Empty bool
	// Unsure is set if the caller may not have seen the old entry as it was: the entry is kept.
	Unsure bool
	// Last makes the old entry leave before anything else changes, and a [Tree] appear when
	// everything else is in place and no crash can take it back. So the old entry is never
	// visible beside the new entries of other names, nor the tree beside their old entries.
	Last bool
	// New is the new entry: a [*File], an [*Artifact], a [Tree], or the [*Metadata] of an
	// existing directory that stays; nil for none.
	New New
}

// New is the new entry of a name.
type New interface{ isNew() }

// A File is a copy, made at its name or inside a new parent directory.
type File struct {
	Size    int64             // bytes
	SHA256  [sha256.Size]byte // of the content; recorded in the journal
	Perm    uint32            // permission bits, at most 0777
	ModTime time.Time         // of the file in place
	// Rank decides which error is returned when several files fail: the one of the lowest
	// rank, and within a rank the first in path order.
	Rank int
	// Open opens the source, a regular file, at its beginning. Stage closes it. It is called for
	// files of one directory in a row with the same opener.
	Open func(near *pathsafe.Opener) (Source, error)
	// Check reads Size bytes of f, a copy, and returns nil only if they are correct; Stage
	// itself checks that there are no more. It is called for the copy in staging and again for
	// the file in place, for many files concurrently.
	Check func(ctx context.Context, f io.ReaderAt) error
}

// A Source is an open [pathsafe.File] or [os.File].
type Source interface {
	pathsafe.Opened
	Close() error
}

// An Artifact is a small file that appears whole, after COMMITTED, when all other names are in
// place and checked. An entry that it replaces is moved aside before anything else changes.
type Artifact struct {
	Data []byte
	// Perm are its permission bits, less the umask or the default access list of its
	// directory; the owner can always read it.
	Perm uint32
}

// A Tree is any entry that the caller makes while the change is staged, under the name
// strconv.Itoa(i) for swap i.
type Tree struct{}

// Metadata is the metadata of an entry. As a New it is set on a directory that stays, after
// all swaps; an undo restores the previous metadata.
type Metadata struct {
	Mode     uint32 // permission, set-id and sticky bits, 07777
	UID, GID uint32
	Xattrs   []pathsafe.Xattr // all of them, sorted by name; access lists too
	ModTime  time.Time
}

func (*File) isNew()     {}
func (*Artifact) isNew() {}
func (Tree) isNew()      {}
func (*Metadata) isNew() {}

// The phases reported to Change.Progress. Each byte counts once in PhaseStage and once in
// PhaseVerify; the others have no bytes.
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
		case len(stays) > 0 && !s.isMetadata():
			err = errors.New("it comes after the metadata of a directory")
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
	switch isDir := s.Old != nil && s.Old.Mode.IsDir(); {
	case s.Empty && !isDir:
		return errors.New("only a directory can have no content")
	case isDir && !s.Empty:
		return errors.New("the entries of a directory are removed by swaps of their own")
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
			return errors.New("bad mode, or a replaced file also gets metadata")
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

// beneath reports whether one of the paths is a parent directory of p.
func beneath(paths map[pathsafe.Path]bool, p pathsafe.Path) bool {
	for up, ok := p.Parent(); ok; up, ok = up.Parent() {
		if paths[up] {
			return true
		}
	}
	return false
}

// dirPerm returns the mode of a new directory before the umask is applied.
func (c *Change) dirPerm(path pathsafe.Path) uint32 {
	const most = 0o755
	if c.DirPerm == nil {
		return most
	}
	return c.DirPerm(path)&most | ownDir
}
