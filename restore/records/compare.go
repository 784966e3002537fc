package records

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// comparison is a comparison of records that is being made.
type comparison struct {
	*Records
	signed   []snapshot.Header
	flaws    []Flaw
	unlogged int // how many flaws are the newest snapshot of a root, which may be about to be logged
}

// Flaws compares the records of a root, or of all when root is "". Signed are the headers of manifests
// whose signatures fit. Another command may be at work: differences that it explains are looked at
// again, and are flaws if they stay. The error is an [*audit.DamageError] for a log that cannot be
// read.
func Flaws(ctx context.Context, state *statedir.Dir, root string, signed []snapshot.Header) ([]Flaw, error) {
	const (
		pause, looks = 100 * time.Millisecond, 4
		patience     = 5 * time.Second // a log is synced, and that waits for all that others have written
	)
	for i, begin := 1, time.Now(); ; i++ {
		r, err := Read(state, root)
		if err != nil {
			return nil, err
		}
		c := comparison{Records: r, signed: signed}
		err = c.compare()
		if err != nil || len(c.flaws) == 0 || i >= looks && (c.unlogged < len(c.flaws) || time.Since(begin) >= patience) {
			return c.flaws, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (c *comparison) compare() error {
	c.compareSnapshots()
	c.compareSavepoints()
	c.compareEnds()
	if err := c.compareMarks(); err != nil {
		return err
	}
	c.compareKeys()
	return nil
}

// concerns reports whether something of a root, by its name in the log, is compared: an unfinished
// action explains differences.
func (c *comparison) concerns(root string) bool { return c.isOf(root) && !c.open[root] }

func (c *comparison) isOf(root string) bool { return c.root == "" || root == audit.RootText(c.root) }

func (c *comparison) add(f Flaw) { c.flaws = append(c.flaws, f) }

// compareSnapshots compares the snapshots with the log and with each other.
func (c *comparison) compareSnapshots() {
	there := map[string]bool{}
	for _, snap := range c.snapshots {
		there[snap.ID] = true
	}
	isShut := func(d *snapshot.DamageError) bool {
		return errors.Is(d, fs.ErrPermission) && !strings.Contains(d.Path, "-")
	}
	if slices.ContainsFunc(c.damaged, isShut) { // what is in there is not known
		return
	}
	for _, d := range c.damaged { // which is damage, and not a loss
		there[d.Path[strings.LastIndexByte(d.Path, '-')+1:]] = true
	}
	for _, snap := range c.before.Snapshots() {
		_, pruned := c.log.KnowsSnapshot(snap.ID)
		if c.concerns(snap.Root) && !there[snap.ID] && !pruned {
			c.add(Flaw{
				Kind: SnapshotGone, ID: snap.ID, Root: snap.Root, Lost: []string{snap.ID},
				HasOthers: slices.ContainsFunc(c.snapshots, func(other snapshot.Header) bool { return audit.RootText(other.Root) == snap.Root }),
			})
		}
	}
	for _, b := range snapshot.Breaks(c.snapshots, c.damaged) {
		taken, pruned := c.log.KnowsSnapshot(b.Missing)
		if !pruned && !taken && c.concerns(audit.RootText(b.Header.Root)) { // what was taken is gone, as above
			f := Flaw{Kind: ChainBroken, Root: b.Header.Root, Break: b}
			if b.Missing != "" {
				f.Lost = []string{b.Missing}
			}
			c.add(f)
		}
	}
	newest := map[string]int64{}
	for _, snap := range c.snapshots {
		newest[snap.Root] = max(newest[snap.Root], snap.Sequence)
	}
	var marks []audit.Savepoint
	for _, snap := range c.snapshots {
		if taken, _ := c.log.KnowsSnapshot(snap.ID); !taken && c.concerns(audit.RootText(snap.Root)) {
			if snap.Sequence == newest[snap.Root] {
				c.unlogged++
			}
			c.add(Flaw{Kind: SnapshotUnlogged, ID: snap.ID, Root: snap.Root, Number: snap.Sequence, Lost: []string{snap.ID}})
		}
		marks = append(marks, audit.Savepoint{ID: snap.ID, Root: snap.Root, Mark: snap.Log})
	}
	for _, m := range c.log.Unsealed(marks) {
		c.add(Flaw{Kind: SnapshotUnsealed, Root: m.Root, Misfit: m, Lost: []string{m.ID}})
	}
}

// compareSavepoints compares the savepoints with the log. An action that has not ended explains no other
// log than the one that a savepoint signs.
func (c *comparison) compareSavepoints() {
	all := c.Misfits()
	for _, misfits := range [][]audit.Misfit{all.PutBack, all.NotUndone, all.RetiredLost, all.Unkept, all.Unlogged} {
		for _, m := range misfits {
			if c.concerns(audit.RootText(m.Root)) {
				c.addMisfit(m)
			}
		}
	}
	for _, m := range all.Unsealed {
		if c.isOf(audit.RootText(m.Root)) {
			c.addMisfit(m)
		}
	}
}

func (c *comparison) addMisfit(m audit.Misfit) {
	f := Flaw{Kind: SavepointMisfit, Root: m.Root, Misfit: m}
	if m.Fault != audit.PutBack {
		f.Lost = []string{m.ID}
	}
	c.add(f)
}

// compareEnds looks for actions that the log has no end of, though by the savepoints they were
// completed, and nothing is left of them in their roots: it was cut off.
func (c *comparison) compareEnds() {
	for _, id := range slices.Sorted(maps.Keys(c.begun)) {
		e := c.begun[id]
		isDone := slices.ContainsFunc(c.savepoints.Standing, func(sp savepoint.Savepoint) bool { return sp.Attempt() == id })
		if e.Kind == audit.RollbackBegin {
			isDone = action.AllRetired(&c.savepoints, e.Actions)
		}
		path, err := c.state.RootPath(audit.RootOf(e.Root))
		if err != nil || !isDone || !c.isOf(e.Root) {
			continue
		}
		if left, err := action.LeftoversAt(path); err != nil || slices.ContainsFunc(left, func(name string) bool { return strings.HasSuffix(name, id) }) {
			continue // it may go on there
		}
		c.add(Flaw{Kind: EndGone, ID: id, Root: e.Root, Path: path, Number: e.Sequence})
	}
}

// compareMarks compares the marks of rollbacks with the log and the savepoints.
func (c *comparison) compareMarks() error {
	gone, err := c.marksGone()
	if err != nil {
		return err
	}
	for _, f := range gone {
		if f.Kind == RootMarkGone && c.concerns(f.Root) || f.Kind == BundleMarkGone && len(c.open) == 0 {
			c.add(f)
		}
	}
	_, begun := c.log.TakenBack()
	var bundles []string
	for _, sp := range slices.Concat(c.savepoints.Standing, c.savepoints.Retired) {
		bundles = append(bundles, sp.Texts(action.BundleRoots)...)
	}
	if c.root != "" || len(c.open) > 0 || len(c.savepoints.Damaged) > 0 { // then a mark may be of another root, or of what cannot be read
		return nil
	}
	for i, root := range begun {
		begun[i] = audit.RootOf(root)
	}
	strange, err := c.state.StrangeMarks(begun, bundles)
	for _, name := range strange {
		c.add(Flaw{Kind: StrangeMark, ID: name})
	}
	return err
}

// hasOwnKey reports whether a snapshot was signed by a key of its own because the host's key was
// not usable ([snapshot.Request.AnyKey]): the log has it, and the host's key has signed the one
// before it and the one after it, if any.
func (c *comparison) hasOwnKey(snap snapshot.Header) bool {
	before, after := "", ""
	for _, other := range c.signed {
		switch {
		case other.Root != snap.Root:
		case other.Sequence == snap.Sequence-1:
			before = other.Signer
		case other.Sequence == snap.Sequence+1:
			after = other.Signer
		}
	}
	taken, _ := c.log.KnowsSnapshot(snap.ID)
	key, err := bundle.LoadKey(c.state.HostKey())
	return taken && err == nil && before == key.ValidatorID() && (after == "" || after == before)
}

// compareKeys compares the signers of records with the host's key.
func (c *comparison) compareKeys() {
	signers := map[string]*Flaw{}
	of := func(signer, root, id string) *Flaw {
		f := signers[signer]
		if f == nil {
			f = &Flaw{Kind: OtherSigner, ID: signer}
			signers[signer] = f
		}
		f.Root, f.Lost = root, append(f.Lost, id)
		return f
	}
	for _, snap := range c.signed {
		if !c.hasOwnKey(snap) && !c.log.Accepts(snap.ID) {
			of(snap.Signer, snap.Root, snap.ID).Snapshots++
		}
	}
	for _, sp := range slices.Concat(c.savepoints.Standing, c.savepoints.Retired) {
		if !c.log.Accepts(sp.ID()) {
			of(sp.ValidatorID(), sp.Root(), sp.ID()).Savepoints++
		}
	}
	if len(signers) == 0 {
		return
	}
	host := ""
	key, err := bundle.LoadKey(c.state.HostKey())
	switch {
	case err == nil:
		host = key.ValidatorID()
	case !errors.Is(err, fs.ErrNotExist):
		c.add(Flaw{Kind: KeyUnusable, Err: err})
		return
	}
	for _, signer := range slices.Sorted(maps.Keys(signers)) {
		if signer != host {
			signers[signer].Host = host
			c.add(*signers[signer])
		}
	}
}
