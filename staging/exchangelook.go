package staging

import (
	"errors"
	"io/fs"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A trade is one Exchange under way, or what is known of one that was killed.
type trade struct {
	e         Exchange
	s         *seam
	log       Log // the session's; may be nil
	key       []byte
	id, kind  string
	base      dir // the root; not the trade's own
	baseIs    being
	mount     pathsafe.ID // of the base
	stageName string
	phase     phase

	stage, news, olds, trash dir // the staging directory, and those in it
	stageMark                mark
	swaps                    []swapping
	dirs                     []staying // deepest first
	left                     error     // what could not be removed, when all is done
}

// swapping is a swap and what is known of it.
type swapping struct {
	path       pathsafe.Path
	goes       bool
	comes      bool
	empty      bool
	covered    bool           // it is beneath the path of another swap
	covers     bool           // another swap is beneath its path, and changes its time; not known of a revived one
	parent     being          // the directory of its name
	old, fresh being          // what goes and what comes
	mode       uint32         // of what goes
	live       *pathsafe.Stat // what goes, as the caller saw it; nil of a revived one
	made       *pathsafe.Stat // what comes, as it was made; nil of a revived one
	print      string         // what stands beneath fresh
}

// staying is a directory that stays.
type staying struct {
	path      pathsafe.Path
	self      being
	get, have meta
	touched   bool // something may have been done to it
}

// meta is what a directory gets, or has.
type meta struct {
	mode     uint32
	uid, gid uint32
	xattrs   []pathsafe.Xattr
	time     time.Time
}

// A being is the identity of whatever stands at a name, as it outlives a reboot.
type being struct {
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born"` // nanoseconds since 1970, 0 where the file system does not know
	Type uint32 `json:"type"` // the bits of fs.ModeType
}

func beingOf(st pathsafe.Stat) being {
	b := being{Ino: st.ID.Ino, Type: uint32(st.Mode.Type())}
	if !st.BirthTime.IsZero() {
		b.Born = st.BirthTime.UnixNano()
	}
	return b
}

// is is never true of the zero being.
func (b being) is(st pathsafe.Stat) bool { return b != (being{}) && b == beingOf(st) }

// Names in the staging directory of an exchange, beside the records.
const (
	exchangePrefix = ".spectrum06_exchange_"
	newsName       = "new"   // what comes, by the number of its swap
	oldsName       = "old"   // what went
	trashName      = "trash" // what is proven to be without worth
)

var partNames = []string{newsName, oldsName, trashName}

var (
	errOther    = machine.Disturbed("what stands there is not what was to be replaced")
	errMissing  = machine.Disturbed("nothing stands there")
	errNotEmpty = machine.Disturbed("the directory is not empty")
)

// close gives up all handles.
func (t *trade) close() {
	for _, d := range []*dir{&t.stage, &t.news, &t.olds, &t.trash} {
		d.close()
		*d = dir{}
	}
}

// look is the first step: it writes nothing.
func (t *trade) look() error {
	st, err := t.base.statSelf()
	if err != nil {
		return fail(StepBegin, "", err)
	}
	t.baseIs, t.mount = beingOf(st), st.ID
	for i := range t.swaps {
		if err := t.lookAt(&t.swaps[i]); err != nil {
			return err
		}
	}
	return t.lookAtDirs()
}

func (t *trade) lookAt(s *swapping) error {
	path := s.path.String()
	in, err := t.base.open(parent(s.path))
	if errors.Is(err, fs.ErrNotExist) && s.goes && !s.comes {
		s.goes = false
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fail(StepConflict, path, err)
	}
	if err != nil {
		return fail(StepBegin, path, err)
	}
	defer in.close()
	above, err := in.statSelf()
	if err != nil {
		return fail(StepBegin, path, err)
	}
	s.parent = beingOf(above)
	st, err := in.stat(s.path.Base())
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.goes && !s.comes:
		s.goes = false
		return nil
	case errors.Is(err, fs.ErrNotExist) && s.goes:
		return fail(StepConflict, path, errMissing)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(StepBegin, path, err)
	case !s.goes:
		return fail(StepConflict, path, errTaken)
	case !s.isLive(st):
		return fail(StepConflict, path, errOther)
	case !st.IsOn(t.mount):
		return fail(StepBegin, path, pathsafe.ErrCrossesMount)
	}
	s.old, s.mode = beingOf(st), st.Perm
	return nil
}

// isLive tells whether st is still what the caller saw.
func (s *swapping) isLive(st pathsafe.Stat) bool {
	was := s.live
	same := was.ID.Dev == st.ID.Dev && beingOf(*was) == beingOf(st)
	return same && (!st.Mode.IsRegular() || was.Size == st.Size && was.ModTime.Equal(st.ModTime))
}

func (t *trade) lookAtDirs() error {
	paths := make([]pathsafe.Path, 0, len(t.e.Dirs))
	get := map[pathsafe.Path]meta{}
	for _, d := range t.e.Dirs {
		paths = append(paths, d.Path)
		get[d.Path] = meta{d.Mode, d.UID, d.GID, d.Xattrs, d.ModTime}
	}
	for i, path := range deepestFirst(paths) {
		d, err := t.lookAtDir(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return fail(StepConflict, path.String(), both(errMissing, err))
		}
		if err != nil {
			return fail(StepBegin, path.String(), err)
		}
		d.get = get[path]
		t.dirs[i] = d
	}
	return nil
}

func (t *trade) lookAtDir(path pathsafe.Path) (staying, error) {
	in, err := t.base.open(path)
	if err != nil {
		return staying{}, err
	}
	defer in.close()
	st, err := in.statSelf()
	if err != nil {
		return staying{}, err
	}
	xattrs, err := in.xattrs()
	return staying{path: path, self: beingOf(st), have: meta{st.Perm, st.UID, st.GID, xattrs, st.ModTime}}, err
}
