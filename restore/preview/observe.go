package preview

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// observed is the part of a restore root that an approval binds, condensed into two digests of 64 hex
// digits: the root itself, the entries at the paths of the plan, and the directories that lead there. Other
// changes in the root are ignored.
type observed struct {
	// state covers names, types, permission bits, and the sizes of files. It is part of a preview's
	// identity, and equal on all machines.
	state string
	// witness also covers owners and inodes, and the modification and change times of files, so that it
	// detects every change. It has a meaning on this machine only.
	witness string
	root    pathsafe.Stat
	way     pathsafe.Way     // that the path of the root leads
	names   map[string]sight // what is at the paths of the plan
	places  *placesOf        // beneath the root, of other users; nil if the root was not looked through
}

// observeRoot examines the root itself, and requires that its path still leads there.
func observeRoot(root *pathsafe.Dir, name string) (o observed, err error) {
	if o.root, err = root.Stat(); err != nil {
		return observed{}, err
	}
	if o.way, err = pathsafe.WayTo(name); err != nil {
		return observed{}, err
	}
	if err := o.way.LeadsTo(root); err != nil {
		return observed{}, fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	return o, nil
}

// observe examines the restore root of a plan, and requires that its path still leads there. It looks only
// at the names that the plan uses. It reads no file contents, because a change of them changes the times.
func observe(ctx context.Context, r *restore.Restore, name string) (observed, error) {
	o, err := observeRoot(r.Root(), name)
	if err != nil {
		return observed{}, err
	}
	if o.places, err = newPlaces(o.way.Real); err != nil {
		return observed{}, err
	}
	l := newLookup(r.Root(), o.places)
	defer l.leave()
	l.note("", o.root, nil)
	for path := range paths(r.Plan()) {
		if err := ctx.Err(); err != nil {
			return observed{}, err
		}
		if err := l.along(path); err != nil {
			return observed{}, err
		}
	}
	o.names = l.names
	o.state, o.witness = hex.EncodeToString(l.state.Sum(nil)), hex.EncodeToString(l.witness.Sum(nil))
	return o, nil
}

// paths yields the path of every output, result artifact and removal of a plan, beneath the root.
func paths(plan *restore.Plan) iter.Seq[string] {
	return func(yield func(string) bool) {
		for run := range plan.Runs() {
			for o := range run.Bundle().Outputs() {
				if !yield(run.Target(o.Path().String())) {
					return
				}
			}
			for _, a := range run.Artifacts() {
				if !yield(a.Path) {
					return
				}
			}
		}
		for _, path := range plan.Removes() {
			if !yield(path.String()) {
				return
			}
		}
	}
}

// equals reports whether nothing changed between two observations, beneath the root or on the way to it.
func (o *observed) equals(other *observed) bool {
	return o.witness == other.witness && o.way.Real == other.way.Real && slices.Equal(o.way.Loose, other.way.Loose)
}

// rootState returns the section of a preview about the observed root.
func (o *observed) rootState(root *pathsafe.Dir, name string) (RootState, error) {
	magic, err := root.FileSystem()
	if err != nil {
		return RootState{}, err
	}
	return RootState{
		Path: name, Real: o.way.Real, Owner: o.root.UID, State: o.state,
		Warnings: slices.Concat(warnings(o.way.Real, o.root), unsafeAt(magic)),
	}, nil
}

// unsafeAt warns of file systems on which all-or-nothing was not tested with power cuts, or is impossible.
func unsafeAt(magic int64) []string {
	names := map[int64]string{
		unix.MSDOS_SUPER_MAGIC: "vfat", unix.EXFAT_SUPER_MAGIC: "exfat", unix.NFS_SUPER_MAGIC: "NFS",
		unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.FUSE_SUPER_MAGIC: "FUSE",
	}
	name, ok := names[magic]
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("the restore root is on %s, where all-or-nothing after a power cut is not tested", name)}
}

// warnings returns the warnings about a restore root that is allowed.
func warnings(real string, st pathsafe.Stat) []string {
	const writers, sticky = 0o022, 0o1000
	found := []string{}
	if real == "/" {
		found = append(found, "the restore root is the root of the file system")
	}
	if bundle.IsInRuns(real) {
		found = append(found, "the restore root is, or is in, a directory of runs: restored files there could be taken for a run, or damage one")
	}
	if st.Perm&writers != 0 && st.Perm&sticky == 0 {
		found = append(found, fmt.Sprintf("other users can write in the restore root (mode %04o, no sticky bit), even while the commit runs", st.Perm))
	}
	return found
}
