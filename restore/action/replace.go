package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"golang.org/x/sys/unix"
)

// targetsOf returns the existing files at the targets of a restore, which are displaced or
// stay, by their paths.
func targetsOf(r *restore.Restore) map[string]*restore.Target {
	all := map[string]*restore.Target{}
	for _, t := range r.Targets() {
		all[t.Path.String()] = t
	}
	return all
}

// goneOf are the paths that a restore would remove, and at which nothing is.
func goneOf(r *restore.Restore) (gone []pathsafe.Path) {
	for _, path := range r.Plan().Removes() {
		if r.Target(path.String()) == nil {
			gone = append(gone, path)
		}
	}
	return gone
}

// oldOf is what a target displaces; nil for nothing.
func oldOf(there *restore.Target) *pathsafe.Stat {
	if there == nil || there.Identical {
		return nil
	}
	st := there.Stat
	return &st
}

// copyUpReplaced copies displaced files up to the upper layer of an overlay, under the lock,
// before the moves are planned: a move would make each another inode.
func (r *Root) copyUpReplaced(ctx context.Context, change *staging.Change, rec *commitRecord) error {
	kind, err := r.dir.FileSystem()
	if err != nil || kind != unix.OVERLAYFS_SUPER_MAGIC || !rec.displaces() {
		return err
	}
	if err := r.Hold(ctx); err != nil {
		return err
	}
	var old []staging.Swap
	for _, s := range change.Swaps {
		if s.Old != nil {
			old = append(old, s)
		}
	}
	return r.lock.CopyUp(old)
}

// displaces reports whether a commit displaces anything.
func (rec *commitRecord) displaces() bool {
	for _, t := range rec.replaces {
		if !t.Identical {
			return true
		}
	}
	return false
}

// errNotApproved reports that the file to be displaced is not the approved one.
var errNotApproved = machine.Disturbed("it is no longer the file that was approved for replacement")

// errBack reports a file that was missing when it was checked, and exists again.
var errBack = machine.Disturbed("it was missing when it was examined, and exists again")

// checkSnapshot requires that the displaced files are in the snapshot before a commit as they
// were approved, so that a rollback restores them.
func (rec *commitRecord) checkSnapshot(before *snapshot.Snapshot) error {
	for _, path := range rec.scope {
		t := rec.replaces[path.String()]
		if t == nil || t.Identical {
			continue
		}
		e, err := before.At(path)
		if err != nil {
			return err
		}
		st := e.Stat()
		same := e.Type == snapshot.File && e.Digest == t.Digest && st.Size == t.Stat.Size && st.ModTime.Equal(t.Stat.ModTime)
		if !same || st.ID.Ino != t.Stat.ID.Ino {
			return &staging.Error{Step: staging.StepFinalize, Path: path.String(), Err: errNotApproved}
		}
	}
	return nil
}

// verifyIdentical is step 4.1 of the law for the files that stay as they are (7.4.2): each is read
// again, in path order. Where a file would be removed that was gone already, nothing may be.
func (r *Root) verifyIdentical(ctx context.Context, rec *commitRecord) error {
	for _, path := range rec.gone {
		if _, err := restore.Standing(r.dir, path); err == nil {
			return &staging.Error{Step: staging.StepFinalize, Path: path.String(), Err: errBack}
		}
	}
	var identical []*restore.Target
	for _, path := range slices.Sorted(maps.Keys(rec.replaces)) {
		if t := rec.replaces[path]; t.Identical {
			identical = append(identical, t)
		}
	}
	t, err := restore.VerifyIdentical(context.WithoutCancel(ctx), r.dir, identical)
	step := staging.StepVerify
	if errors.Is(err, fs.ErrNotExist) {
		step = staging.StepMissing
	}
	if err != nil {
		return &staging.Error{Step: step, Path: t.Path.String(), Err: fmt.Errorf("it stays as it was: %w", err)}
	}
	return nil
}

// failureOf returns the code of a failed commit. A change at a name to be replaced, after it
// was checked, is not the code of an existing target.
func (rec *commitRecord) failureOf(err error) error {
	var e *staging.Error
	if errors.As(err, &e) && e.Step == staging.StepConflict && rec.replaces[e.Path] != nil {
		moved := *e
		moved.Step = staging.StepFinalize
		return failureOf(&moved)
	}
	return failureOf(err)
}

// displaced is a file that commits have replaced: the one at a path when a snapshot was taken.
type displaced struct {
	from *snapshot.Snapshot
	path string
}

func (d *displaced) entry() snapshot.Entry { return d.from.Tree(d.path)[0] }

// needsRoot reports whether a replaced file cannot be restored because only root can make it
// as it was. This is recorded; the commit stays.
func (p *undoPlan) needsRoot(n *node) bool {
	if n.was == nil {
		return false
	}
	why := NeedsRoot(n.was.entry())
	if why != "" {
		p.left = append(p.left, Left{Path: n.path, Why: "the earlier file cannot be put back: " + why + ", and only root can give it that", Committed: true})
	}
	return why != ""
}

// An Edit is a file that one commit has made and that was edited before another commit, which
// is undone too, replaced it.
type Edit struct{ Path, Snapshot string } // the snapshot before that other commit has it

// noteEdit notes an edit between a commit that has made a file and the one, seen before, that has
// replaced it.
func (p *undoPlan) noteEdit(n *node, made *verify.Entry) {
	if n.was.entry().Digest != made.Digest {
		p.edits = append(p.edits, Edit{n.path, n.was.from.ID()})
	}
}

// comesBack plans that a replaced file is restored at a name that is free now.
func (p *undoPlan) comesBack(n *node) (visited, error) {
	at, err := pathsafe.Parse(n.path)
	return visited{swaps: []staging.Swap{{Path: at, Last: isArtifact(at, nil), New: staging.Tree{}}}}, err
}

// revive reports whether a directory that existed before the commits, and is gone, can be
// restored with the files in it that they have replaced or removed: all of these are in one
// snapshot. Its other entries are not restored, since no commit removed them.
func (p *undoPlan) revive(n *node) bool {
	all := n.displaced(nil)
	if n.made || len(all) == 0 {
		return false
	}
	at, err := pathsafe.Found(n.path)
	if err != nil {
		return false
	}
	var chosen []snapshot.Chosen
	for _, was := range all {
		path, err := pathsafe.Found(was.path)
		if err != nil || was.from != all[0].from {
			return false
		}
		chosen = append(chosen, snapshot.Chosen{Path: path, From: at})
	}
	only := all[0].from.Only(chosen)
	for _, e := range only.Tree(n.path) {
		if NeedsRoot(e) != "" {
			return false
		}
	}
	n.was = &displaced{only, n.path}
	return true
}

// displaced adds what commits have replaced or removed at the names below a node.
func (n *node) displaced(all []*displaced) []*displaced {
	for _, child := range n.sorted() {
		if child.was != nil {
			all = append(all, child.was)
		}
		all = child.displaced(all)
	}
	return all
}

// lost names what would come back beneath a directory that is not there any more. Where something else
// is in its place, that has to be moved away first; else the directory has to be made.
func (p *undoPlan) lost(n *node, inPlace bool) {
	for _, child := range n.sorted() {
		if child.was != nil {
			l := Left{Path: child.path, Why: "its directory no longer exists", Committed: true, Away: true, Missing: n.path}
			if inPlace {
				l.Why, l.Missing = "its directory was replaced", ""
			}
			l.Why += ", so the earlier file is not put back; the snapshot before the commit has it: " + child.was.from.ID()[:8]
			p.left = append(p.left, l)
		}
		p.lost(child, inPlace)
	}
}

// comes returns the entries that are restored at a path.
func (p *undoPlan) comes(path string) []snapshot.Entry {
	n := p.top.find("/" + path)
	if n == nil || n.was == nil {
		return nil
	}
	return n.was.from.Tree(n.was.path)
}

// partsOf returns the restored entries, by the snapshots that have them.
func (p *undoPlan) partsOf(swaps []staging.Swap) (froms []*snapshot.Snapshot, parts map[*snapshot.Snapshot][]snapshot.Part) {
	parts = map[*snapshot.Snapshot][]snapshot.Part{}
	for i, swap := range swaps {
		if swap.New != (staging.Tree{}) {
			continue
		}
		was := p.top.find("/" + swap.Path.String()).was
		if parts[was.from] == nil {
			froms = append(froms, was.from)
		}
		parts[was.from] = append(parts[was.from], snapshot.Part{Path: swap.Path, Name: strconv.Itoa(i)})
	}
	return froms, parts
}

// checkParts reads the entries to be restored, and writes nothing.
func (p *undoPlan) checkParts(ctx context.Context, store *snapshot.Store, swaps []staging.Swap) error {
	froms, parts := p.partsOf(swaps)
	for _, from := range froms {
		if err := store.CheckParts(ctx, from, parts[from]); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the restored entries from the snapshots that have them; it is nil if there are
// none.
func (p *undoPlan) fill(store *snapshot.Store, swaps []staging.Swap) fill {
	froms, parts := p.partsOf(swaps)
	if len(froms) == 0 {
		return nil
	}
	return func(ctx context.Context, dir *pathsafe.Dir) error {
		for _, from := range froms {
			if err := store.WriteParts(ctx, from, parts[from], dir); err != nil {
				return err
			}
		}
		return nil
	}
}
