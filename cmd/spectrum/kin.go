package main

import (
	"fmt"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
)

// kinOf returns the known restore roots other than that of a name which share directories with the
// root that is open at a real path: by what they are, by their paths, and by where they are in their
// file systems, whatever is mounted where. What cannot be found out is not known.
func kinOf(state *statedir.Dir, name, real string, dir *pathsafe.Dir) (all []action.Kin) {
	known, _ := state.KnownRoots()
	mounts, _ := mountinfo.GetMounts(nil)
	around, at := identitiesOf(real, dir), locate(mounts, real)
	for _, r := range known {
		if r.Known == name {
			continue
		}
		if around[r.ID] || (overlaps(real, r.Path) || overlaps(at, locate(mounts, r.Path))) && isStanding(r.Path) {
			all = append(all, action.Kin{Name: r.Known, Path: r.Path})
		}
	}
	return all
}

// isStanding reports whether something is at a path. One that was deleted halts nothing around it.
func isStanding(path string) bool {
	way, err := pathsafe.WayTo(path) // asks no server of another user
	return err == nil && !way.Missing
}

// overlaps reports whether one of two directories is the other, or in it; "" is not known.
func overlaps(a, b string) bool {
	return a != "" && b != "" && (isWithin(a, b) || isWithin(b, a))
}

// haltedKin returns the halts of the restore roots that share directories with the one at a path.
func haltedKin(state *statedir.Dir, name, path string) (all []*action.KinError) {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil // the caller finds that too
	}
	defer dir.Close()
	for _, kin := range kinOf(state, name, path, dir) {
		if err := action.HaltOf(kin, state, state, nil); err != nil {
			all = append(all, &action.KinError{Root: path, Kin: kin, Err: err})
		}
	}
	return all
}

// identitiesOf returns what a directory and those above it are.
func identitiesOf(real string, dir *pathsafe.Dir) map[string]bool {
	all := map[string]bool{}
	if id, err := dir.Identity(); err == nil {
		all[id] = true
	}
	for up := filepath.Dir(real); up != real; real, up = up, filepath.Dir(up) {
		above, err := pathsafe.OpenRoot(up)
		if err != nil {
			continue
		}
		if id, err := above.Identity(); err == nil {
			all[id] = true
		}
		above.Close()
	}
	return all
}

// locate returns the path of a directory in its file system, after the number of that: it is the
// same whatever is mounted where. It looks at the table of mounts only; "" is not known.
func locate(mounts []*mountinfo.Info, path string) string {
	var on *mountinfo.Info
	for _, m := range mounts { // of several at one place the last is on top
		if isWithin(path, m.Mountpoint) && (on == nil || len(m.Mountpoint) >= len(on.Mountpoint)) {
			on = m
		}
	}
	if on == nil {
		return ""
	}
	rest, err := filepath.Rel(on.Mountpoint, path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", on.Major, on.Minor) + filepath.Join("/", on.Root, rest)
}
