package action

import (
	"fmt"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// A Known is a restore root of which there are records.
type Known struct {
	RootRef
	ID string // of the directory, as [pathsafe.Dir.Identity] has it
}

// OverlappingRoots returns the known restore roots other than that of a name which share directories with the
// root that is open at a real path: by what they are, by their paths, and by where they are in their
// file systems, whatever is mounted where. What cannot be found out is not known.
func OverlappingRoots(known []Known, name, real string, dir *pathsafe.Dir) (all []RootRef) {
	mounts, _ := mountinfo.GetMounts(nil)
	around, at := identitiesOf(real, dir), locate(mounts, real)
	for _, r := range known {
		if r.Name == name {
			continue
		}
		if around[r.ID] || (overlaps(real, r.Path) || overlaps(at, locate(mounts, r.Path))) && isStanding(r.Path) {
			all = append(all, r.RootRef)
		}
	}
	return all
}

// ShareDirectories reports whether one of two directories is the other, or in it, by their real paths or by
// where they are in their file systems, whatever is mounted where.
func ShareDirectories(a, b string) bool {
	mounts, _ := mountinfo.GetMounts(nil)
	return overlaps(a, b) || overlaps(locate(mounts, a), locate(mounts, b))
}

// isStanding reports whether something is at a path. One that was deleted halts nothing around it.
func isStanding(path string) bool {
	way, err := pathsafe.WayTo(path) // asks no server of another user
	return err == nil && !way.Missing
}

// overlaps reports whether one of two directories is the other, or in it; "" is not known.
func overlaps(a, b string) bool {
	return a != "" && b != "" && (pathsafe.IsWithin(a, b) || pathsafe.IsWithin(b, a))
}

// HaltsOfOverlapping returns the halts of the known restore roots that share directories with the one at a
// path. It takes no lock.
func HaltsOfOverlapping(root RootRef, known []Known, bars Bars, marks Halts) (all []*OverlapError) {
	dir, err := pathsafe.OpenRoot(root.Path)
	if err != nil {
		return nil // the caller finds that too
	}
	defer dir.Close()
	for _, other := range OverlappingRoots(known, root.Name, root.Path, dir) {
		if err := HaltOf(other, bars, marks, nil); err != nil {
			all = append(all, &OverlapError{Root: root.Path, Other: other, Err: err})
		}
	}
	return all
}

// FindHalt returns the error that halts a root by all that is recorded: attempts that left something in
// it, a rollback that could not be carried out, attempts of which what they left was removed, and
// halts of roots that share directories with it. It is nil if the root is not halted; [HaltsOf] returns
// the attempts. It takes no lock.
func FindHalt(root RootRef, known []Known, bars Bars, marks Halts, log *audit.Log) error {
	halts, err := HaltsAt(root.Path, marks)
	if err != nil {
		return err
	}
	if len(halts) > 0 {
		all := make([]error, 0, len(halts))
		for _, halt := range halts {
			all = append(all, halt)
		}
		return &haltedAttempts{all}
	}
	if is, err := bars.Barred(root.Name); is {
		return &BarredError{Root: root.Name, Err: err}
	}
	if halts := HaltsOf(HaltOf(root, nil, marks, log)); len(halts) > 0 {
		return halts[0]
	}
	if beside := HaltsOfOverlapping(root, known, bars, marks); len(beside) > 0 {
		return beside[0]
	}
	return nil
}

// haltedAttempts are several attempts that halt a root. The text is that of the first.
type haltedAttempts struct{ all []error }

func (e *haltedAttempts) Error() string   { return e.all[0].Error() }
func (e *haltedAttempts) Unwrap() []error { return e.all }

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
	for _, m := range mounts { // of several at one mount point the last is on top
		if pathsafe.IsWithin(path, m.Mountpoint) && (on == nil || len(m.Mountpoint) >= len(on.Mountpoint)) {
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
