package staging

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// The journal is a few records in the staging directory, one for each phase that was reached.
// A record appears whole: written beside its name, synced, renamed, the directory synced.
// Records are never changed.
//
//	INTENT        outside of staging this attempt has made only the chain manifest
//	PREPARED      all copies are durable; from here on targets may have been moved
//	COMMITTED     all targets are in place and checked; a recovery completes the attempt
//	ROLLING_BACK  COMMITTED, renamed: the attempt is undone after all
const (
	intentName      = sys.Prefix + "intent"
	preparedName    = sys.Prefix + "prepared"
	committedName   = sys.Prefix + "committed"
	rollingBackName = sys.Prefix + "rolling_back"
	newSuffix       = ".new"
)

// HaltedName is the name of the mark beside the journal of an attempt whose rollback has
// failed ([Outcome], [HaltError]): a person must act. The directory is [HaltError].Staging.
const HaltedName = sys.Prefix + "halted"

// journalNames are the names of all records.
var journalNames = []string{preparedName, committedName, rollingBackName, intentName}

// phase is how far an attempt got.
type phase int

const (
	phaseNone phase = iota
	phaseIntent
	phasePrepared
	phaseCommitted
	phaseRollingBack
)

// intentRecord lists everything that the attempt makes or replaces, and the existing entries.
type intentRecord struct {
	Version int           `json:"version"`
	Attempt string        `json:"attempt"`
	Kind    string        `json:"kind"`
	Root    identity      `json:"root"`
	Stage   identity      `json:"stage"`
	Swaps   []swapRecord  `json:"swaps"`
	Dirs    []dirRecord   `json:"dirs,omitempty"`  // that stay
	Times   []timeRecord  `json:"times,omitempty"` // of a commit
	Made    []entryRecord `json:"made,omitempty"`  // of a commit: directories, each after its parent, then files
}

// timeRecord is the time of a directory in which names change.
type timeRecord struct {
	Path []byte   `json:"path"`
	Self identity `json:"self"`
	Sec  int64    `json:"sec"`
	Nsec int64    `json:"nsec"`
}

type swapRecord struct {
	Path   []byte    `json:"path"` // it need not be UTF-8
	Since  phase     `json:"since"`
	Parent identity  `json:"parent,omitzero"`
	Old    *identity `json:"old,omitempty"`
	Was    *state    `json:"was,omitempty"` // of Old
	New    bool      `json:"new"`
	Empty  bool      `json:"empty,omitempty"`
	Unsure bool      `json:"unsure,omitempty"`
	Last   bool      `json:"last,omitempty"`
	// Remake is the metadata of Old, an empty directory that may be removed in place.
	Remake *metadataRecord `json:"remake,omitempty"`
	Made   *createdRecord  `json:"made,omitempty"` // the new entry, if it is already known
}

// entryRecord is a file or a directory that is made in staging, and its swap; none for a
// directory that already exists beneath the root, whose copy never leaves staging.
type entryRecord struct {
	Path []byte `json:"path"`
	Dir  bool   `json:"dir,omitempty"`
	Swap int    `json:"swap"`
}

// dirRecord is a directory that stays.
type dirRecord struct {
	Path []byte         `json:"path"`
	Self identity       `json:"self"`
	Get  metadataRecord `json:"get"`
	Have metadataRecord `json:"have"`
}

// metadataRecord has the time as seconds since 1970, and nanoseconds of them.
type metadataRecord struct {
	Mode   uint32        `json:"mode"`
	UID    uint32        `json:"uid"`
	GID    uint32        `json:"gid"`
	Xattrs []xattrRecord `json:"xattrs,omitempty"`
	Sec    int64         `json:"sec"`
	Nsec   int64         `json:"nsec"`
}

// xattrRecord is an extended attribute, whose name and value are any bytes.
type xattrRecord struct {
	Name  []byte `json:"name"`
	Value []byte `json:"value"`
}

// preparedRecord has the identities of what was made: for a commit of everything that its
// intent lists, in that order; for a reset of each swap with a new entry.
type preparedRecord struct {
	Version int             `json:"version"`
	Attempt string          `json:"attempt"`
	Made    []createdRecord `json:"made,omitempty"`
	New     []newsRecord    `json:"new,omitempty"`
	LeftOut []leftOutRecord `json:"left_out,omitempty"` // in the order of the swaps
}

// leftOutRecord is something that a replaced file has and the one in its place has not got.
type leftOutRecord struct {
	Swap int    `json:"swap"`
	What []byte `json:"what"`
	Why  string `json:"why"`
}

type newsRecord struct {
	Swap  int      `json:"swap"`
	Self  identity `json:"self"`
	Print string   `json:"print"`
}

// committedRecord has the identity of every artifact. It is the last record to be removed, so
// it names its attempt itself.
type committedRecord struct {
	Version   int             `json:"version"`
	Attempt   string          `json:"attempt"`
	Kind      string          `json:"kind"`
	Base      *dirRecord      `json:"base,omitempty"` // the root, if it is one of the directories that get something
	Artifacts []createdRecord `json:"artifacts,omitempty"`
}

// journalVersion is that of all records. Version 1 had other records for a commit than for
// a reset.
const journalVersion = 2

// A createdRecord is the identity of a file or directory as it outlives a reboot. Its
// device and mount are those of the root, whatever they are called by then.
type createdRecord struct {
	Ino    uint64 `json:"ino"`
	Born   int64  `json:"born"`             // nanoseconds since 1970, 0 where the file system does not know
	Size   int64  `json:"size"`             // bytes, anySize for directories
	SHA256 string `json:"sha256,omitempty"` // lower-case hex, of files
	Access string `json:"access,omitempty"` // see accessText
	// Taken is what a file has of the one that it replaces.
	Taken *takenRecord `json:"taken,omitempty"`
}

type takenRecord struct {
	UID    uint32        `json:"uid"`
	Xattrs []xattrRecord `json:"xattrs,omitempty"`
}

func recordOf(m *created) createdRecord {
	t := createdRecord{Ino: m.id.Ino, Size: m.size, Access: accessText(m.access)}
	if !m.born.IsZero() {
		t.Born = m.born.UnixNano()
	}
	if m.taken != nil {
		t.Taken = &takenRecord{m.taken.uid, recordsOf(m.taken.xattrs)}
	}
	return t
}

func (t createdRecord) with(digest [sha256.Size]byte) createdRecord {
	t.SHA256 = hex.EncodeToString(digest[:])
	return t
}

// createdIn returns the recorded entry as one created in a root that is open now.
func (t createdRecord) createdIn(root pathsafe.ID) created {
	m := created{known: true, id: root, size: t.Size, access: parseAccess(t.Access)}
	m.id.Ino = t.Ino
	if t.Born != 0 {
		m.born = time.Unix(0, t.Born)
	}
	if t.Taken != nil {
		m.taken = &taken{t.Taken.UID, xattrsOf(t.Taken.Xattrs)}
	}
	return m
}

// errForged: a record that this key has not made.
var errForged = machine.Disturbed("its journal was not written with this state directory's key")

// seal appends the authentication code of a record under its name.
func seal(key []byte, name string, record any) ([]byte, error) {
	text, err := json.Marshal(record, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	code := authenticate(key, name, text)
	return fmt.Appendf(text, "\n%x\n", code), nil
}

// unseal is the inverse of seal. An empty key disables the check of the HMAC.
func unseal(key []byte, name string, sealed []byte, record any) error {
	text, rest, ok := bytes.Cut(sealed, []byte("\n"))
	code, err := hex.DecodeString(string(bytes.TrimSuffix(rest, []byte("\n"))))
	if !ok || err != nil {
		return fmt.Errorf("%w: %q is not a record", errForged, name)
	}
	if len(key) > 0 && !hmac.Equal(code, authenticate(key, name, text)) {
		return errForged
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err == nil && head.Version != journalVersion {
		return fmt.Errorf("its journal has version %d, this program knows %d", head.Version, journalVersion)
	}
	if err := json.Unmarshal(text, record, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: %q: %w", errForged, name, err)
	}
	return nil
}

// authenticate binds a record to the key and to its kind. COMMITTED and
// ROLLING_BACK are one record under two names.
func authenticate(key []byte, name string, text []byte) []byte {
	if name == rollingBackName {
		name = committedName
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("spectrum journal\x00" + name + "\x00"))
	mac.Write(text)
	return mac.Sum(nil)
}

// enter records that the attempt has reached a phase, durably.
func (a *attempt) enter(p phase, name string, record any) error {
	sealed, err := seal(a.key, name, record)
	if err != nil {
		return err
	}
	f, err := a.stage.Create(name+newSuffix, ownFile)
	if err != nil {
		return err
	}
	if err = a.s.Write(f, sealed); err == nil {
		err = a.s.SyncFile(f)
	}
	if err = errors.Join(err, a.s.CloseFile(f)); err != nil {
		return err
	}
	// As far as a rollback is concerned the phase is reached before the rename,
	// which may have been done though it fails.
	a.phase = p
	if err := a.stage.rename(name+newSuffix, a.stage, name); err != nil {
		return err
	}
	return a.stage.Sync()
}

// enterIntent writes INTENT, before any other entry is made in staging or beside it.
func (a *attempt) enterIntent() error {
	root, err := a.root.StatSelf()
	if err != nil {
		return err
	}
	stage, err := a.stage.StatSelf()
	if err != nil {
		return err
	}
	r := intentRecord{
		Version: journalVersion, Attempt: a.id, Kind: a.kind, Root: identityOf(root), Stage: identityOf(stage),
		Swaps: make([]swapRecord, 0, len(a.swaps)),
	}
	for i := range a.swaps {
		s := &a.swaps[i]
		swap := swapRecord{Path: []byte(s.path.String()), Since: s.since, Parent: s.parent, New: s.hasNew, Empty: s.empty, Unsure: s.unsure, Last: s.last}
		if s.hasOld {
			swap.Old, swap.Was = &s.old, &s.was
			if s.remake != nil {
				r := s.remake.record()
				swap.Remake = &r
			}
		}
		if s.since == phaseIntent {
			t := recordOf(&s.created).with(sha256.Sum256(a.manifest))
			swap.Made = &t
		}
		r.Swaps = append(r.Swaps, swap)
	}
	for _, d := range a.dirs {
		r.Dirs = append(r.Dirs, d.record())
	}
	for _, d := range a.times {
		r.Times = append(r.Times, timeRecord{[]byte(d.path.String()), d.self, d.have.ModTime.Unix(), int64(d.have.ModTime.Nanosecond())})
	}
	for _, d := range a.copies.dirs {
		r.Made = append(r.Made, entryRecord{[]byte(d.path.String()), true, d.top})
	}
	for i := range a.copies.files {
		r.Made = append(r.Made, entryRecord{[]byte(a.copies.files[i].path.String()), false, a.copies.files[i].top})
	}
	return a.enter(phaseIntent, intentName, r)
}

// enterPrepared writes PREPARED, when all new entries are durable, before the first move.
func (a *attempt) enterPrepared() error {
	r := preparedRecord{Version: journalVersion, Attempt: a.id}
	a.knowTops()
	for i := range a.copies.dirs {
		r.Made = append(r.Made, recordOf(&a.copies.dirs[i].created))
	}
	for i := range a.copies.files {
		r.Made = append(r.Made, recordOf(&a.copies.files[i].created).with(a.copies.files[i].SHA256))
	}
	for i := range a.swaps {
		if s := &a.swaps[i]; s.tree {
			r.New = append(r.New, newsRecord{i, s.fresh, s.print})
		}
		for _, l := range a.swaps[i].leftOut {
			r.LeftOut = append(r.LeftOut, leftOutRecord{i, []byte(l.What), l.Why.Error()})
		}
	}
	return a.enter(phasePrepared, preparedName, r)
}

// knowTops sets the identity of the new entry of each top of a commit.
func (a *attempt) knowTops() {
	know := func(top int, path pathsafe.Path, m *created, t fs.FileMode) {
		if top != none && a.swaps[top].path == path && m.known {
			a.swaps[top].fresh = m.identity(t)
		}
	}
	for i := range a.copies.dirs {
		know(a.copies.dirs[i].top, a.copies.dirs[i].path, &a.copies.dirs[i].created, fs.ModeDir)
	}
	for i := range a.copies.files {
		know(a.copies.files[i].top, a.copies.files[i].path, &a.copies.files[i].created, 0)
	}
}

// enterCommitted writes COMMITTED, when all targets are checked and durable, and all artifacts
// are durable in staging. From here on a recovery completes the attempt.
func (a *attempt) enterCommitted() error {
	r := committedRecord{Version: journalVersion, Attempt: a.id, Kind: a.kind}
	if d := a.baseDir(); d != nil {
		base := d.record()
		r.Base = &base
	}
	for i := a.firstArtifact(); i < len(a.swaps); i++ {
		s := &a.swaps[i]
		r.Artifacts = append(r.Artifacts, recordOf(&s.created).with(sha256.Sum256(s.artifact.Data)))
	}
	return a.enter(phaseCommitted, committedName, r)
}

// enterRollingBack renames COMMITTED before anything is undone of an attempt that may be
// committed. It needs no space on the disk. A missing staging directory has no record that a
// recovery could complete.
func (a *attempt) enterRollingBack() error {
	if a.phase != phaseCommitted {
		return nil
	}
	if err := gone(a.stage.rename(committedName, a.stage, rollingBackName)); err != nil {
		return err
	}
	a.phase = phaseRollingBack
	return a.stage.Sync()
}

// baseDir is what the root gets, if it gets something.
func (a *attempt) baseDir() *staying {
	for i := range a.dirs {
		if a.dirs[i].path == (pathsafe.Path{}) {
			return &a.dirs[i]
		}
	}
	return nil
}

func (d *staying) record() dirRecord {
	return dirRecord{[]byte(d.path.String()), d.self, d.get.record(), d.have.record()}
}

func (m Metadata) record() metadataRecord {
	return metadataRecord{Mode: m.Mode, UID: m.UID, GID: m.GID, Xattrs: recordsOf(m.Xattrs), Sec: m.ModTime.Unix(), Nsec: int64(m.ModTime.Nanosecond())}
}

func recordsOf(xattrs []pathsafe.Xattr) (records []xattrRecord) {
	for _, x := range xattrs {
		records = append(records, xattrRecord{[]byte(x.Name), []byte(x.Value)})
	}
	return records
}

// xattrsOf is the inverse of recordsOf.
func xattrsOf(records []xattrRecord) (xattrs []pathsafe.Xattr) {
	for _, r := range records {
		xattrs = append(xattrs, pathsafe.Xattr{Name: string(r.Name), Value: string(r.Value)})
	}
	return xattrs
}

func (r *dirRecord) staying() (staying, error) {
	d := staying{self: r.Self, get: r.Get.metadata(), have: r.Have.metadata(), touched: true}
	if len(r.Path) == 0 {
		return d, nil
	}
	var err error
	d.path, err = pathsafe.Found(string(r.Path))
	return d, err
}

func (r metadataRecord) metadata() Metadata {
	return Metadata{Mode: r.Mode & 0o7777, UID: r.UID, GID: r.GID, ModTime: time.Unix(r.Sec, r.Nsec), Xattrs: xattrsOf(r.Xattrs)}
}

// read reads a record; found is false where there is none of this name.
func (d dir) read(key []byte, name string, record any) (found bool, err error) {
	sealed, err := d.content(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, unseal(key, name, sealed, record)
}

// content reads a whole file.
func (d dir) content(name string) (content []byte, err error) {
	err = d.s.Do("read", name, func() error {
		f, _, err := d.H.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		content, err = io.ReadAll(f)
		return err
	})
	return content, err
}
