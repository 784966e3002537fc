package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// NameState is the state of a name that an attempt changes.
type NameState int

const (
	// AsNeither means that something else is there, or nothing where something belongs.
	AsNeither NameState = iota
	// AsBefore means that the name has its old entry.
	AsBefore
	// AsAfter means that what the attempt puts there is there.
	AsAfter
)

// An Inspection is the state of the names of an unfinished attempt.
type Inspection struct {
	Names []InspectedName // in the order in which they change
	// Replaced are directories of names that are not there any more, or other ones, in the order of
	// their names.
	Replaced []ReplacedDir
	// Foreign are paths in the directories of a commit that are not of it, at most [MaxForeign].
	Foreign []string
	// InTheWay are paths at which names of a commit need a directory, and at which something else is.
	InTheWay []string
}

// A ReplacedDir is a directory that was at a path beneath the root, and its inode.
type ReplacedDir struct {
	Path  string
	Inode uint64
}

// MaxForeign is how many foreign paths an Inspection names.
const MaxForeign = 8

// InspectedName is one name that an attempt changes.
type InspectedName struct {
	Path  string // beneath the root
	State NameState
	// HasOld and HasNew report whether the name has an old entry, and whether it has a new one.
	HasOld, HasNew bool
	Free           bool // nothing is at the name
	// Before and After are the paths, beneath the root, at which that is now; "" where it is not
	// to be found.
	Before, After string
}

// AttemptOf returns the UUID and the kind of the attempt that a staging directory's name
// belongs to; the kind is [KindCommit] or "rollback_or_restore", and "" for any other name.
func AttemptOf(name string) (id, kind string) { return attemptOf(name) }

// Inspect returns the state of the names of the attempt whose staging directory has that name.
// It takes no lock and writes nothing. The error is the reason why its journal is rejected.
func Inspect(root *pathsafe.Dir, key []byte, name string) (*Inspection, error) {
	id, kind := attemptOf(name)
	if kind == "" {
		return nil, fmt.Errorf("%q is not the name of a staging directory", name)
	}
	s := &sysHook{}
	a := &attempt{s: s, key: key, id: id, kind: kind, root: on(root, s), stageName: name, revived: true}
	defer a.close()
	f, err := a.find()
	if err == nil && !f.isOne {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = a.reviveFor(&f, Automatic)
	}
	if err == nil {
		err = a.openParts()
	}
	if err != nil {
		return nil, err
	}
	return a.inspect()
}

func (a *attempt) inspect() (*Inspection, error) {
	found := &Inspection{}
	at := &cache{base: a.root}
	defer at.close()
	for i := range a.copies.files {
		f := &a.copies.files[i]
		n := InspectedName{Path: f.path.String(), HasNew: true}
		s, isOld := &a.swaps[f.top], (func(pathsafe.Stat) bool)(nil)
		if s.hasOld { // it replaces a file
			isOld = func(st pathsafe.Stat) bool { return s.old.is(st) }
		}
		if err := n.look(at, f.path, func(st pathsafe.Stat) bool { return f.created.is(st) }, isOld); err != nil {
			return nil, err
		}
		if s.hasOld && n.State != AsBefore {
			n.Before = a.replacedAt(f)
		}
		if n.State != AsAfter {
			n.After = a.stagedAt(f)
		}
		found.Names = append(found.Names, n)
	}
	for i := range a.swaps {
		s := &a.swaps[i]
		isRemoval := s.hasOld && !s.hasNew && !s.last
		if s.since == phaseIntent || a.isCommit() && s.since == phasePrepared && !isRemoval { // the manifest beside staging; a file, or a directory of some
			continue
		}
		n, err := a.inspectSwap(at, i)
		if err != nil {
			return nil, err
		}
		found.Names = append(found.Names, n)
	}
	a.findInTheWay(found)
	if a.isCommit() && a.phase >= phasePrepared {
		return found, a.findForeign(found)
	}
	return found, a.findReplaced(at, found)
}

// findReplaced looks for the directories of names, and those that stay.
func (a *attempt) findReplaced(at *cache, found *Inspection) error {
	seen := map[pathsafe.Path]bool{}
	find := func(p pathsafe.Path, was identity) error {
		if was == (identity{}) || seen[p] {
			return nil
		}
		seen[p] = true
		in, err := at.open(p)
		var st pathsafe.Stat
		if err == nil {
			st, err = in.StatSelf()
		}
		if err != nil && !isOthers(err) {
			return err
		}
		if err != nil || !was.is(st) {
			found.Replaced = append(found.Replaced, ReplacedDir{p.String(), was.Ino})
		}
		return nil
	}
	for i := range a.swaps {
		if err := find(parent(a.swaps[i].path), a.swaps[i].parent); err != nil {
			return err
		}
	}
	for i := range a.dirs {
		if err := find(a.dirs[i].path, a.dirs[i].self); err != nil {
			return err
		}
	}
	return nil
}

// stagedAt is where in staging a file of a commit is: it has not left it, or was taken back there
// with the directory that it came in. "" where it is not there.
func (a *attempt) stagedAt(f *copiedFile) string {
	taken := strconv.Itoa(f.top) + f.path.String()[len(a.swaps[f.top].path.String()):]
	for _, at := range []struct {
		in         dir
		name, path string
	}{{a.news, newsName, f.path.String()}, {a.olds, oldsName, taken}} {
		p, err := pathsafe.Found(at.path)
		if err != nil || at.in.H == nil {
			continue
		}
		if st, err := at.in.statBelow(p); err == nil && f.created.is(st) {
			return path.Join(a.stageName, at.name, at.path)
		}
	}
	return ""
}

// replacedAt is where in staging the file is that a file of a commit replaces; "" where it is not
// there.
func (a *attempt) replacedAt(f *copiedFile) string {
	s := &a.swaps[f.top]
	if a.olds.H != nil {
		if st, err := a.olds.Stat(strconv.Itoa(f.top)); err == nil && s.old.is(st) {
			return path.Join(a.stageName, oldsName, strconv.Itoa(f.top))
		}
	}
	if a.news.H != nil {
		if st, err := a.news.statBelow(f.path); err == nil && s.old.is(st) {
			return path.Join(a.stageName, newsName, f.path.String())
		}
	}
	return ""
}

// look finds the state of a name. isOld is nil if the name was free before.
func (n *InspectedName) look(at *cache, p pathsafe.Path, isNew, isOld func(pathsafe.Stat) bool) error {
	n.HasOld = isOld != nil
	in, err := at.open(parent(p))
	var st pathsafe.Stat
	if err == nil {
		st, err = in.Stat(p.Base())
	}
	switch {
	case isOthers(err):
		n.Free = true
		switch {
		case !n.HasOld:
			n.State = AsBefore
		case !n.HasNew:
			n.State = AsAfter
		}
		return nil
	case err != nil:
		return fmt.Errorf("%q: %w", n.Path, err)
	case n.HasNew && isNew(st):
		n.State, n.After = AsAfter, n.Path
	case n.HasOld && isOld(st):
		n.State, n.Before = AsBefore, n.Path
	}
	return nil
}

// inspectSwap looks at a name, and for the rest in staging.
func (a *attempt) inspectSwap(at *cache, i int) (InspectedName, error) {
	s := &a.swaps[i]
	n := InspectedName{Path: s.path.String(), HasNew: s.hasNew}
	isNew := func(st pathsafe.Stat) bool { return s.fresh.is(st) }
	old := s
	if s.since == phaseCommitted {
		old = a.leaving(s.path)
	}
	var isOld func(pathsafe.Stat) bool
	if old != nil && old.hasOld {
		isOld = func(st pathsafe.Stat) bool { return old.old.is(st) }
	}
	if err := n.look(at, s.path, isNew, isOld); err != nil {
		return n, err
	}
	if old != nil && old != s && n.State != AsBefore && a.olds.H != nil {
		if st, err := a.olds.Stat(old.name); err == nil && old.old.is(st) {
			n.Before = path.Join(a.stageName, oldsName, old.name)
		}
	}
	for _, part := range []struct {
		name string
		in   dir
	}{{oldsName, a.olds}, {newsName, a.news}, {trashName, a.trash}, {holdName, a.hold}} {
		in, number := part.in, strconv.Itoa(i)
		if !s.numbered() {
			number = s.name
		}
		if in.H == nil {
			continue
		}
		st, err := in.Stat(number)
		if err != nil {
			if gone(err) != nil {
				return n, err
			}
			continue
		}
		switch where := path.Join(a.stageName, part.name, number); {
		case s.hasNew && s.fresh.is(st):
			if n.After == "" {
				n.After = where
			}
		case s.hasOld && n.Before == "": // or an entry that replaced it just before the move
			n.Before = where
		}
	}
	return n, nil
}

// findInTheWay looks for entries that are neither a directory nor a link where a file of a
// commit needs a directory. Entries that cannot be read are ignored.
func (a *attempt) findInTheWay(found *Inspection) {
	seen := map[pathsafe.Path]bool{{}: true}
	for i := range a.copies.files {
		for p := parent(a.copies.files[i].path); !seen[p]; p = parent(p) {
			seen[p] = true
			st, err := a.root.statBelow(p)
			if err == nil && !st.Mode.IsDir() && st.Mode.Type() != fs.ModeSymlink {
				found.InTheWay = append(found.InTheWay, p.String())
			}
		}
	}
}

// maxForeignLook bounds how many names are looked at to find foreign ones.
const maxForeignLook = 100_000

// findForeign looks for foreign entries in the directories that the commit has made.
func (a *attempt) findForeign(found *Inspection) error {
	errEnough := errors.New("enough")
	own, seen := map[string]bool{}, 0
	for i := range a.copies.dirs {
		own[a.copies.dirs[i].path.String()] = true
	}
	for i := range a.copies.files {
		own[a.copies.files[i].path.String()] = true
	}
	for i := range a.swaps {
		own[a.swaps[i].path.String()] = true
	}
	for i := range a.copies.dirs {
		d := &a.copies.dirs[i]
		if d.top == none || d.path != a.swaps[d.top].path {
			continue
		}
		in, err := a.root.open(d.path)
		if isOthers(err) || errors.Is(err, pathsafe.ErrSymlink) {
			continue
		}
		if err != nil {
			return err
		}
		err = in.walk(func(rel string, _ pathsafe.Stat) error {
			if seen++; len(found.Foreign) == MaxForeign || seen > maxForeignLook {
				return errEnough
			}
			if at := path.Join(d.path.String(), rel); !own[at] {
				found.Foreign = append(found.Foreign, at)
			}
			return nil
		})
		in.Close()
		if err != nil && !errors.Is(err, errEnough) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
