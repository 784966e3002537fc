package staging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// A File is one file to put in place.
type File struct {
	Path    pathsafe.Path
	Size    int64             // bytes
	SHA256  [sha256.Size]byte // of the content; it goes into the journal
	Perm    uint32            // permission bits, at most 0777
	ModTime time.Time         // of the file in place
	// Rank decides which error counts when several files fail: that of the
	// lowest rank, and within a rank the first in path order.
	Rank int
	// Open opens the source, a regular file, at its beginning. Run closes it.
	Open func() (*os.File, error)
	// Check reads Size bytes of f, a copy, and returns nil only if they are
	// right; that there are no more Run sees by itself. It is called for the
	// copy in staging and once more for the file in place, for many files at
	// the same time.
	Check func(ctx context.Context, f io.ReaderAt) error
}

// An Artifact is a small file that appears whole, after all files are in place
// and checked. Its directory is there before, or holds one of the files.
type Artifact struct {
	Path pathsafe.Path
	Data []byte
	// Perm are its permission bits less the umask, or less what a default access list
	// of its directory takes; its owner can read it whatever they are.
	Perm uint32
}

// A Spec says what Run shall put where.
type Spec struct {
	// Files ascend by the bytes of their paths; none is below another.
	Files []File
	// New are directories on the way to files that must not be there yet.
	New []pathsafe.Path
	// DirPerm, unless nil, returns the permission bits of a directory that is made on
	// the way to a file, of which at most 0755 are set, less the umask, or less what a
	// default access list of its directory takes; its owner may do everything in it. nil
	// is 0755 for all.
	DirPerm func(path pathsafe.Path) uint32
	// Artifacts are published in this order.
	Artifacts []Artifact
	// Manifest, unless nil, stands beside the staging directory as
	// .spectrum06_chain_<uuid>.json from before the first copy until the end
	// (SPECTRUM-06 section 6.5).
	Manifest []byte
	// Progress, unless nil, is told how many more bytes of a phase are done: 0
	// at its beginning. It may be called by several goroutines at once.
	Progress func(phase string, bytes int64)
	// Leftover, unless nil, is told when the restore is complete and durable,
	// and the staging directory could not be removed. The next session does it.
	Leftover func(name string, err error)
	// Workers is how many files are copied or checked at a time, 0 for
	// GOMAXPROCS.
	Workers int
}

// The phases that Spec.Progress hears of. Each byte counts once in PhaseStage
// and once in PhaseVerify; the others have no bytes.
const (
	PhaseStage    = "stage"
	PhaseSync     = "sync"
	PhaseFinalize = "finalize"
	PhaseVerify   = "verify"
	PhasePublish  = "publish"
)

// Step says in which part of a commit an error arose.
type Step int

const (
	// StepBegin means that the spec is wrong, the root is locked (pathsafe.ErrLocked)
	// or a target cannot be surveyed (pathsafe.ErrEscape, ErrCrossesMount, ...).
	// Nothing was written.
	StepBegin Step = iota + 1
	// StepConflict means that something stands where a target or one of its parents
	// would. Nothing was written.
	StepConflict
	// StepStage means that a copy could not be made or made durable, or ctx was
	// cancelled before the first move.
	StepStage
	// StepCheck means that a copy in staging is not what it should be.
	StepCheck
	// StepFinalize means that a copy could not be moved to its target.
	StepFinalize
	// StepMissing means that a target was not found after the move.
	StepMissing
	// StepVerify means that a target is not what was moved there, or cannot be read.
	StepVerify
	// StepPublish means that an artifact could not be put in place.
	StepPublish
)

var stepNames = [...]string{
	StepBegin: "begin", StepConflict: "conflict", StepStage: "stage", StepCheck: "check", StepFinalize: "finalize",
	StepMissing: "missing", StepVerify: "verify", StepPublish: "publish",
}

// String returns the step as a word.
func (s Step) String() string {
	if s < StepBegin || s > StepPublish {
		return fmt.Sprintf("step %d", int(s))
	}
	return stepNames[s]
}

// Error says why a commit failed, and whether everything is as it was before.
type Error struct {
	Step Step
	// Path is the target concerned, or the name of what stands for all of them.
	Path string
	// Err is the cause; errors.Is and errors.As see through to it.
	Err error
	// Rollback is nil when nothing of the attempt is left and no target
	// exists. Otherwise it says what is in the way.
	Rollback error
	// Attempt is the identity of the attempt, a UUID; "" before it began.
	Attempt string
	// Staging is the name of its staging directory, which is left when Rollback is
	// not nil, in the root.
	Staging string
}

// Error names the step, the path and the cause, and a failed rollback.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v %q: %v", e.Step, e.Path, e.Err)
	if e.Path == "" {
		text = fmt.Sprintf("%v: %v", e.Step, e.Err)
	}
	if e.Rollback != nil {
		text += fmt.Sprintf("; rollback failed: %v", e.Rollback)
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// fail makes an Error, or nil of a nil err.
func fail(step Step, path string, err error) *Error {
	if err == nil {
		return nil
	}
	return &Error{Step: step, Path: path, Err: err}
}

// ErrStagingReplaced says that another directory was put in the place of a staging
// directory before it was opened. That one stays; the one of the attempt, which is
// empty, is where it was moved to.
var ErrStagingReplaced = machine.Disturbed("another directory was put in the place of the staging directory, and stays there")

// errTaken is the cause of a StepConflict.
var errTaken = machine.Disturbed("something stands there")

// dirPerm is what a new directory gets before the umask is taken off.
func (s *Spec) dirPerm(path pathsafe.Path) uint32 {
	const most = 0o755
	if s.DirPerm == nil {
		return most
	}
	return s.DirPerm(path)&most | ownDir
}

// validate refuses a spec that no caller of sound mind makes.
func (s *Spec) validate() *Error {
	for i, f := range s.Files {
		var err error
		switch {
		case f.Path == (pathsafe.Path{}):
			err = errors.New("no path")
		case i > 0 && f.Path.String() <= s.Files[i-1].Path.String():
			err = errors.New("paths do not ascend")
		case f.Open == nil || f.Check == nil:
			err = errors.New("no source or no check")
		case f.Perm&^0o777 != 0:
			err = fmt.Errorf("%o has more than permission bits", f.Perm)
		case !utf8.ValidString(f.Path.String()):
			err = errors.New("not UTF-8, so the journal cannot name it")
		}
		if err != nil {
			return fail(StepBegin, f.Path.String(), err)
		}
	}
	for _, a := range s.Artifacts {
		if a.Perm&^0o777 != 0 {
			return fail(StepBegin, a.Path.String(), fmt.Errorf("%o has more than permission bits", a.Perm))
		}
	}
	return nil
}
