package records

import (
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// Records is what the state directory keeps of a restore root, or of all. Records of actions that
// have not ended may be incomplete.
type Records struct {
	state *statedir.Dir
	root  string // "" for all

	before, log *audit.Ledger          // read before, and after all the others
	head        audit.Head             // of the second
	open        map[string]bool        // roots in which an action has not ended, by the log
	begun       map[string]audit.Entry // the actions that have not ended, by their IDs
	savepoints  savepoint.Survey
	snapshots   []snapshot.Header
	damaged     []*snapshot.DamageError
}

// Read reads the records of a root, or of all when root is "". A part that is missing is empty, and is not
// created. The error is an [*audit.DamageError] for a log that cannot be read.
func Read(state *statedir.Dir, root string) (*Records, error) {
	r := &Records{state: state, root: root}
	var err error
	if r.before, err = r.ledger(); err != nil {
		return nil, err
	}
	if err := r.readSavepoints(); err != nil {
		return nil, err
	}
	if err := r.readSnapshots(); err != nil {
		return nil, err
	}
	if r.log, err = r.ledger(); err != nil {
		return nil, err
	}
	r.open = map[string]bool{}
	for _, root := range r.head.Open {
		r.open[root] = true
	}
	maps.DeleteFunc(r.begun, func(id string, _ audit.Entry) bool { return r.head.Open[id] == "" })
	return r, nil
}

func (r *Records) readSavepoints() error {
	if _, err := r.state.Root().Lstat("savepoints"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	place, err := r.state.Savepoints()
	if err != nil {
		return err
	}
	store := savepoint.In(place)
	defer store.Close()
	r.savepoints, err = store.Survey(r.root)
	return err
}

func (r *Records) readSnapshots() error {
	if _, err := r.state.Root().Lstat("snapshots"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	place, err := r.state.Snapshots()
	if err != nil {
		return err
	}
	store, err := snapshot.In(r.state.Root(), place)
	if err != nil {
		return err
	}
	defer store.Close()
	r.snapshots, r.damaged, err = store.Survey(r.root)
	return err
}

// ledger reads the log, and what has begun and where the log stands; a missing log is empty.
func (r *Records) ledger() (*audit.Ledger, error) {
	ledger := &audit.Ledger{}
	r.begun = map[string]audit.Entry{}
	f, err := r.state.ReadAuditLog()
	if errors.Is(err, fs.ErrNotExist) {
		r.head = audit.Head{}
		return ledger, nil
	}
	if err != nil {
		return nil, err
	}
	log := audit.New(f)
	defer log.Close()
	r.head, err = log.Read(func(e audit.Entry) error {
		if e.Kind == audit.CommitBegin || e.Kind == audit.RollbackBegin {
			r.begun[e.Action] = e
		}
		return ledger.Add(e)
	})
	return ledger, err
}

// Head returns where the log stands.
func (r *Records) Head() audit.Head { return r.head }

// Accepted returns how many records were accepted as lost.
func (r *Records) Accepted() int { return r.log.Accepted() }

// Standing returns how many savepoints are in the chains.
func (r *Records) Standing() int { return len(r.savepoints.Standing) }

// DamagedSavepoints returns the savepoints that cannot be read.
func (r *Records) DamagedSavepoints() []*savepoint.DamageError {
	return slices.Clone(r.savepoints.Damaged)
}

// Misfits are the savepoints that do not fit the log, and the other way round.
type Misfits struct {
	PutBack     []audit.Misfit // in a chain, and rolled back
	NotUndone   []audit.Misfit // retired, and not rolled back
	RetiredLost []audit.Misfit // rolled back, and gone
	Unkept      []audit.Misfit // completed, and gone
	Unlogged    []audit.Misfit // in a chain, and not completed by the log
	Unsealed    []audit.Misfit // they sign another log
}

// Misfits compares the savepoints with the log, those that were retired too. A savepoint that cannot be
// read is damaged and not lost.
func (r *Records) Misfits() Misfits {
	standing, retired := auditSavepoints(r.savepoints.Standing), auditSavepoints(r.savepoints.Retired)
	known := slices.Concat(standing, retired)
	readable := slices.Clone(known)
	for _, d := range r.savepoints.Damaged {
		for _, lost := range r.before.RetiredLost(known) {
			if lost.Attempt == d.Attempt {
				known = append(known, lost.Savepoint)
			}
		}
	}
	kept := slices.Clone(known)
	for _, d := range r.savepoints.Damaged {
		for _, m := range r.before.Unkept(nil) {
			if m.Attempt == d.Attempt {
				kept = append(kept, m.Savepoint)
			}
		}
	}
	return Misfits{
		PutBack: r.log.PutBack(standing), NotUndone: r.log.NotUndone(retired),
		RetiredLost: r.before.RetiredLost(known), Unkept: r.log.Excused(r.before.Unkept(kept)),
		Unlogged: r.log.Unlogged(standing), Unsealed: r.log.Unsealed(readable),
	}
}

func auditSavepoints(all []savepoint.Savepoint) []audit.Savepoint {
	list := make([]audit.Savepoint, len(all))
	for i, sp := range all {
		list[i] = action.SavepointOf(sp)
	}
	return list
}
