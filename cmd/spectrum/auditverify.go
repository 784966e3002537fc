package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// auditVerify compares the audit log with the other records. Commits may be running meanwhile.
type auditVerify struct {
	*savepointCommand
	records *records.Records // as they were read last
}

func verifyAudit(ctx context.Context, s *savepointCommand) (err error) {
	v := &auditVerify{savepointCommand: s}
	if v.records, err = records.Read(s.state, ""); err != nil {
		return err
	}
	if damaged := v.records.DamagedSavepoints(); len(damaged) > 0 {
		return damaged[0]
	}
	misfits := v.records.Misfits()
	unlogged, err := v.unlogged(misfits.Unlogged)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(misfits.Unsealed, func(m audit.Misfit) bool { return m.Fault != audit.NotReached }) {
		return v.rewritten(misfits.Unsealed)
	}
	if len(unlogged) == 0 { // else that is reported already
		unlogged = misfits.Unsealed
	}
	if len(unlogged)+len(misfits.Unkept) == 0 {
		if err := v.bornOut(ctx); err != nil {
			return err
		}
	}
	return v.report(unlogged, misfits.Unkept)
}

// bornOut requires that all that is kept of what was done bears each other out. It reads every
// manifest.
func (v *auditVerify) bornOut(ctx context.Context) error {
	store, err := statecheck.Snapshots(v.state)
	if err != nil {
		return err
	}
	defer store.Close()
	flaws, in, err := statecheck.SnapshotFlaws(ctx, v.state, store, "", snapshot.Budget{Manifests: math.MaxInt64})
	if err != nil {
		return err
	}
	flaws = slices.DeleteFunc(flaws, func(f statecheck.Flaw) bool { return f.IsContent })
	more, err := statecheck.HistoryFlaws(ctx, v.state, "", in.Signed)
	if flaws = append(flaws, more...); err != nil || len(flaws) == 0 {
		return err
	}
	return historyDamaged(flaws)
}

// historyDamaged is the verdict on a history that does not hold.
func historyDamaged(flaws []statecheck.Flaw) error {
	first, list := flaws[0], make([]any, 0, len(flaws))
	for _, f := range flaws {
		list = append(list, f.Fields())
	}
	err := errors.New(first.What)
	if n := len(flaws); n > 1 {
		err = fmt.Errorf("%w (and %s more: \"spectrum doctor\" lists all)", err, number(n-1))
	}
	return &codedError{code: codeHistory, err: err, details: map[string]any{"damaged": list}, hint: first.Steps()}
}

// unlogged returns those savepoints without an entry in the log that stay so. A commit publishes its
// savepoint, logs its end, and removes its journal, in this order: while the journal exists the entry may
// be missing, and if it has just been removed the log must be read again.
func (v *auditVerify) unlogged(found []audit.Misfit) ([]audit.Misfit, error) {
	suspects := slices.DeleteFunc(found, v.unfinished)
	if len(suspects) == 0 {
		return nil, nil
	}
	again, err := records.Read(v.state, "")
	if err != nil {
		return nil, err
	}
	v.records = again
	return slices.DeleteFunc(again.Misfits().Unlogged, func(m audit.Misfit) bool {
		return !slices.ContainsFunc(suspects, func(s audit.Misfit) bool { return s.ID == m.ID })
	}), nil
}

// unfinished reports whether a commit has no end because it is running, or was killed just before
// it was logged.
func (v *auditVerify) unfinished(m audit.Misfit) bool {
	if m.Fault != audit.NotEnded && m.Fault != audit.NotCompleted {
		return false
	}
	path, err := v.state.RootPath(m.Root)
	if err != nil {
		return false
	}
	if !action.HasUnfinished(path, m.Attempt) {
		return false
	}
	v.say("spectrum: the log has no end of the commit of savepoint %s yet; if that was killed, run \"spectrum recover %s%s\"", m.ID, foreignOption(path), shellQuote(path))
	return true
}

func (v *auditVerify) report(unlogged, unkept []audit.Misfit) error {
	if v.records.Head().Tail > 0 {
		v.say("spectrum: the log ends with %s of a line that was never finished; the next event names them", numberOf(v.records.Head().Tail, "byte"))
	}
	misfits := slices.Concat(unlogged, unkept)
	if len(misfits) > 0 {
		return v.misfit(len(unlogged) > 0, misfits)
	}
	h, n := v.records.Head(), v.records.Standing()
	fields := map[string]any{
		"code": "OK", "details": map[string]any{}, "entries": h.Sequence, "head": h.Hash, "ok": true,
		"open": h.Open, "savepoints": n, "tail_bytes": h.Tail, "torn": h.Tears,
	}
	if accepted := v.records.Accepted(); accepted > 0 {
		v.say("spectrum: the loss of %s was accepted: \"spectrum audit show\" shows by which user and when", numberOf(accepted, "record"))
		fields["accepted"] = accepted
	}
	return v.result(fmt.Sprintf("OK %s, head %s, %s", entriesText(h.Sequence), h.Hash, numberOf(n, "savepoint")), fields)
}

// rewritten is the verdict on a log that is another one than savepoints sign.
func (v *auditVerify) rewritten(misfits []audit.Misfit) error {
	first := misfits[0]
	err := fmt.Errorf("savepoint %s of attempt %s in %q signs entry %d of the audit log, which was replaced", first.ID, first.Attempt, first.Root, first.Entry)
	if first.Fault != audit.Rewritten {
		err = fmt.Errorf("savepoint %s of attempt %s in %q: %s", first.ID, first.Attempt, first.Root, first.Fault)
	}
	if n := len(misfits); n > 1 {
		err = fmt.Errorf("%w (and %s more)", err, number(n-1))
	}
	return &codedError{
		code: codeAuditRewritten, err: err, details: v.details(misfits),
		hint: fmt.Sprintf("the log was rewritten; its entries up to %d are as they were signed; check which users can write the state directory, and keep it as it is; %s", first.Fits, statecheck.AcceptText(v.state, first.Root)),
	}
}

// details are what a program needs of savepoints that do not fit.
func (v *auditVerify) details(misfits []audit.Misfit) map[string]any {
	list := make([]any, 0, len(misfits))
	for _, m := range misfits {
		one := map[string]any{"attempt": m.Attempt, "fault": string(m.Fault), "restore_root": jsonText(m.Root), "savepoint": m.ID}
		if m.Fault == audit.Rewritten || m.Fault == audit.NotReached {
			one["entry"], one["fits"] = m.Entry, m.Fits
		}
		list = append(list, one)
	}
	return map[string]any{"entries": v.records.Head().Sequence, "head": v.records.Head().Hash, "misfits": list, "savepoints": v.records.Standing()}
}

// misfit is the verdict on a log that has lost something (isCut), or on savepoints
// that were removed.
func (v *auditVerify) misfit(isCut bool, misfits []audit.Misfit) error {
	first := misfits[0]
	err := fmt.Errorf("savepoint %s of attempt %s in %q: %s", first.ID, first.Attempt, first.Root, first.Fault)
	if n := len(misfits); n > 1 {
		err = fmt.Errorf("%w (and %s more)", err, number(n-1))
	}
	e := &codedError{
		code: codeSavepointMissing, err: err, details: v.details(misfits),
		hint: "savepoints were removed: check which users can write the state directory, and keep it as it is; " + statecheck.AcceptText(v.state, first.Root),
	}
	if isCut {
		e.code = codeAuditCut
		e.hint = fmt.Sprintf("the end of the log was cut, or the log was replaced: it has %s now, head %s; check which users can write the state directory, and keep it as it is; %s", entriesText(v.records.Head().Sequence), v.records.Head().Hash, statecheck.AcceptText(v.state, first.Root))
	}
	return e
}

// entriesText is a number of entries as scripts read it, without commas.
func entriesText(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
