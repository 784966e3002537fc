package statecheck

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// The next steps for a history that does not hold.
const (
	KeepState = "keep the state directory unchanged, and check which users can write there; a snapshot that verifies can still be restored"
	CutRemedy = "the end of the audit log was cut, or it was replaced: \"spectrum audit verify\" shows how much of it is proven; " + KeepState
)

// HistoryFlaws returns the flaws that [records.Flaws] finds, with the next steps.
func HistoryFlaws(ctx context.Context, state *statedir.Dir, root string, signed []snapshot.Header) ([]Flaw, error) {
	found, err := records.Flaws(ctx, state, root, signed)
	flaws := make([]Flaw, 0, len(found))
	for i := range found {
		flaw := historyFlaw(state, &found[i], root == "")
		if flaw.Lost = found[i].Lost; len(flaw.Lost) > 0 {
			flaw.Accept = AcceptText(state, found[i].Root)
		}
		flaws = append(flaws, flaw)
	}
	return flaws, err
}

// historyFlaw returns a flaw with its next step. Of all roots, recover is a step that has not been taken
// yet.
func historyFlaw(state *statedir.Dir, f *records.Flaw, ofAll bool) Flaw {
	at := func(name, remedy, format string, args ...any) Flaw {
		return Flaw{Path: filepath.Join(state.Path(), name), What: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	const log, marks = "audit.log", "rolled-back"
	switch m := f.Misfit; f.Kind {
	case records.SnapshotGone:
		others := "this root has no other snapshot"
		if f.HasOthers {
			others = "\"spectrum snapshot list\" lists the others"
		}
		return at("snapshots", "a commit that it was taken before cannot be undone by itself; "+others+"; "+KeepState,
			"snapshot %s of %q is in the audit log, was not pruned, and is gone", f.ID, f.Root)
	case records.ChainBroken:
		h := f.Break.Header
		return at("snapshots", KeepState, "snapshot %s of %q, number %d: %s", h.ID, h.Root, h.Sequence, f.Break.Why)
	case records.SnapshotUnlogged:
		remedy := CutRemedy
		if ofAll {
			remedy = "if the command that took it was killed, \"spectrum recover " + words.Shell(f.Root) + "\" logs it; else " + remedy
		}
		return at(log, remedy, "the audit log does not know snapshot %s of %q, number %d", f.ID, f.Root, f.Number)
	case records.SnapshotUnsealed:
		return at(log, CutRemedy, "snapshot %s of %q, entry %d: %s", m.ID, m.Root, m.Entry, m.Fault)
	case records.SavepointMisfit:
		return at("savepoints", misfitRemedy(m.Fault), "savepoint %s of commit %s in %q%s: %s", m.ID, m.Attempt, m.Root, entryOf(m), m.Fault)
	case records.EndGone:
		return at(log, "\"spectrum recover "+words.Shell(f.Path)+"\" logs it again; "+CutRemedy,
			"the audit log has no end of %s in %q, which was completed: by entry %d it has begun", f.ID, f.Root, f.Number)
	case records.RootMarkGone:
		return at(marks, markRemedy(state, f.Root), "the audit log has a rollback in %q, and the mark of it is gone", f.Root)
	case records.BundleMarkGone:
		return at(marks, markRemedy(state, f.Root), "a commit of bundle %s was rolled back, and the mark of it is gone", f.ID)
	case records.StrangeMark:
		return at(filepath.Join(marks, f.ID), CutRemedy, "there is a mark of a rollback that the audit log does not have: %q", f.ID)
	case records.KeyUnusable:
		return Flaw{Path: state.HostKey(), What: fmt.Sprintf("the host's key cannot be used: %v", f.Err), Remedy: HostKeyHint(state, f.Err)}
	case records.OtherSigner:
		const remedy = "if you replaced the key yourself, accept that and take a new snapshot of each restore root; otherwise restore the host's key from a backup; " + KeepState
		host := "no key of this host"
		if f.Host != "" {
			host = "this host's " + f.Host
		}
		what := fmt.Sprintf("%s and %s are signed by validator %s, and there is %s", words.Count(f.Snapshots, "snapshot"), words.Count(f.Savepoints, "savepoint"), f.ID, host)
		return Flaw{Path: state.HostKey(), What: what, Remedy: remedy}
	}
	panic(fmt.Sprintf("statecheck: records.Kind %d", f.Kind))
}

// entryOf names the entry of the log that a savepoint signs, if that is what does not fit.
func entryOf(m audit.Misfit) string {
	if m.Fault != audit.Rewritten && m.Fault != audit.NotReached {
		return ""
	}
	return fmt.Sprintf(", entry %d", m.Entry)
}

// misfitRemedy returns the next step for a savepoint that does not fit the log.
func misfitRemedy(fault audit.Fault) string {
	switch fault {
	case audit.PutBack:
		return "move it to the directory \"retired\" beside it, or go back to a snapshot; " + KeepState
	case audit.NotKept:
		return KeepState
	}
	return CutRemedy
}

// AcceptText returns how to accept the loss of records of a root.
func AcceptText(state *statedir.Dir, root string) string {
	return fmt.Sprintf("if it is in no backup, \"spectrum recover --acknowledge %s\" accepts the loss", words.Shell(pathOf(state, root)))
}

// markRemedy returns the next step where the mark of a rollback of a root is gone.
func markRemedy(state *statedir.Dir, root string) string {
	return fmt.Sprintf("check which users can write the state directory; then \"spectrum recover --acknowledge %s\" makes the mark again", words.Shell(pathOf(state, root)))
}

// pathOf returns where a root of the log is now, or was, if that is not known.
func pathOf(state *statedir.Dir, root string) string {
	path, err := state.RootPath(audit.RootOf(root))
	if err != nil {
		return audit.RootOf(root)
	}
	return path
}
