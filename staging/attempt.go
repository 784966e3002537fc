package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// An attempt is a change under way, or what is known of one that was killed.
type attempt struct {
	s         *sysHook
	key       []byte
	id, kind  string
	root      dir         // the session's
	lock      *rootLock   // the session's
	pinned    bool        // the lock stays for its sake
	mount     pathsafe.ID // of the root
	stageName string
	phase     phase
	revived   bool // made from a journal
	layered   bool // the root is on an overlay, where a directory of a lower layer cannot be moved
	keep      bool // what others put at a swapped name is displaced and kept, see Change
	keeping   dir  // in the staging directory, for that
	kept      []Kept
	stayed    []Stayed

	stage, news, olds, trash dir // the staging directory, and those in it
	hold                     dir // in it, for artifacts
	free, session, held      dir // see despiteMounts: the root without mounts, that with them, and the staging directory in that, which is locked
	stageCreated             created
	swaps                    []swapping
	artifacts                int       // how many of them, the last ones
	dirs                     []staying // deepest first
	times                    []staying // of a commit: directories beneath the root in which names change, with their times
	plan                     plan      // of the files that come
	known                    bool      // what INTENT has is known
	manifest                 []byte
	dirPerm                  func(path pathsafe.Path) uint32
	report                   func(phase string, bytes int64) // may be nil
	workers                  int
	left                     error // what could not be removed, when all is done
	cause                    error // why it goes back though it was committed
}

// swapping is a swap and what is known of it.
type swapping struct {
	path       pathsafe.Path
	since      phase  // from which one on it may have been made
	name       string // in staging; of a top of a commit it is unused
	goes       bool
	comes      bool
	tree       bool // what comes is under the number of the swap in new
	empty      bool
	unsure     bool
	isOpen     bool           // it was displaced as it was, and a process has it open to write to it
	last       bool           // see Swap
	remake     *Metadata      // of an empty directory that may have to be removed in place, and be made again
	covered    bool           // it is beneath the path of another swap
	covers     bool           // another swap is beneath its path, and changes its time; not known of a revived one
	parent     identity       // the directory of its name; the zero identity is not compared
	old, fresh identity       // what goes and what comes
	was        state          // what goes, as the caller saw it
	live       *pathsafe.Stat // the same; nil of a revived one
	has        *Metadata      // of a file of a commit that goes: what it has; nil of a revived one
	leftOut    []LeftOut      // of that
	made       *pathsafe.Stat // what comes, as it was made; nil of a revived one
	print      string         // what stands beneath fresh
	created    created        // of a commit: what comes, if it is a file of its own
	check      check          // its content; nil where no time has passed
	artifact   *Artifact      // nil of a revived one
}

// numbered reports whether what goes or comes has the number of the swap as its name in
// staging: all but files and artifacts.
func (s *swapping) numbered() bool { return s.goes || s.tree }

// replaces reports whether a file comes in the place of another one.
func (s *swapping) replaces() bool { return s.goes && s.comes && !s.tree }

// staying is a directory that stays.
type staying struct {
	path      pathsafe.Path
	self      identity
	get, have Metadata
	touched   bool // something may have been done to it
}

// A state is what can change of something while it stays the same thing.
type state struct {
	Mode uint32 `json:"mode"` // permission bits and those above them
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	Size int64  `json:"size"`
	Sec  int64  `json:"sec"` // of its time of modification, since 1970, and nanoseconds
	Nsec int64  `json:"nsec"`
}

func stateOf(st pathsafe.Stat) state {
	return state{st.Perm, st.UID, st.GID, st.Size, st.ModTime.Unix(), int64(st.ModTime.Nanosecond())}
}

// An identity is that of whatever stands at a name, as it outlives a reboot.
type identity struct {
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born"` // nanoseconds since 1970, 0 where the file system does not know
	Type uint32 `json:"type"` // the bits of fs.ModeType
}

func identityOf(st pathsafe.Stat) identity {
	b := identity{Ino: st.ID.Ino, Type: uint32(st.Mode.Type())}
	if !st.BirthTime.IsZero() {
		b.Born = st.BirthTime.UnixNano()
	}
	return b
}

// is is never true of the zero identity.
func (b identity) is(st pathsafe.Stat) bool { return b != (identity{}) && b == identityOf(st) }

// Names below the root. No target begins with their common prefix (decision D10).
const (
	stagePrefix    = sys.Prefix + "staging_"  // of a commit
	exchangePrefix = sys.Prefix + "exchange_" // of an exchange
	manifestPrefix = sys.Prefix + "chain_"
)

// Names in the staging directory, beside the records.
const (
	newsName       = "new"                    // what comes: of a commit at its own path, else by the number of its swap
	oldsName       = "old"                    // what was taken from its name, by the number of its swap
	trashName      = "trash"                  // what is proven to be without worth
	keepingName    = "kept"                   // what is others', at its path
	holdName       = sys.Prefix + "artifacts" // artifacts, numbered
	manifestStaged = sys.Prefix + "manifest"  // the chain manifest until it is moved beside staging
)

var (
	errOther    = machine.Disturbed("what stands there is not what was to be replaced")
	errMissing  = machine.Disturbed("nothing stands there")
	errNotEmpty = machine.Disturbed("the directory is not empty")
	errReplaced = machine.Disturbed("is not what this commit put there")
	// errForeign is why something stays that bears a name of ours (decision D14).
	errForeign = machine.Disturbed("is not of this commit, so it stays")
)

func (a *attempt) isCommit() bool { return a.kind == KindCommit }

// close gives up all handles.
func (a *attempt) close() {
	for _, d := range []*dir{&a.stage, &a.news, &a.olds, &a.trash, &a.hold, &a.keeping, &a.held} {
		d.close()
		*d = dir{}
	}
	if a.free.h != nil {
		a.root = a.session
		a.free.close()
		a.free = dir{}
	}
}

// pin has the lock of the root stay as long as the journal does.
func (a *attempt) pin() {
	if !a.pinned {
		a.pinned = true
		a.lock.keep++
	}
}

// unpin comes when the journal has gone.
func (a *attempt) unpin() {
	if a.pinned {
		a.pinned = false
		a.lock.keep--
	}
}

func (a *attempt) progress(phase string, bytes int64) {
	if a.report != nil {
		a.report(phase, bytes)
	}
}

// open makes the staging directory and in it the journal's INTENT, durably; then the
// directories for what comes and goes.
func (a *attempt) open() *Error {
	if err := a.makeStage(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	if err := a.root.sync(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	return fail(StepStage, a.stageName, a.allParts())
}

func (a *attempt) makeStage() error {
	if err := makeDir(a.root, a.stageName, ownDir, &a.stageCreated); err != nil {
		return err
	}
	stage, err := a.root.enter(a.stageName)
	if err != nil {
		return err
	}
	if err := checkStage(stage, &a.stageCreated); err != nil {
		stage.close()
		return err
	}
	a.stage = stage
	// A second lock, of a directory that no other user opens: where another process has put a
	// file in the place of the root's lock, no recovery undoes this attempt while it is at work.
	_ = stage.lock()
	if err := a.writeManifest(); err != nil {
		return err
	}
	return a.enterIntent()
}

// checkStage wants the directory that was opened to be the one that was made: empty,
// this user's, and closed to others, which a file system that keeps no modes cannot do.
// Another one that was put in its place stays.
func checkStage(stage dir, m *created) error {
	st, err := stage.statSelf()
	if err != nil {
		return err
	}
	names, err := stage.names()
	switch {
	case err != nil:
		return err
	case !m.is(st) || len(names) > 0 || int(st.UID) != os.Geteuid():
		m.tried = false
		return ErrStagingReplaced
	case !st.Private():
		return fmt.Errorf("%w (mode %04o)", errOpenToOthers, st.Perm)
	}
	return nil
}

// ownDir is the mode of a directory that only this user enters.
const ownDir = 0o700

// ownFile is the mode of a file that only this user reads.
const ownFile = 0o600

// makeDir makes a directory and notes what it made. Its owner may do everything in it, whatever
// the umask or a default access list takes; what they take of the other bits stays away.
func makeDir(in dir, name string, perm uint32, m *created) error {
	err := in.mkdir(name, perm|ownDir)
	m.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	st, err := in.unbarred(name)
	if err == nil {
		m.see(st, anySize)
	}
	return err
}

// openParts opens the directories in staging, as far as they are there.
func (a *attempt) openParts() error {
	for name, part := range a.parts() {
		if part.h != nil {
			continue
		}
		d, err := a.stage.enter(name)
		if gone(err) != nil {
			return err
		}
		if err == nil {
			*part = d
		}
	}
	return nil
}

// parts are the directories in staging, and their names.
func (a *attempt) parts() iter.Seq2[string, *dir] {
	last, name := &a.trash, trashName
	if a.isCommit() {
		last, name = &a.hold, holdName
	}
	return func(yield func(string, *dir) bool) {
		_ = yield(newsName, &a.news) && yield(oldsName, &a.olds) && yield(name, last)
	}
}

// allParts makes those that are missing: all at first, and later one that others removed, or
// that an end removed which was killed then. A directory for artifacts is made elsewhere: its
// absence has a meaning.
func (a *attempt) allParts() error {
	if err := a.openParts(); err != nil {
		return err
	}
	for name, part := range a.parts() {
		if part.h != nil || name == holdName {
			continue
		}
		if err := a.stage.mkdirOwn(name); err != nil {
			return err
		}
	}
	return a.openParts()
}

// parentDir opens the directory of a swap's name. Of an exchange it has to be the one
// that was looked at.
func (a *attempt) parentDir(s *swapping) (dir, error) {
	in, err := a.root.open(parent(s.path))
	if err != nil || s.parent == (identity{}) {
		return in, err
	}
	st, err := in.statSelf()
	if err == nil && !s.parent.is(st) {
		err = fmt.Errorf("the directory that it is in: %w", errReplaced)
	}
	if err != nil {
		in.close()
		return dir{}, err
	}
	return in, nil
}
