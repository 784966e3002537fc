package audit

import (
	"slices"
	"time"
)

// Attempts is what a log has about attempts, as far as [Attempts.See] has seen its entries.
// The zero value has seen none.
type Attempts struct {
	Roots  map[string]string // by attempt: its restore root, as the log has it
	Halted []string          // those that were halted, and not ended since
	Newest time.Time         // the newest time in the log
	Entry  int64             // the number of the entry that has it
}

// See takes the next entry.
func (a *Attempts) See(e *Entry) {
	if a.Roots == nil {
		a.Roots = map[string]string{}
	}
	a.Roots[e.Action] = e.Root
	if e.Time.After(a.Newest) {
		a.Newest, a.Entry = e.Time, e.Sequence
	}
	switch e.Kind { // others neither halt nor end an attempt
	case Halted:
		if !slices.Contains(a.Halted, e.Action) {
			a.Halted = append(a.Halted, e.Action)
		}
	case CommitEnd, RolledBack, Released:
		a.Halted = slices.DeleteFunc(a.Halted, func(id string) bool { return id == e.Action })
	}
}
