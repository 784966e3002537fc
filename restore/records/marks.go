package records

import (
	"slices"
	"sync"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// MakeMarks makes the marks again that rollbacks of a root have left, as far as the audit log and the
// savepoints that were undone show them, and returns how many were missing. A mark only restricts: views
// and previews of what was rolled back stay invalid. The errors are those of [Read].
func MakeMarks(state *statedir.Dir, root string) (missing int, err error) {
	r, err := Read(state, root)
	if err != nil {
		return 0, err
	}
	gone, err := r.marksGone()
	if err != nil {
		return 0, err
	}
	var undone []string
	for _, sp := range r.savepoints.Retired {
		undone = append(undone, sp.Texts(action.BundleRoots)...)
	}
	counted := map[string]bool{}
	for _, f := range gone {
		if !counted[f.ID] && (f.Kind == BundleMarkGone || f.Root == audit.RootText(root)) {
			counted[f.ID] = true
			missing++
		}
	}
	if missing == 0 {
		return 0, nil
	}
	slices.Sort(undone)
	return missing, state.MarkRolledBack(root, slices.Compact(undone))
}

// marksGone returns the marks of rollbacks that are missing, whether or not another command is about to make
// them: those of roots that the log has, and those of bundles that the savepoints have which were undone.
func (r *Records) marksGone() (gone []Flaw, err error) {
	ended, _ := r.log.TakenBack()
	for _, root := range ended {
		was, err := r.state.WasRolledBack(audit.RootOf(root), nil)
		if err != nil {
			return nil, err
		}
		if !was {
			gone = append(gone, Flaw{Kind: RootMarkGone, Root: root})
		}
	}
	for _, sp := range r.savepoints.Retired {
		for _, id := range sp.Texts(action.BundleRoots) {
			was, err := r.state.WasRolledBack("", []string{id})
			if err != nil {
				return nil, err
			}
			if !was {
				gone = append(gone, Flaw{Kind: BundleMarkGone, Root: sp.Root(), ID: id})
			}
		}
	}
	return gone, nil
}

// Acceptances returns a function that reports whether the audit log has that a person has accepted the
// loss of a record, by its ID, or of a content of a snapshot, by its digest. It reads the log once, when it is first called. Of a log that cannot be read
// nothing is accepted.
func Acceptances(state *statedir.Dir) func(id string) bool {
	read := sync.OnceValue(func() *audit.Ledger {
		r := &Records{state: state}
		ledger, err := r.ledger()
		if err != nil {
			return &audit.Ledger{}
		}
		return ledger
	})
	return func(id string) bool { return read().Accepts(id) }
}
