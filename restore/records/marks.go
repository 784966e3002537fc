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
	count := func(root string, bundles ...string) error {
		was, err := state.WasRolledBack(root, bundles)
		if err == nil && !was {
			missing++
		}
		return err
	}
	var undone []string
	for _, sp := range r.savepoints.Retired {
		undone = append(undone, sp.Texts(action.BundleRoots)...)
	}
	slices.Sort(undone)
	undone = slices.Compact(undone)
	for _, id := range undone {
		if err := count("", id); err != nil {
			return 0, err
		}
	}
	if ended, _ := r.log.TakenBack(); slices.Contains(ended, audit.RootText(root)) {
		if err := count(root); err != nil {
			return 0, err
		}
	}
	if missing == 0 {
		return 0, nil
	}
	return missing, state.MarkRolledBack(root, undone)
}

// Acceptances returns a function that reports whether the audit log has that a person has accepted the
// loss of a record, by its ID. It reads the log once, when it is first called. Of a log that cannot be read
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
