package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A Refusal is a rollback that could not begin because its root could not be entered, or its
// savepoint or snapshot could not be read. [Root.Refused] is for an entered root.
type Refusal struct {
	Root    string // as [Root.Path]
	Kind    audit.Rollback
	Commits []string // that were to be undone, as far as is known
	// Untaken: the named snapshot was never taken, see [Logged.IsUntaken]. To name it is a mistake.
	Untaken bool
	Why     error
}

// event is the entry of the audit log (rollback contract, section 11).
func (f *Refusal) event(id string) audit.Event {
	return audit.Event{Kind: audit.RollbackRefused, Action: id, Root: f.Root, Rollback: f.Kind, Actions: f.Commits, Reason: f.Why.Error()}
}

// Halts reports whether the refusal halts the root (section 12).
func (f *Refusal) Halts() bool { return !f.Untaken && IsBarring(f.Why) }

// Record logs the refusal, then halts the root if the refusal does that. It returns what could not be
// recorded: the root is halted also if the log cannot be written.
func (f *Refusal) Record(open OpenLog, bars Bars) (unrecorded []error) {
	id := uuid.NewString()
	if err := open.append(f.event(id)); err != nil {
		unrecorded = append(unrecorded, fmt.Errorf("that it could not begin could not be logged: %w", err))
	}
	if err := f.halt(id, bars); err != nil {
		unrecorded = append(unrecorded, err)
	}
	return unrecorded
}

// halt halts the root if the refusal does that. The ID is that of the rollback in the audit log.
func (f *Refusal) halt(id string, bars Bars) error {
	if bars == nil || !f.Halts() {
		return nil
	}
	return bars.Bar(f.Root, id, string(f.Kind), f.Why.Error())
}

// RefusalsOf returns the refusals of a rollback of the commit or snapshot with an ID, of which the
// savepoint or manifest cannot be read: one for each root that the damaged record is of. RootOf returns
// the root of a directory of records, "" for none. If a fault of the machine hides the record, the log
// has the ID only.
func RefusalsOf(id string, why error, rootOf func(key string) string, read ReadLog) (all []Refusal) {
	damaged := ""
	refusal := Refusal{Kind: audit.Session, Why: why}
	if unread, is := errors.AsType[*UnreadError](why); is {
		damaged, refusal.Commits = unread.Err.RunDir, []string{unread.Commit}
	} else if damage, is := errors.AsType[*snapshot.DamageError](why); is {
		damaged = damage.Path
		known, err := LoggedSnapshots(read)
		refusal.Untaken = err == nil && known.IsUntaken(damaged)
	}
	for key := range strings.SplitSeq(damaged, "/") {
		if refusal.Root = rootOf(key); refusal.Root != "" {
			all = append(all, refusal)
		}
	}
	if len(all) == 0 && machine.IsFault(why) {
		if refusal.Root, refusal.Untaken = read.rootOf(id), false; refusal.Root != "" {
			all = append(all, refusal)
		}
	}
	return all
}

// rootOf returns the root of the commit or snapshot with an ID, or the first digits of one; "" if the
// log has none, or if there are several.
func (read ReadLog) rootOf(id string) string {
	if len(id) < hexdigits.Least {
		return ""
	}
	found := map[string]bool{}
	_, _ = read(func(e audit.Entry) error {
		if e.Root != "" && (id == Latest || strings.HasPrefix(e.Action, id) || strings.HasPrefix(e.Snapshot, id)) {
			found[audit.RootOf(e.Root)] = true
		}
		return nil
	})
	if roots := slices.Collect(maps.Keys(found)); len(roots) == 1 {
		return roots[0]
	}
	return ""
}
