package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// The journal of an exchange has the records of that of a commit, under the same
// names, and they mean the same. Their codes are others.

// tradeIntent says what is going to be done, and what stood there before.
type tradeIntent struct {
	Version int         `json:"version"`
	Attempt string      `json:"attempt"`
	Kind    string      `json:"kind"`
	Base    being       `json:"base"`
	Stage   being       `json:"stage"`
	Swaps   []tradeSwap `json:"swaps"`
	Dirs    []tradeDir  `json:"dirs"`
}

type tradeSwap struct {
	Path   []byte `json:"path"` // it need not be UTF-8
	Parent being  `json:"parent"`
	Old    *being `json:"old,omitempty"`
	Mode   uint32 `json:"mode,omitempty"` // of Old
	New    bool   `json:"new"`
	Empty  bool   `json:"empty"`
}

type tradeDir struct {
	Path []byte    `json:"path"`
	Self being     `json:"self"`
	Get  tradeMeta `json:"get"`
	Have tradeMeta `json:"have"`
}

// tradeMeta has the time as seconds since 1970, and nanoseconds of them.
type tradeMeta struct {
	Mode   uint32       `json:"mode"`
	UID    uint32       `json:"uid"`
	GID    uint32       `json:"gid"`
	Xattrs []tradeXattr `json:"xattrs,omitempty"`
	Sec    int64        `json:"sec"`
	Nsec   int64        `json:"nsec"`
}

// tradeXattr is an extended attribute, whose name and value are any bytes.
type tradeXattr struct {
	Name  []byte `json:"name"`
	Value []byte `json:"value"`
}

// tradePrepared has what was made, of every swap with something new, in order.
type tradePrepared struct {
	Version int         `json:"version"`
	Attempt string      `json:"attempt"`
	New     []tradeMade `json:"new"`
}

type tradeMade struct {
	Swap  int    `json:"swap"`
	Self  being  `json:"self"`
	Print string `json:"print"`
}

// tradeCommitted is the last record to go, so it tells by itself what it is of.
type tradeCommitted struct {
	Version int       `json:"version"`
	Attempt string    `json:"attempt"`
	Kind    string    `json:"kind"`
	Base    *tradeDir `json:"base,omitempty"` // if it is one of the directories that get something
}

// labelOf is the name that the code of a record is bound to.
func labelOf(name string) string {
	if name == rollingBackName {
		name = committedName
	}
	return "exchange\x00" + name
}

func (t *trade) enter(p phase, name string, record any) error {
	sealed, err := seal(t.key, labelOf(name), record)
	if err != nil {
		return err
	}
	return t.stage.appear(name, sealed, func() { t.phase = p })
}

func (t *trade) enterIntent() error {
	st, err := t.stage.statSelf()
	if err != nil {
		return err
	}
	r := tradeIntent{
		Version: journalVersion, Attempt: t.id, Kind: t.kind, Base: t.baseIs, Stage: beingOf(st),
		Swaps: make([]tradeSwap, 0, len(t.swaps)), Dirs: make([]tradeDir, 0, len(t.dirs)),
	}
	for i := range t.swaps {
		s := &t.swaps[i]
		swap := tradeSwap{Path: []byte(s.path.String()), Parent: s.parent, New: s.comes, Empty: s.empty}
		if s.goes {
			swap.Old, swap.Mode = &s.old, s.mode
		}
		r.Swaps = append(r.Swaps, swap)
	}
	for _, d := range t.dirs {
		r.Dirs = append(r.Dirs, d.record())
	}
	return t.enter(phaseIntent, intentName, r)
}

func (t *trade) enterPrepared() error {
	r := tradePrepared{Version: journalVersion, Attempt: t.id, New: make([]tradeMade, 0, len(t.swaps))}
	for i := range t.swaps {
		if s := &t.swaps[i]; s.comes {
			r.New = append(r.New, tradeMade{i, s.fresh, s.print})
		}
	}
	return t.enter(phasePrepared, preparedName, r)
}

func (t *trade) enterCommitted() error {
	r := tradeCommitted{Version: journalVersion, Attempt: t.id, Kind: t.kind}
	if d := t.baseDir(); d != nil {
		base := d.record()
		r.Base = &base
	}
	return t.enter(phaseCommitted, committedName, r)
}

// enterRollingBack comes before anything is undone of what may be committed.
func (t *trade) enterRollingBack() error {
	if t.phase != phaseCommitted {
		return nil
	}
	if err := gone(t.stage.rename(committedName, t.stage, rollingBackName)); err != nil {
		return err
	}
	t.phase = phaseRollingBack
	return t.stage.sync()
}

func (d *staying) record() tradeDir {
	return tradeDir{[]byte(d.path.String()), d.self, d.get.record(), d.have.record()}
}

func (m meta) record() tradeMeta {
	r := tradeMeta{Mode: m.mode, UID: m.uid, GID: m.gid, Sec: m.time.Unix(), Nsec: int64(m.time.Nanosecond())}
	for _, x := range m.xattrs {
		r.Xattrs = append(r.Xattrs, tradeXattr{[]byte(x.Name), []byte(x.Value)})
	}
	return r
}

func (r *tradeDir) staying() (staying, error) {
	d := staying{self: r.Self, get: r.Get.meta(), have: r.Have.meta(), touched: true}
	if len(r.Path) == 0 {
		return d, nil
	}
	var err error
	d.path, err = pathsafe.Found(string(r.Path))
	return d, err
}

func (r tradeMeta) meta() meta {
	m := meta{mode: r.Mode & 0o7777, uid: r.UID, gid: r.GID, time: time.Unix(r.Sec, r.Nsec)}
	for _, x := range r.Xattrs {
		m.xattrs = append(m.xattrs, pathsafe.Xattr{Name: string(x.Name), Value: string(x.Value)})
	}
	return m
}

// revive makes a trade again from the records in its staging directory, as far
// as they go. An empty key takes every record for good.
func (t *trade) revive(key []byte) error {
	var r tradeIntent
	found, err := t.read(key, intentName, &r)
	if err != nil {
		return err
	}
	if found {
		if err := t.reviveIntent(&r); err != nil {
			return err
		}
	}
	if err := t.revivePrepared(key, found); err != nil {
		return err
	}
	return t.reviveCommitted(key, found)
}

func (t *trade) read(key []byte, name string, record any) (bool, error) {
	return t.stage.readAs(key, name, labelOf(name), record)
}

func (t *trade) reviveIntent(r *tradeIntent) error {
	if err := t.fits(r); err != nil {
		return err
	}
	var swaps []Swap
	for i := range r.Swaps {
		path, err := pathsafe.Found(string(r.Swaps[i].Path))
		if err != nil {
			return err
		}
		s := swapping{path: path, parent: r.Swaps[i].Parent, comes: r.Swaps[i].New, empty: r.Swaps[i].Empty}
		if old := r.Swaps[i].Old; old != nil {
			s.goes, s.old, s.mode = true, *old, r.Swaps[i].Mode&0o7777
		}
		t.swaps, swaps = append(t.swaps, s), append(swaps, Swap{Path: path})
	}
	for i, covered := range coveredOf(swaps) {
		t.swaps[i].covered = covered
	}
	for i := range r.Dirs {
		d, err := r.Dirs[i].staying()
		if err != nil {
			return err
		}
		t.dirs = append(t.dirs, d)
	}
	t.phase = phaseIntent
	return nil
}

// fits refuses a journal that was written for another place.
func (t *trade) fits(r *tradeIntent) error {
	base, err := t.base.statSelf()
	if err != nil {
		return err
	}
	stage, err := t.stage.statSelf()
	if err != nil {
		return err
	}
	switch {
	case r.Version != journalVersion:
		return fmt.Errorf("its journal has version %d, this program knows %d", r.Version, journalVersion)
	case !t.takeName(r.Attempt, r.Kind):
		return errUnfit
	case !r.Base.is(base), !r.Stage.is(stage):
		return errors.New("its journal was written for another directory")
	}
	return nil
}

// takeName takes what a record says of the attempt, if that can be.
func (t *trade) takeName(id, kind string) bool {
	if t.id != id || !validKind(kind) {
		return false
	}
	t.kind = kind
	return true
}

// revivePrepared: without INTENT, which goes after it, there can be none but in
// a crash that has brought it back; it says nothing then.
func (t *trade) revivePrepared(key []byte, intent bool) error {
	var r tradePrepared
	found, err := t.read(key, preparedName, &r)
	if err != nil || !found {
		return err
	}
	if r.Attempt != t.id {
		return errUnfit
	}
	if !intent {
		return nil
	}
	comes := 0
	for i := range t.swaps {
		if !t.swaps[i].comes {
			continue
		}
		if comes == len(r.New) || r.New[comes].Swap != i || r.New[comes].Self == (being{}) {
			return errUnfit
		}
		t.swaps[i].fresh, t.swaps[i].print = r.New[comes].Self, r.New[comes].Print
		comes++
	}
	if comes != len(r.New) {
		return errUnfit
	}
	t.phase = phasePrepared
	return nil
}

func (t *trade) reviveCommitted(key []byte, intent bool) error {
	var seen int
	for i, name := range []string{committedName, rollingBackName} {
		var r tradeCommitted
		found, err := t.read(key, name, &r)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if seen++; seen > 1 || !t.takeName(r.Attempt, r.Kind) {
			return errUnfit
		}
		if r.Base != nil && !intent {
			base, err := r.Base.staying()
			if err != nil || base.path != (pathsafe.Path{}) {
				return errUnfit
			}
			t.dirs = append(t.dirs, base)
		}
		t.takePhase([]phase{phaseCommitted, phaseRollingBack}[i])
	}
	return nil
}

// takePhase: what is rolled back has lost PREPARED only when all of it was done,
// and then INTENT says enough.
func (t *trade) takePhase(p phase) {
	if p == phaseRollingBack && t.phase == phaseIntent {
		return
	}
	t.phase = p
}

// peek finds out which attempt it is that cannot be ended, as far as its records
// can be read at all. Nothing is built on it.
func (t *trade) peek() {
	var intent tradeIntent
	var committed tradeCommitted
	if found, err := t.read(nil, intentName, &intent); found && err == nil {
		t.takeName(intent.Attempt, intent.Kind)
	}
	if found, err := t.read(nil, committedName, &committed); found && err == nil {
		t.takeName(committed.Attempt, committed.Kind)
	}
}

// baseDir is what the base gets, if it gets something.
func (t *trade) baseDir() *staying {
	for i := range t.dirs {
		if t.dirs[i].path == (pathsafe.Path{}) {
			return &t.dirs[i]
		}
	}
	return nil
}

// readAs reads a record whose code is bound to a label; found is false where
// there is none of this name.
func (d dir) readAs(key []byte, name, label string, record any) (found bool, err error) {
	sealed, err := d.content(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, unseal(key, label, sealed, record)
}
