package audit

import (
	"maps"
	"slices"
	"strings"
)

// SavepointReason is the reason of a commit's end: it names the savepoint that was
// published for it.
func SavepointReason(id string) string { return savepointPrefix + id }

const savepointPrefix = "savepoint "

// Savepoint is what a signed savepoint has about its commit.
type Savepoint struct {
	ID      string
	Attempt string // the action of the commit, a UUID
	Root    string // absolute path of the restore root; in a [Misfit] of the log, as the log has it
	Mark    string // where the log stood, see [Log.Mark]; "" where the savepoint does not say
}

// A Ledger compares a log with signed savepoints. Both record the same commits, so it
// finds that the end of one of them was removed, as long as the other is whole. The zero Ledger is of an empty log.
type Ledger struct {
	acts   map[string]*act
	order  []string // of acts, as they came
	hashes []string // of the entries

	shots     map[string]*shot
	shotOrder []string        // of shots, as they came
	accepted  map[string]bool // records and contents that are lost, or that it does not bear out, as was accepted
	lostIn    map[string]bool // roots, as they stand in the log, of which that is so
	back      map[string]bool // roots, as they stand in the log, in which a rollback began: whether one has ended
}

// shot is what a log has about a snapshot.
type shot struct {
	root   string
	taken  bool
	pruned bool
}

// act is what a log has about an action.
type act struct {
	root      string
	begun     int64 // sequence number of its beginning; 0 for none
	ended     bool
	completed bool // one of its ends is that of a commit
	savepoint string
	undone    bool // a rollback of it has begun or ended, after its savepoint
	isBack    bool // a rollback of it has ended, and none has brought it back
}

// Add takes the next entry of the log, as [Read] hands it out.
func (l *Ledger) Add(e Entry) error {
	l.hashes = append(l.hashes, e.Hash)
	if e.Kind == LossAccepted {
		l.accept(e)
		return nil
	}
	a := l.of(e.Action, e.Root)
	switch {
	case e.Kind == CommitBegin:
		a.begun = e.Sequence
	case e.Kind == CommitEnd:
		id, _, _ := strings.Cut(strings.TrimPrefix(e.Reason, savepointPrefix), "; ") // the operator's reason may follow
		a.ended, a.completed, a.savepoint, a.undone, a.isBack = true, true, id, false, false
	case e.Kind.ends():
		a.ended, a.undone = true, a.undone || e.Kind == RolledBack
	}
	if e.Kind == RollbackBegin || e.Kind == RolledBack {
		for _, id := range e.Actions {
			l.of(id, e.Root).undone = true
		}
	}
	l.addBack(e)
	l.addShot(e)
	return nil
}

// accept notes what is lost of a loss that was accepted.
func (l *Ledger) accept(e Entry) {
	if l.accepted == nil {
		l.accepted, l.lostIn = map[string]bool{}, map[string]bool{}
	}
	l.lostIn[e.Root] = true
	for _, id := range e.Lost {
		l.accepted[id] = true
	}
}

// Accepts reports whether the log has that a person has accepted the loss of a savepoint, a snapshot
// or a content of a snapshot, by its digest.
func (l *Ledger) Accepts(id string) bool { return l.accepted[id] }

// Accepted returns the number of savepoints, snapshots and contents whose loss was accepted.
func (l *Ledger) Accepted() int { return len(l.accepted) }

// addBack notes what a rollback has done that was requested. The end of one that was done has
// the snapshot from before it; the end of one that failed or was killed has none.
func (l *Ledger) addBack(e Entry) {
	isDone := e.Kind == RolledBack && e.Snapshot != ""
	if e.Kind != RollbackBegin && !isDone {
		return
	}
	if l.back == nil {
		l.back = map[string]bool{}
	}
	l.back[e.Root] = l.back[e.Root] || isDone
	if !isDone {
		return
	}
	for _, id := range e.Actions {
		l.of(id, e.Root).isBack = true
	}
	for _, id := range e.Brings {
		a := l.of(id, e.Root)
		a.undone, a.isBack = false, false
	}
}

// addShot notes an entry about a snapshot.
func (l *Ledger) addShot(e Entry) {
	isTaken := e.Kind == SnapshotTaken || e.Kind.begins()
	if e.Snapshot == "" || !isTaken && e.Kind != SnapshotPruned {
		return
	}
	s := l.shots[e.Snapshot]
	if s == nil {
		if l.shots == nil {
			l.shots = map[string]*shot{}
		}
		s = &shot{root: e.Root}
		l.shots[e.Snapshot] = s
		l.shotOrder = append(l.shotOrder, e.Snapshot)
	}
	s.taken, s.pruned = s.taken || isTaken, s.pruned || !isTaken
}

func (l *Ledger) of(action, root string) *act {
	if l.acts == nil {
		l.acts = map[string]*act{}
	}
	a, known := l.acts[action]
	if !known {
		a = &act{root: root}
		l.acts[action] = a
		l.order = append(l.order, action)
	}
	return a
}

// Fault reports why a log and a savepoint do not fit together.
type Fault string

const (
	// NotBegun means that the log does not know the commit.
	NotBegun Fault = "the log has no entry of its commit"
	// NotEnded means that the log has the beginning of the commit and no end. A commit that
	// was killed, and not recovered since, looks the same.
	NotEnded Fault = "the log has no end of its commit"
	// NotCompleted means that by the log its commit has ended otherwise. That is what
	// the next command logs of a commit whose end was cut off.
	NotCompleted Fault = "the log does not have its commit as completed"
	// NotNamed means that the log has another savepoint for the commit, or none.
	NotNamed Fault = "the log names another savepoint of its commit"
	// NotInOrder means that the log knows the commit as an earlier one than the
	// savepoint before it.
	NotInOrder Fault = "in the log its commit began before that of the savepoint before it"
	// NotKept means that the log names the savepoint, and there is none.
	NotKept Fault = "the log names it, but it does not exist"
	// PutBack means that it stands in the chain, and its commit was rolled back.
	PutBack Fault = "the log has a rollback of its commit, but the chain still has it"
	// NotUndone means that it was retired, and the log has no rollback of its commit.
	NotUndone Fault = "it is retired, but the log has no rollback of its commit"
	// Rewritten means that the savepoint signs an entry, and the log has another one in
	// its place: it was written anew with its whole chain of hashes.
	Rewritten Fault = "it signs an entry of the log that was replaced"
	// NotReached means that the log ends before the entry that the savepoint signs.
	NotReached Fault = "it signs an entry of the log that is missing: the log ends before it"
	// NoMark means that what the savepoint signs of the log cannot be read.
	NoMark Fault = "the log position that it signs is invalid"
)

// Misfit is a savepoint that does not fit the log.
type Misfit struct {
	Savepoint
	Fault Fault
	Entry int64 // of [Rewritten] and [NotReached]: the first that no longer fits
	Fits  int64 // and the last before it that another savepoint signs as it is; 0 for none
}

// Unlogged are those savepoints that the log does not bear out. They are given in
// the order of their chains, those of a root together.
func (l *Ledger) Unlogged(savepoints []Savepoint) []Misfit {
	var misfits []Misfit
	last, root := int64(0), ""
	for _, sp := range savepoints {
		if sp.Root != root {
			last, root = 0, sp.Root
		}
		a := l.acts[sp.Attempt]
		if fault := a.fault(sp.ID, last); fault != "" && !l.accepted[sp.ID] {
			misfits = append(misfits, Misfit{Savepoint: sp, Fault: fault})
		}
		if a != nil {
			last = max(last, a.begun)
		}
	}
	return misfits
}

// fault says what the log lacks of a savepoint, whose predecessor's commit began
// with entry last; "" for nothing.
func (a *act) fault(id string, last int64) Fault {
	switch {
	case a == nil || a.begun == 0:
		return NotBegun
	case !a.ended:
		return NotEnded
	case !a.completed:
		return NotCompleted
	case a.savepoint != id:
		return NotNamed
	case a.begun < last:
		return NotInOrder
	}
	return ""
}

// Unkept are the savepoints that the log names, of commits that nothing has rolled
// back since, and that are not among these; in the order of the log.
func (l *Ledger) Unkept(savepoints []Savepoint) []Misfit {
	kept := make(map[string]bool, len(savepoints))
	for _, sp := range savepoints {
		kept[sp.ID] = true
	}
	var misfits []Misfit
	for _, action := range l.order {
		a := l.acts[action]
		if a.savepoint != "" && !a.undone && !kept[a.savepoint] && !l.accepted[a.savepoint] {
			misfits = append(misfits, Misfit{Savepoint: Savepoint{ID: a.savepoint, Attempt: action, Root: a.root}, Fault: NotKept})
		}
	}
	return misfits
}

// PutBack are those of the savepoints of the chains whose commit was rolled back, and that no
// rollback has brought back since.
func (l *Ledger) PutBack(standing []Savepoint) (misfits []Misfit) {
	for _, sp := range standing {
		if a := l.acts[sp.Attempt]; a != nil && a.isBack {
			misfits = append(misfits, Misfit{Savepoint: sp, Fault: PutBack})
		}
	}
	return misfits
}

// NotUndone are those of the retired savepoints of whose commit the log has no rollback.
func (l *Ledger) NotUndone(retired []Savepoint) (misfits []Misfit) {
	for _, sp := range retired {
		if a := l.acts[sp.Attempt]; (a == nil || !a.undone) && !l.accepted[sp.ID] {
			misfits = append(misfits, Misfit{Savepoint: sp, Fault: NotUndone})
		}
	}
	return misfits
}

// RetiredLost are the savepoints of commits that were rolled back and that are not among these,
// which are all that there are; in the order of the log.
func (l *Ledger) RetiredLost(savepoints []Savepoint) (misfits []Misfit) {
	kept := make(map[string]bool, len(savepoints))
	for _, sp := range savepoints {
		kept[sp.ID] = true
	}
	for _, action := range l.order {
		if a := l.acts[action]; a.savepoint != "" && a.isBack && !kept[a.savepoint] && !l.accepted[a.savepoint] {
			misfits = append(misfits, Misfit{Savepoint: Savepoint{ID: a.savepoint, Attempt: action, Root: a.root}, Fault: NotKept})
		}
	}
	return misfits
}

// KnowsSnapshot reports whether the log has a snapshot, or its loss was accepted,
// and whether it was pruned.
func (l *Ledger) KnowsSnapshot(id string) (taken, pruned bool) {
	if s := l.shots[id]; s != nil {
		return s.taken || l.accepted[id], s.pruned
	}
	return l.accepted[id], false
}

// A Shot is a snapshot that the log knows.
type Shot struct {
	ID   string
	Root string // as it stands in the log
}

// Snapshots returns the snapshots that were taken, that were not pruned, and the loss of which was
// not accepted, in the order of the log.
func (l *Ledger) Snapshots() (all []Shot) {
	for _, id := range l.shotOrder {
		if s := l.shots[id]; s.taken && !s.pruned && !l.accepted[id] {
			all = append(all, Shot{id, s.root})
		}
	}
	return all
}

// TakenBack returns the roots, as they stand in the log, in which a requested rollback has
// ended, sorted; and those in which one has at least begun, or in which it is accepted that the log
// does not say that.
func (l *Ledger) TakenBack() (ended, begun []string) {
	for _, root := range slices.Sorted(maps.Keys(l.back)) {
		begun = append(begun, root)
		if l.back[root] {
			ended = append(ended, root)
		}
	}
	return ended, slices.AppendSeq(begun, maps.Keys(l.lostIn))
}

// Excused are those misfits without the ones that a rollback in this log, which
// was read later, accounts for.
func (l *Ledger) Excused(misfits []Misfit) []Misfit {
	return slices.DeleteFunc(slices.Clone(misfits), func(m Misfit) bool {
		a := l.acts[m.Attempt]
		return m.Fault == NotKept && a != nil && a.undone
	})
}
