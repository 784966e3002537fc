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

// An attempt is a change in progress, or what is known of one that was killed.
type attempt struct {
	s         *sysHook
	key       []byte
	id, kind  string
	root      dir         // the session's
	lock      *rootLock   // the session's
	pinned    bool        // keep the lock while the journal exists
	mount     pathsafe.ID // of the root
	stageName string
	phase     phase
	revived   bool // made from a journal
	layered   bool // the root is on an overlay, where a directory of a lower layer cannot be moved
	keeping   dir  // in the staging directory, for entries that are kept
	kept      []Kept
	stayed    []Stayed

	stage, news, olds, trash dir // the staging directory, and those in it
	hold                     dir // in it, for artifacts
	free, session, held      dir // see despiteMounts: the root without mounts, that with them, and the staging directory in that, which is locked
	stageCreated             created
	swaps                    []swapping
	artifacts                int              // how many of them, the last ones
	dirs                     []staying        // deepest first
	times                    []staying        // of a commit: directories beneath the root in which names change, with their times
	copies                   copies           // the files that come
	openCopies               []*pathsafe.File // of the files that come; nil for one that is closed
	known                    bool             // what INTENT has is known
	manifest                 []byte
	dirPerm                  func(path pathsafe.Path) uint32
	report                   func(phase string, bytes int64) // may be nil
	workers                  int
	left                     error // what could not be removed, when all is done
	cause                    error // why it is undone although it was committed
}

// swapping is a swap and its state.
type swapping struct {
	path       pathsafe.Path
	since      phase  // from which one on it may have been made
	name       string // in staging; of a top of a commit it is unused
	hasOld     bool
	hasNew     bool
	tree       bool // the new entry is in new, named by the number of the swap
	empty      bool
	unsure     bool
	isOpen     bool           // it was displaced unchanged, but a process has it open to write
	last       bool           // see Swap
	remake     *Metadata      // of an empty directory that may have to be removed in place, and be made again
	covered    bool           // it is beneath the path of another swap
	covers     bool           // another swap is beneath its path, and changes its time; not known of a revived one
	parent     identity       // the directory of its name; the zero identity is not compared
	old, fresh identity       // of the old and the new entry
	was        state          // the old entry, as the caller saw it
	live       *pathsafe.Stat // the same; nil of a revived one
	has        *Metadata      // metadata of the old file of a commit; nil of a revive
	leftOut    []LeftOut      // of that
	made       *pathsafe.Stat // the new entry, as it was made; nil of a revived one
	print      string         // fingerprint of everything beneath fresh
	created    created        // the new entry of a commit, if it is a file of its own
	check      check          // its content; nil where no time has passed
	artifact   *Artifact      // nil of a revived one
}

// numbered reports whether the old or the new entry is named in staging by the number of the
// swap: all entries but files and artifacts.
func (s *swapping) numbered() bool { return s.hasOld || s.tree }

// replaces reports whether a file replaces an existing one.
func (s *swapping) replaces() bool { return s.hasOld && s.hasNew && !s.tree }

// staying is a directory that keeps its place.
type staying struct {
	path      pathsafe.Path
	self      identity
	get, have Metadata
	touched   bool // it may have been changed
}

// A state is the metadata of an entry that can change while its identity stays the same.
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

// An identity identifies an entry, also after a reboot.
type identity struct {
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born"` // nanoseconds since 1970, 0 where the file system does not know
	Type uint32 `json:"type"` // type bits of fs.ModeType
}

func identityOf(st pathsafe.Stat) identity {
	b := identity{Ino: st.ID.Ino, Type: uint32(st.Mode.Type())}
	if !st.BirthTime.IsZero() {
		b.Born = st.BirthTime.UnixNano()
	}
	return b
}

// is returns false for the zero identity.
func (b identity) is(st pathsafe.Stat) bool { return b != (identity{}) && b == identityOf(st) }

// Names below the root. No target may begin with their common prefix.
const (
	stagePrefix    = sys.Prefix + "staging_"  // of a commit
	resetPrefix    = sys.Prefix + "exchange_" // of any other change; earlier versions used this name, and their journals must be found
	manifestPrefix = sys.Prefix + "chain_"
)

// Names in the staging directory, beside the records.
const (
	newsName       = "new"                    // new entries: of a commit at their paths, otherwise by the number of their swap
	oldsName       = "old"                    // displaced entries, by the number of their swap
	trashName      = "trash"                  // entries proven to be removable
	keepingName    = "kept"                   // entries of other processes, at their paths
	holdName       = sys.Prefix + "artifacts" // artifacts, numbered
	manifestStaged = sys.Prefix + "manifest"  // the chain manifest until it is moved beside staging
)

var (
	errOther    = machine.Disturbed("the existing file is not the one to be replaced")
	errMissing  = machine.Disturbed("it does not exist")
	errNotEmpty = machine.Disturbed("the directory is not empty")
	errReplaced = machine.Disturbed("is not what this commit put there")
	// errForeign is the reason why an entry with one of our names is left alone.
	errForeign = machine.Disturbed("is not of this commit, so it stays")
)

func (a *attempt) isCommit() bool { return a.kind == KindCommit }

// close closes all handles.
func (a *attempt) close() {
	a.dropCopies()
	for _, d := range []*dir{&a.stage, &a.news, &a.olds, &a.trash, &a.hold, &a.keeping, &a.held} {
		d.Close()
		*d = dir{}
	}
	if a.free.H != nil {
		a.root = a.session
		a.free.Close()
		a.free = dir{}
	}
}

// pin keeps the lock of the root for as long as the journal exists.
func (a *attempt) pin() {
	if !a.pinned {
		a.pinned = true
		a.lock.keep++
	}
}

// unpin undoes pin; it is called when the journal has been removed.
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

// open makes the staging directory and the journal's INTENT in it, durably; then the
// directories for new and displaced entries.
func (a *attempt) open() error {
	if err := makeDir(a.root, a.stageName, ownDir, &a.stageCreated); err != nil {
		return err
	}
	stage, err := a.root.enter(a.stageName)
	if err != nil {
		return err
	}
	if err := checkStage(stage, &a.stageCreated); err != nil {
		stage.Close()
		return err
	}
	a.stage = stage
	// A second lock, of a directory that no other user can open: if another process replaces
	// the lock file of the root, no recovery undoes this attempt while it runs.
	_ = stage.lock()
	if err := a.writeManifest(); err != nil {
		return err
	}
	if err := a.enterIntent(); err != nil {
		return err
	}
	if err := a.root.Sync(); err != nil {
		return err
	}
	return a.allParts()
}

// checkStage requires the opened directory to be the one that was made: empty, owned by this
// user and closed to others, which a file system without modes cannot provide. A directory
// that replaced it is left alone.
func checkStage(stage dir, m *created) error {
	st, err := stage.StatSelf()
	if err != nil {
		return err
	}
	names, err := stage.Names()
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

// ownDir is the mode of a directory that only this user can enter.
const ownDir = 0o700

// ownFile is the mode of a file that only this user can read.
const ownFile = 0o600

// makeDir makes a directory and records its identity. Its owner gets all permissions, whatever
// the umask or a default access list removes; the other bits that these remove stay removed.
func makeDir(in dir, name string, perm uint32, m *created) error {
	err := in.Mkdir(name, perm|ownDir)
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

// openParts opens the directories in staging that exist.
func (a *attempt) openParts() error {
	for name, part := range a.parts() {
		if part.H != nil {
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

// parts iterates over the directories in staging and their names.
func (a *attempt) parts() iter.Seq2[string, *dir] {
	last, name := &a.trash, trashName
	if a.isCommit() {
		last, name = &a.hold, holdName
	}
	return func(yield func(string, *dir) bool) {
		_ = yield(newsName, &a.news) && yield(oldsName, &a.olds) && yield(name, last)
	}
}

// allParts makes the missing directories: all of them at first; later those that other
// processes removed, or that an earlier, killed cleanup removed. The directory for artifacts
// is made elsewhere, since its absence has a meaning.
func (a *attempt) allParts() error {
	if err := a.openParts(); err != nil {
		return err
	}
	for name, part := range a.parts() {
		if part.H != nil || name == holdName {
			continue
		}
		if err := a.stage.mkdirOwn(name); err != nil {
			return err
		}
	}
	return a.openParts()
}

// parentDir opens the directory of a swap's name. For a reset it must be the planned one.
func (a *attempt) parentDir(s *swapping) (dir, error) {
	in, err := a.root.open(parent(s.path))
	if err != nil || s.parent == (identity{}) {
		return in, err
	}
	st, err := in.StatSelf()
	if err == nil && !s.parent.is(st) {
		err = fmt.Errorf("its directory: %w", errReplaced)
	}
	if err != nil {
		in.Close()
		return dir{}, err
	}
	return in, nil
}
