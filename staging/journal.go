package staging

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// The journal is a few records in the staging directory, one for each phase
// that was reached. A record appears whole: written beside its name, synced,
// renamed, the directory synced. None is ever changed.
//
//	INTENT        nothing of this attempt stands outside of staging but the chain manifest
//	PREPARED      all copies are durable; from here on targets may have been moved
//	COMMITTED     all targets are in place and checked; from here on it goes forward
//	ROLLING_BACK  COMMITTED, renamed: it goes back after all
const (
	intentName      = ".spectrum06_intent"
	preparedName    = ".spectrum06_prepared"
	committedName   = ".spectrum06_committed"
	rollingBackName = ".spectrum06_rolling_back"
	haltedName      = ".spectrum06_halted" // beside them: a person must act
	newSuffix       = ".new"
)

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

// intentRecord names everything that the attempt is going to make.
type intentRecord struct {
	Version   int           `json:"version"`
	Attempt   string        `json:"attempt"`
	Root      thing         `json:"root"`
	Stage     thing         `json:"stage"`
	Manifest  *thing        `json:"manifest,omitempty"`
	Dirs      []intendedDir `json:"dirs"`
	Files     []string      `json:"files"`
	Artifacts []string      `json:"artifacts"`
}

// intendedDir is a directory below staging. One that is not new exists beneath
// the root already, so that it never leaves staging.
type intendedDir struct {
	Path string `json:"path"`
	New  bool   `json:"new"`
}

// preparedRecord has the identity of every directory and file of the intent, in
// its order.
type preparedRecord struct {
	Version int     `json:"version"`
	Attempt string  `json:"attempt"`
	Dirs    []thing `json:"dirs"`
	Files   []thing `json:"files"`
}

// committedRecord has the identity of every artifact of the intent.
type committedRecord struct {
	Version   int     `json:"version"`
	Attempt   string  `json:"attempt"`
	Artifacts []thing `json:"artifacts"`
}

const journalVersion = 1

// A thing is the identity of a file or directory as it outlives a reboot. Its
// device and mount are those of the root, whatever they are called by then.
type thing struct {
	Ino    uint64 `json:"ino"`
	Born   int64  `json:"born"`             // nanoseconds since 1970, 0 where the file system does not know
	Size   int64  `json:"size"`             // bytes, anySize for directories
	SHA256 string `json:"sha256,omitempty"` // lower-case hex, of files
	Access string `json:"access,omitempty"` // see accessText
}

func thingOf(m *mark) thing {
	t := thing{Ino: m.id.Ino, Size: m.size, Access: accessText(m.access)}
	if !m.born.IsZero() {
		t.Born = m.born.UnixNano()
	}
	return t
}

func (t thing) with(digest [sha256.Size]byte) thing {
	t.SHA256 = hex.EncodeToString(digest[:])
	return t
}

// markIn is the mark of a thing in a root that is open now.
func (t thing) markIn(root pathsafe.ID) mark {
	m := mark{known: true, id: root, size: t.Size, access: parseAccess(t.Access)}
	m.id.Ino = t.Ino
	if t.Born != 0 {
		m.born = time.Unix(0, t.Born)
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

// unseal is the inverse of seal. An empty key takes every code for good.
func unseal(key []byte, name string, sealed []byte, record any) error {
	text, rest, ok := bytes.Cut(sealed, []byte("\n"))
	code, err := hex.DecodeString(string(bytes.TrimSuffix(rest, []byte("\n"))))
	if !ok || err != nil {
		return fmt.Errorf("%w: %q is not a record", errForged, name)
	}
	if len(key) > 0 && !hmac.Equal(code, authenticate(key, name, text)) {
		return errForged
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
	// As far as a rollback is concerned the phase is reached before the rename,
	// which may have been done though it fails.
	return a.stage.appear(name, sealed, func() { a.phase = p })
}

// appear makes the file name whole, durably. Written is called before the
// rename.
func (d dir) appear(name string, data []byte, written func()) error {
	f, err := d.create(name+newSuffix, ownFile)
	if err != nil {
		return err
	}
	err = errors.Join(d.s.writeAndSync(f, data), d.s.closeFile(f))
	if err != nil {
		return err
	}
	written()
	if err := d.rename(name+newSuffix, d, name); err != nil {
		return err
	}
	return d.sync()
}

func (s *seam) writeAndSync(f *os.File, data []byte) error {
	if err := s.write(f, data); err != nil {
		return err
	}
	return s.syncFile(f)
}

// enterIntent comes before anything else is put into staging or beside it.
func (a *attempt) enterIntent() error {
	root, err := a.root.statSelf()
	if err != nil {
		return err
	}
	var self mark
	self.see(root, anySize)
	r := intentRecord{
		Version: journalVersion, Attempt: a.id, Root: thingOf(&self), Stage: thingOf(&a.stageMark),
		Dirs: make([]intendedDir, 0, len(a.plan.dirs)), Files: make([]string, 0, len(a.spec.Files)),
	}
	if a.spec.Manifest != nil {
		t := thingOf(&a.manifestMark).with(sha256.Sum256(a.spec.Manifest))
		r.Manifest = &t
	}
	for i := range a.plan.dirs {
		d := &a.plan.dirs[i]
		r.Dirs = append(r.Dirs, intendedDir{d.path.String(), d.top != none})
	}
	for i := range a.spec.Files {
		r.Files = append(r.Files, a.spec.Files[i].Path.String())
	}
	for _, art := range a.spec.Artifacts {
		r.Artifacts = append(r.Artifacts, art.Path.String())
	}
	return a.enter(phaseIntent, intentName, r)
}

// enterPrepared comes when all copies are durable, and before the first move.
func (a *attempt) enterPrepared() error {
	r := preparedRecord{Version: journalVersion, Attempt: a.id, Files: make([]thing, 0, len(a.spec.Files))}
	for i := range a.plan.dirs {
		r.Dirs = append(r.Dirs, thingOf(&a.plan.dirs[i].mark))
	}
	for i := range a.spec.Files {
		r.Files = append(r.Files, thingOf(&a.plan.files[i].mark).with(a.spec.Files[i].SHA256))
	}
	return a.enter(phasePrepared, preparedName, r)
}

// enterCommitted comes when all targets are checked and durable, and all
// artifacts are durable in staging.
func (a *attempt) enterCommitted() error {
	r := committedRecord{Version: journalVersion, Attempt: a.id}
	for i, art := range a.spec.Artifacts {
		r.Artifacts = append(r.Artifacts, thingOf(&a.artifacts[i].mark).with(sha256.Sum256(art.Data)))
	}
	return a.enter(phaseCommitted, committedName, r)
}

// enterRollingBack comes before a committed attempt is undone. It needs no
// space on the disk. A staging directory that is gone has no record that could
// lead forward.
func (a *attempt) enterRollingBack() error {
	if a.phase != phaseCommitted {
		return nil
	}
	err := a.stage.rename(committedName, a.stage, rollingBackName)
	if err := gone(err); err != nil {
		return err
	}
	a.phase = phaseRollingBack
	return a.stage.sync()
}

// read reads a record; found is false where there is none of this name.
func (d dir) read(key []byte, name string, record any) (found bool, err error) {
	return d.readAs(key, name, name, record)
}

// content reads a whole file.
func (d dir) content(name string) (content []byte, err error) {
	err = d.s.do("read", name, func() error {
		f, _, err := d.h.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		content, err = io.ReadAll(f)
		return err
	})
	return content, err
}
