package statecheck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A history is what the state directory keeps of what was done: the audit log, the savepoints,
// the marks of rollbacks and the snapshots. Each of them can be compared with the others.
type history struct {
	state  *statedir.Dir
	root   string // "" for all
	signed []snapshot.Header

	before, log *audit.Ledger          // read before, and after all the others
	open        map[string]bool        // roots in which an action has not ended, by the log
	begun       map[string]audit.Entry // the actions that have not ended, by their ids
	all         savepoint.Survey
	snapshots   []snapshot.Header
	damaged     []*snapshot.DamageError
	flaws       []Flaw
	unlogged    int // those of the flaws that are the newest snapshot of a root, which may be about to be logged
}

// The next steps for a history that does not hold.
const (
	KeepState = "keep the state directory unchanged, and check which users can write there; a snapshot that verifies can still be restored"
	CutRemedy = "the end of the audit log was cut, or it was replaced: \"spectrum audit verify\" shows how much of it is proven; " + KeepState
)

// HistoryFlaws holds what is kept of a root, or of all when root is "", against each other.
// Signed are the headers of manifests whose signatures fit. Another command may be at work:
// what that could explain is looked at again, and counts when it stays. The error is an
// [*audit.DamageError] for a log that cannot be read.
func HistoryFlaws(ctx context.Context, state *statedir.Dir, root string, signed []snapshot.Header) ([]Flaw, error) {
	const (
		pause, looks = 100 * time.Millisecond, 4
		patience     = 5 * time.Second // a log is synced, and that waits for all that others have written
	)
	for i, begin := 1, time.Now(); ; i++ {
		h := &history{state: state, root: root, signed: signed}
		err := h.read()
		if err == nil {
			err = h.compare()
		}
		if err != nil || len(h.flaws) == 0 || i >= looks && (h.unlogged < len(h.flaws) || time.Since(begin) >= patience) {
			return h.flaws, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// read reads all of it. What is not there makes no directory.
func (h *history) read() (err error) {
	if h.before, _, err = h.ledger(); err != nil {
		return err
	}
	if h.has("savepoints") {
		store, err := Savepoints(h.state)
		if err != nil {
			return err
		}
		defer store.Close()
		if h.all, err = store.Survey(h.root); err != nil {
			return err
		}
	}
	if h.has("snapshots") {
		store, err := Snapshots(h.state)
		if err != nil {
			return err
		}
		defer store.Close()
		if h.snapshots, h.damaged, err = store.Survey(h.root); err != nil {
			return err
		}
	}
	var open map[string]string
	if h.log, open, err = h.ledger(); err != nil {
		return err
	}
	h.open = map[string]bool{}
	for _, root := range open {
		h.open[root] = true
	}
	maps.DeleteFunc(h.begun, func(id string, _ audit.Entry) bool { return open[id] == "" })
	return nil
}

func (h *history) has(name string) bool {
	_, err := h.state.Root().Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// ledger reads the log; where there is none, it is empty.
func (h *history) ledger() (*audit.Ledger, map[string]string, error) {
	ledger := &audit.Ledger{}
	f, err := h.state.ReadAuditLog()
	if errors.Is(err, fs.ErrNotExist) {
		return ledger, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	log := audit.New(f)
	defer log.Close()
	h.begun = map[string]audit.Entry{}
	head, err := log.Read(func(e audit.Entry) error {
		if e.Kind == audit.CommitBegin || e.Kind == audit.RollbackBegin {
			h.begun[e.Action] = e
		}
		return ledger.Add(e)
	})
	return ledger, head.Open, err
}

// concerns reports whether something of a root, by its name in the log, is to be compared: an
// unfinished action explains differences.
func (h *history) concerns(root string) bool {
	return (h.root == "" || root == audit.RootText(h.root)) && !h.open[root]
}

func (h *history) add(path, remedy, format string, args ...any) {
	h.flaws = append(h.flaws, Flaw{Path: path, What: fmt.Sprintf(format, args...), Remedy: remedy})
}

// isLost notes that the last flaw is of records of a root that are lost, or not borne out.
func (h *history) isLost(root string, ids ...string) {
	last := &h.flaws[len(h.flaws)-1]
	last.Lost, last.Accept = ids, AcceptText(h.state, root)
}

// AcceptText returns how to accept the loss of records of a root.
func AcceptText(state *statedir.Dir, root string) string {
	return fmt.Sprintf("if it is in no backup, \"spectrum recover --acknowledge %s\" accepts the loss", words.Shell(pathOf(state, root)))
}

// pathOf returns where a root of the log is now, or was, if that is not known.
func pathOf(state *statedir.Dir, root string) string {
	path, err := state.RootPath(audit.RootOf(root))
	if err != nil {
		return audit.RootOf(root)
	}
	return path
}

func (h *history) compare() error {
	h.compareSnapshots()
	h.compareSavepoints()
	h.compareEnds()
	if err := h.compareMarks(); err != nil {
		return err
	}
	return h.compareKeys()
}

// compareSnapshots holds the snapshots against the log and against each other.
func (h *history) compareSnapshots() {
	store := filepath.Join(h.state.Path(), "snapshots")
	there := map[string]bool{}
	for _, snap := range h.snapshots {
		there[snap.ID] = true
	}
	isShut := func(d *snapshot.DamageError) bool {
		return errors.Is(d, fs.ErrPermission) && !strings.Contains(d.Path, "-")
	}
	if slices.ContainsFunc(h.damaged, isShut) { // what is in there is not known
		return
	}
	for _, d := range h.damaged { // which is damage, and not a loss
		there[d.Path[strings.LastIndexByte(d.Path, '-')+1:]] = true
	}
	for _, snap := range h.before.Snapshots() {
		_, pruned := h.log.KnowsSnapshot(snap.ID)
		if h.concerns(snap.Root) && !there[snap.ID] && !pruned {
			others := "this root has no other snapshot"
			if slices.ContainsFunc(h.snapshots, func(other snapshot.Header) bool { return audit.RootText(other.Root) == snap.Root }) {
				others = "\"spectrum snapshot list\" lists the others"
			}
			h.add(store, "a commit that it was taken before cannot be undone by itself; "+others+"; "+KeepState,
				"snapshot %s of %q is in the audit log, was not pruned, and is gone", snap.ID, snap.Root)
			h.isLost(snap.Root, snap.ID)
		}
	}
	for _, b := range snapshot.Breaks(h.snapshots, h.damaged) {
		taken, pruned := h.log.KnowsSnapshot(b.Missing)
		if !pruned && !taken && h.concerns(audit.RootText(b.Header.Root)) { // what was taken is named above
			h.add(store, KeepState, "snapshot %s of %q, number %d: %s", b.Header.ID, b.Header.Root, b.Header.Sequence, b.Why)
			if b.Missing != "" {
				h.isLost(b.Header.Root, b.Missing)
			}
		}
	}
	newest := map[string]int64{}
	for _, snap := range h.snapshots {
		newest[snap.Root] = max(newest[snap.Root], snap.Sequence)
	}
	var marks []audit.Savepoint
	for _, snap := range h.snapshots {
		root := audit.RootText(snap.Root)
		if taken, _ := h.log.KnowsSnapshot(snap.ID); !taken && h.concerns(root) {
			if snap.Sequence == newest[snap.Root] {
				h.unlogged++
			}
			remedy := CutRemedy
			if h.root == "" { // recover asks for one root, after it has logged what it can
				remedy = "if the command that took it was killed, \"spectrum recover " + words.Shell(snap.Root) + "\" logs it; else " + remedy
			}
			h.add(filepath.Join(h.state.Path(), "audit.log"), remedy, "the audit log does not know snapshot %s of %q, number %d", snap.ID, snap.Root, snap.Sequence)
			h.isLost(snap.Root, snap.ID)
		}
		marks = append(marks, audit.Savepoint{ID: snap.ID, Root: snap.Root, Mark: snap.Log})
	}
	for _, m := range h.log.Unsealed(marks) {
		h.add(filepath.Join(h.state.Path(), "audit.log"), CutRemedy, "snapshot %s of %q, entry %d: %s", m.ID, m.Root, m.Entry, m.Fault)
		h.isLost(m.Root, m.ID)
	}
}

// compareSavepoints holds the savepoints against the log, those that were retired too.
func (h *history) compareSavepoints() {
	standing, retired := auditSavepoints(h.all.Standing), auditSavepoints(h.all.Retired)
	known := slices.Concat(standing, retired)
	for _, d := range h.all.Damaged { // which is damage, and not a loss
		for _, lost := range h.before.RetiredLost(known) {
			if lost.Attempt == d.Attempt {
				known = append(known, lost.Savepoint)
			}
		}
	}
	there := slices.Clone(known)
	for _, d := range h.all.Damaged {
		there = append(there, h.named(d.Attempt)...)
	}
	place := filepath.Join(h.state.Path(), "savepoints")
	for _, found := range []struct {
		misfits []audit.Misfit
		remedy  string
		isLost  bool
	}{
		{h.log.PutBack(standing), "move it to the directory \"retired\" beside it, or go back to a snapshot; " + KeepState, false},
		{h.log.NotUndone(retired), CutRemedy, true},
		{h.before.RetiredLost(known), KeepState, true},
		{h.log.Excused(h.before.Unkept(there)), KeepState, true},
		{h.log.Unlogged(standing), CutRemedy, true},
		{h.log.Unsealed(known), CutRemedy, true},
	} {
		for _, m := range found.misfits {
			if h.concerns(audit.RootText(m.Root)) {
				h.add(place, found.remedy, "savepoint %s of commit %s in %q: %s", m.ID, m.Attempt, m.Root, m.Fault)
				if found.isLost {
					h.isLost(m.Root, m.ID)
				}
			}
		}
	}
}

// compareEnds looks for actions that the log has no end of, though by the savepoints they were
// completed, and nothing is left of them in their roots: it was cut off.
func (h *history) compareEnds() {
	for _, id := range slices.Sorted(maps.Keys(h.begun)) {
		e := h.begun[id]
		isDone := slices.ContainsFunc(h.all.Standing, func(sp savepoint.Savepoint) bool { return sp.Attempt() == id })
		if e.Kind == audit.RollbackBegin {
			isDone = action.AllRetired(&h.all, e.Actions)
		}
		path, err := h.state.RootPath(audit.RootOf(e.Root))
		if err != nil || !isDone || h.root != "" && e.Root != audit.RootText(h.root) {
			continue
		}
		if left, err := leftovers(path); err != nil || slices.ContainsFunc(left, func(name string) bool { return strings.HasSuffix(name, id) }) {
			continue // it may go on there
		}
		h.add(filepath.Join(h.state.Path(), "audit.log"), "\"spectrum recover "+words.Shell(path)+"\" logs it again; "+CutRemedy,
			"the audit log has no end of %s in %q, which was completed: by entry %d it has begun", id, e.Root, e.Sequence)
	}
}

// leftovers are what attempts have left in the root at a path.
func leftovers(path string) ([]string, error) {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return staging.Leftovers(dir)
}

// named returns the savepoint that the log names for a commit.
func (h *history) named(attempt string) (all []audit.Savepoint) {
	for _, m := range h.before.Unkept(nil) {
		if m.Attempt == attempt {
			all = append(all, m.Savepoint)
		}
	}
	return all
}

func auditSavepoints(all []savepoint.Savepoint) []audit.Savepoint {
	list := make([]audit.Savepoint, len(all))
	for i, sp := range all {
		list[i] = action.SavepointOf(sp)
	}
	return list
}

// compareMarks holds the marks that something was rolled back against the log and the
// savepoints.
func (h *history) compareMarks() error {
	ended, begun := h.log.TakenBack()
	var bundles, undone []string
	for _, sp := range h.all.Standing {
		bundles = append(bundles, sp.Texts(action.BundleRoots)...)
	}
	place := filepath.Join(h.state.Path(), "rolled-back")
	for _, root := range ended {
		was, err := h.state.WasRolledBack(audit.RootOf(root), nil)
		if err != nil {
			return err
		}
		if !was && h.concerns(root) {
			h.add(place, h.markRemedy(root), "the audit log has a rollback in %q, and the mark of it is gone", root)
		}
	}
	for _, sp := range h.all.Retired {
		for _, id := range sp.Texts(action.BundleRoots) {
			undone = append(undone, id)
			was, err := h.state.WasRolledBack("", []string{id})
			if err != nil {
				return err
			}
			if !was && len(h.open) == 0 {
				h.add(place, h.markRemedy(sp.Root()), "a commit of bundle %s was rolled back, and the mark of it is gone", id)
			}
		}
	}
	if h.root != "" || len(h.open) > 0 || len(h.all.Damaged) > 0 { // then a mark may be of another root, or of what cannot be read
		return nil
	}
	for i, root := range begun {
		begun[i] = audit.RootOf(root)
	}
	strange, err := h.state.StrangeMarks(begun, append(bundles, undone...))
	for _, name := range strange {
		h.add(filepath.Join(place, name), CutRemedy, "there is a mark of a rollback that the audit log does not have: %q", name)
	}
	return err
}

// markRemedy is the next step where the mark of a rollback of a root is gone.
func (h *history) markRemedy(root string) string {
	return fmt.Sprintf("check which users can write the state directory; then \"spectrum recover --acknowledge %s\" makes the mark again", words.Shell(pathOf(h.state, root)))
}

// MakeMarks makes the marks again that rollbacks of a root have left, as far as the audit log and the
// savepoints that were undone show them, and returns how many were missing.
func MakeMarks(state *statedir.Dir, root string) (missing int, err error) {
	h := &history{state: state, root: root}
	if err := h.read(); err != nil {
		return 0, err
	}
	isMissing := func(root string, bundles ...string) error {
		was, err := state.WasRolledBack(root, bundles)
		if err == nil && !was {
			missing++
		}
		return err
	}
	var undone []string
	for _, sp := range h.all.Retired {
		undone = append(undone, sp.Texts(action.BundleRoots)...)
	}
	slices.Sort(undone)
	undone = slices.Compact(undone)
	for _, id := range undone {
		if err := isMissing("", id); err != nil {
			return 0, err
		}
	}
	if ended, _ := h.log.TakenBack(); slices.Contains(ended, audit.RootText(root)) {
		if err := isMissing(root); err != nil {
			return 0, err
		}
	}
	if missing == 0 {
		return 0, nil
	}
	return missing, state.MarkRolledBack(root, undone)
}

// hasOwnKey reports whether a snapshot was signed by a key of its own because the host's key was
// not usable ([snapshot.Request.AnyKey]): the log has it, and the host's key has signed the one
// before it and the one after it, if any.
func (h *history) hasOwnKey(snap snapshot.Header) bool {
	before, after := "", ""
	for _, other := range h.signed {
		switch {
		case other.Root != snap.Root:
		case other.Sequence == snap.Sequence-1:
			before = other.Signer
		case other.Sequence == snap.Sequence+1:
			after = other.Signer
		}
	}
	taken, _ := h.log.KnowsSnapshot(snap.ID)
	key, err := bundle.LoadKey(h.state.HostKey())
	return taken && err == nil && before == key.ValidatorID() && (after == "" || after == before)
}

// compareKeys holds what is signed against the host's key.
func (h *history) compareKeys() error {
	type count struct {
		snapshots, savepoints int
		root                  string // of the last
		lost                  []string
	}
	counts := map[string]*count{}
	of := func(signer string) *count {
		if counts[signer] == nil {
			counts[signer] = &count{}
		}
		return counts[signer]
	}
	for _, snap := range h.signed {
		if !h.hasOwnKey(snap) && !h.log.Accepts(snap.ID) {
			c := of(snap.Signer)
			c.snapshots, c.root, c.lost = c.snapshots+1, snap.Root, append(c.lost, snap.ID)
		}
	}
	for _, sp := range slices.Concat(h.all.Standing, h.all.Retired) {
		if !h.log.Accepts(sp.ID()) {
			c := of(sp.ValidatorID())
			c.savepoints, c.root, c.lost = c.savepoints+1, sp.Root(), append(c.lost, sp.ID())
		}
	}
	if len(counts) == 0 {
		return nil
	}
	const remedy = "if you replaced the key yourself, accept that and take a new snapshot of each restore root; otherwise restore the host's key from a backup; " + KeepState
	host := "no key of this host"
	key, err := bundle.LoadKey(h.state.HostKey())
	if err == nil {
		host = "this host's " + key.ValidatorID()
	} else if !errors.Is(err, fs.ErrNotExist) {
		h.add(h.state.HostKey(), HostKeyHint(h.state, err), "the host's key cannot be used: %v", err)
		return nil
	}
	signers := make([]string, 0, len(counts))
	for signer := range counts {
		signers = append(signers, signer)
	}
	slices.Sort(signers)
	for _, signer := range signers {
		if n := counts[signer]; signer != key.ValidatorID() {
			h.add(h.state.HostKey(), remedy, "%s and %s are signed by validator %s, and there is %s", words.Count(n.snapshots, "snapshot"), words.Count(n.savepoints, "savepoint"), signer, host)
			h.isLost(n.root, n.lost...)
		}
	}
	return nil
}
