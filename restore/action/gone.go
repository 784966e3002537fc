package action

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

var errGone = errors.New("the audit log has no record that it was pruned; \"spectrum doctor\" shows more")

// goneSince returns the snapshots of the root that a person or a timer has taken after the target of an
// emergency rollback, and that are not in the store, though they were not pruned: the newest first.
// As far as the audit log, or the store, cannot be read, none is known to be gone.
func (r *Root) goneSince(target *snapshot.Snapshot) (gone []snapshot.Passed) {
	if r.history.log == nil {
		return nil
	}
	there := map[string]bool{}
	all, damaged, err := r.Snapshots().Survey(r.Path())
	if err != nil {
		return nil
	}
	for _, h := range all {
		there[h.ID] = true
	}
	for _, d := range damaged { // which is named as that
		there[d.Path[strings.LastIndexByte(d.Path, '-')+1:]] = true
	}
	_, _ = r.history.log.Read(func(e audit.Entry) error {
		is := func(p snapshot.Passed) bool { return p.Header.ID == e.Snapshot }
		switch {
		case audit.RootOf(e.Root) != r.Path():
		case target != nil && e.Kind == audit.SnapshotTaken && e.Snapshot == target.ID():
			gone = nil // what was taken before it is not passed over
		case e.Kind == audit.SnapshotPruned:
			gone = slices.DeleteFunc(gone, is)
		case e.Kind == audit.SnapshotTaken && !there[e.Snapshot] && !slices.ContainsFunc(gone, is):
			damage := &snapshot.DamageError{Path: "roots", Err: errGone}
			gone = append(gone, snapshot.Passed{Header: snapshot.Header{ID: e.Snapshot, Time: e.Time}, Damage: []*snapshot.DamageError{damage}, Gone: true})
		}
		return nil
	})
	slices.Reverse(gone)
	return gone
}

// KeptBefore returns the files in the root that commits have kept there, since another process had what
// they replaced or removed open to write to; as paths in the root.
func (r *Root) KeptBefore(ctx context.Context, commits []string) (files []string) {
	names, err := r.dir.Names()
	if err != nil {
		return nil // the rollback is done all the same
	}
	for _, name := range names {
		for _, commit := range commits {
			if staging.IsKept(name) && strings.Contains(name, commit) {
				files = append(files, filesIn(ctx, r.dir, name)...)
			}
		}
	}
	return files
}

// filesIn are what is in a directory and is not a directory, as far as that can be read.
func filesIn(ctx context.Context, dir *pathsafe.Dir, name string) (files []string) {
	own, err := dir.OpenDir(name)
	if err != nil {
		return nil
	}
	defer own.Close()
	_ = own.Walk(ctx, func(rel string, st pathsafe.Stat) error {
		if !st.Mode.IsDir() {
			files = append(files, path.Join(name, rel))
		}
		return nil
	})
	return files
}
