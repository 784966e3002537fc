package action

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// An immutable or append-only entry (chattr +i, +a) cannot be moved or changed, nor can the
// names in such a directory. It stays as it is and is reported, before anything is moved: a
// swap that fails could not be undone either.

// A FixedError is a restore root in which nothing can be made, or nothing be removed again.
type FixedError struct{ why string }

func (e *FixedError) Error() string {
	return "the restore root is " + strings.TrimPrefix(e.why, "it is ")
}

// A fixture is something that cannot be changed.
type fixture struct{ path, why string }

// leaveFixed records that a name stays as it is because of an immutable entry at, beneath or
// above it.
func (d *difference) leaveFixed(name string, f fixture) {
	if strings.HasPrefix(f.path, name+"/") {
		if d.told == f.path { // of the directories on the way to it the first is named
			return
		}
		d.told = f.path
		f.why = fmt.Sprintf("it holds %q: %s", f.path, f.why)
	}
	d.leave(name, f.why)
	d.left[len(d.left)-1].Fixed = f.path
}

// fixed reports whether the entry of a name cannot be moved aside, and records that.
func (d *difference) fixed(now tree) bool {
	f := d.fixedIn(now)
	if f != nil {
		d.leaveFixed(now[0].Path, *f)
	}
	return f != nil
}

// fixedIn returns the first entry at or beneath a name that cannot be moved aside; nil if all
// can. An entry that cannot be read counts as movable.
func (d *difference) fixedIn(now tree) *fixture {
	for _, e := range now {
		at, err := pathsafe.Found(e.Path)
		if err != nil {
			continue
		}
		up := d.above(e.Path)
		st := d.statNow(e, at)
		if why := restore.FixedBy(st, d.dirs[up]); why != "" {
			if !st.Immutable && !st.AppendOnly {
				return &fixture{up, why}
			}
			return &fixture{e.Path, why}
		}
	}
	return nil
}

// statNow describes the present entry of a name.
func (d *difference) statNow(e snapshot.Entry, at pathsafe.Path) pathsafe.Stat {
	if e.Type == snapshot.Dir {
		return d.dirs[d.look(e.Path)]
	}
	st, err := standing(d.root, at)
	if err != nil {
		return pathsafe.Stat{}
	}
	return st
}

// fixedAbove reports whether nothing can come at a name, since its directory cannot be changed, and
// notes that.
func (d *difference) fixedAbove(name string) bool {
	up := d.above(name)
	why := restore.FixedBy(pathsafe.Stat{}, d.dirs[up])
	if why != "" {
		d.leaveFixed(name, fixture{up, "it no longer exists; " + why})
	}
	return why != ""
}

// fixedMeta reports whether the metadata of a directory that stays cannot be restored, and
// records that if it differs.
func (d *difference) fixedMeta(then, now snapshot.Entry) bool {
	why := restore.FixedBy(d.dirs[d.look(now.Path)], pathsafe.Stat{})
	then.ModTime = now.ModTime
	if why != "" && !then.Equal(now) {
		d.leaveFixed(now.Path, fixture{now.Path, why + ", so its owner, mode and attributes cannot be changed"})
	}
	return why != ""
}

// above returns the path of the directory that a name is in, as it is in dirs; "." is the root.
func (d *difference) above(name string) string { return d.look(path.Dir(name)) }

// look has a directory in dirs as it is now, and returns its path there.
func (d *difference) look(name string) string {
	name, at := cmp.Or(name, "."), name
	if at == "." {
		at = ""
	}
	if _, known := d.dirs[name]; !known {
		if d.dirs == nil {
			d.dirs = map[string]pathsafe.Stat{}
		}
		d.dirs[name], _ = d.dirNow(at)
	}
	return name
}

// isFixed reports whether something that a commit has made cannot be changed; it stays then, and that
// is noted.
func (p *undoPlan) isFixed(dir *pathsafe.Dir, n *node, st pathsafe.Stat) bool {
	in, err := dir.Stat()
	if err != nil {
		return false
	}
	why, at := restore.FixedBy(st, in), n.path
	if why != "" && !st.Immutable && !st.AppendOnly {
		at = path.Dir(n.path)
	}
	if why != "" {
		p.left = append(p.left, Left{Path: n.path, Why: why, Committed: true, Fixed: at})
	}
	return why != ""
}
