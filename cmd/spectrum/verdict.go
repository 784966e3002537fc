package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/cancelable"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/doctor"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/overlay"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"github.com/spectrumfs/spectrum/verify/store"
	"golang.org/x/sys/unix"
)

// This file is the one place where an error gets its exit status, its code, its details and its
// next steps.

// The exit statuses (a promise to scripts).
const (
	statusOK          = 0
	statusRejected    = 1
	statusHalted      = 3
	statusApproval    = 4
	statusPolicy      = 5
	statusUsage       = 64
	statusUnavailable = 69
	statusInternal    = 70
	statusMachine     = 74
	statusInterrupted = 130
)

// A verdict is what a command makes of an error. What is zero is not decided.
type verdict struct {
	status  int
	code    code                   // in JSON
	law     func() ([]byte, error) // the JSON of a law, in place of code and details
	details map[string]any         // in JSON
	hints   []string
	isOfRun bool // a view of many runs shows it, and not that run
}

// isFixable reports whether a damaged record can be the cause: an exit status that a repair of the
// state directory may change.
func (v *verdict) isFixable() bool { return v.status == statusMachine || v.isRejected() }

// isRejected reports whether the verdict is about the request, and not about the machine.
func (v *verdict) isRejected() bool { return v.status == statusRejected }

// verdictOf applies the rows of the table in order. A later row does not change what an earlier row
// has decided.
func verdictOf(err error) verdict {
	var v verdict
	if err == nil {
		return v
	}
	for _, row := range verdicts {
		of := row(err)
		if v.status == 0 {
			v.status = of.status
		}
		if v.code == "" && v.law == nil {
			v.code, v.law = of.code, of.law
		}
		if v.details == nil {
			v.details = of.details
		}
		if v.hints == nil {
			v.hints = of.hints
		}
		v.isOfRun = v.isOfRun || of.isOfRun
	}
	if hints := systemHints(err, v.status); hints != nil || v.status == statusInterrupted { // an interrupted user needs no hint
		v.hints = hints
	}
	return v
}

// systemHints are the next steps where the system, or a server of another user, is in the
// way: they count before all others.
func systemHints(err error, status int) []string {
	_, unfinished := errors.AsType[*action.UnfinishedError](err)
	mounted, onMount := errors.AsType[*fusemount.MountpointError](err)
	owned, isOwned := errors.AsType[*fusemount.NotOwnError](err)
	foreign, isForeign := errors.AsType[*served.ForeignError](err)
	done, isDone := errors.AsType[*doneError](err)
	part, isPart := errors.AsType[*statedir.PartError](err)
	isPart = isPart && !machine.IsFault(part)
	far, isFar := errors.AsType[*store.FaultError](err)
	switch {
	case status == statusInterrupted:
		if left, is := errors.AsType[*leftError](err); is {
			return left.hints
		}
		return nil
	case isDone:
		return done.hints()
	case isFar:
		return storeHints(far)
	case onMount && isOwned:
		return []string{notOwnHint(mounted.Path, owned.UserID)}
	case isForeign:
		return []string{words.Served(foreign)}
	case isPart && status == statusMachine:
		return partHints(part)
	case status == statusMachine && unfinished:
		return slices.Concat(machineHints(err), []string{"then \"spectrum recover RESTORE_ROOT\" continues from here, and so does the next command on that root; the root is not halted"})
	case status == statusMachine:
		return slices.Concat(machineHints(err), lackHints(err))
	}
	return nil
}

// on is a row for a type of errors.
func on[E error](say func(E) verdict) func(error) verdict {
	return func(err error) verdict {
		if e, ok := errors.AsType[E](err); ok {
			return say(e)
		}
		return verdict{}
	}
}

// at is a row for one error.
func at(target error, v verdict) func(error) verdict {
	return func(err error) verdict {
		if errors.Is(err, target) {
			return v
		}
		return verdict{}
	}
}

// verdicts is the table. Errors are often wrapped in others: rows are in order of precedence. A row
// decides several fields at once, except where one field has another precedence: the JSON of a law
// before all but a code of our own, and the operator's next step before the reason.
var verdicts = []func(error) verdict{
	on(func(e *childError) verdict { return verdict{status: e.status} }),
	on(func(e *runError) verdict {
		v := verdict{status: e.status, code: codeRun, hints: e.hints()}
		if e.layer != "" {
			v.details = map[string]any{"layer": jsonText(e.layer), "status": e.status}
		}
		return v
	}),
	on(func(e *overlay.UnavailableError) verdict {
		return verdict{status: statusUnavailable, code: codeOverlay, hints: []string{e.Hint}}
	}),
	on(func(e *unfitError) verdict {
		remedy := e.failed[0].Remedy
		if e.onlyMounting { // an error of mounting
			return verdict{details: e.details, hints: known(remedy)}
		}
		return verdict{status: statusRejected, code: codeUnfit, details: e.details, hints: known(cmp.Or(remedy, "fix what failed; \"spectrum doctor -v\" shows every check"))}
	}),
	on(func(e *codedError) verdict {
		return verdict{code: e.code, details: e.details, hints: slices.Concat(known(e.hint), e.hints)}
	}),
	on(func(e *restore.Failure) verdict {
		v := verdict{law: restore.ResultOf(e).JSON, isOfRun: e.Code != restore.InternalError}
		if e.Code == restore.RollbackFailed { // whatever it was that failed
			v.status = statusOfFailure(e)
		}
		return v
	}),

	// Roots that wait for an operator, and operators who interrupt.
	on(func(e *haltedError) verdict {
		return verdict{status: statusHalted, code: codeHalted, details: e.details(), hints: e.hints()}
	}),
	on(func(*staging.HaltError) verdict {
		return verdict{status: statusHalted, code: codeHalted, hints: append([]string{acknowledgeHint("RESTORE_ROOT")}, haltHints("RESTORE_ROOT")...)}
	}),
	on(func(e *failedError) verdict { return verdict{hints: e.halted.hints()} }),
	on(func(e *interruptedError) verdict {
		if len(e.done) == 0 {
			return verdict{}
		}
		return verdict{details: map[string]any{"done": jsonTexts(e.done)}}
	}),
	at(context.Canceled, verdict{status: statusInterrupted, code: codeInterrupted}),
	on(func(*codedError) verdict { return verdict{status: statusRejected} }),

	// Errors of the request.
	on(func(e *action.ForeignError) verdict {
		return verdict{status: statusApproval, code: codeForeign, details: foreignDetails(e), hints: []string{foreignHint(e)}}
	}),
	on(func(e *action.OtherRootError) verdict {
		return verdict{status: statusUsage, code: codeUsage, hints: []string{
			fmt.Sprintf("nothing was changed; leave out --foreign-root, or name %s with it if that is the intended directory", shellQuote(e.Real)),
		}}
	}),
	on(func(e *pathsafe.LinkError) verdict {
		return verdict{status: statusRejected, hints: []string{fmt.Sprintf("links of other users are not followed; if %s is the intended directory, name that path", shellQuote(e.Real))}}
	}),
	at(staging.ErrStagingReplaced, verdict{hints: []string{stageRivalHint}}),
	on(func(e *badConfig) verdict {
		if _, is := errors.AsType[*configError](e.err); is {
			return verdict{status: statusUsage, code: codeUsage, hints: e.hints()}
		}
		return verdict{hints: e.hints()}
	}),
	on(func(e *usageError) verdict { return verdict{status: statusUsage, code: codeUsage, hints: e.hints()} }),
	on(func(e *refusedError) verdict { return verdict{hints: []string{e.hint}} }),
	rejection(preview.ErrDecision, "conflicts have the numbers of the preview without this --decide"),
	rejection(store.ErrAmbiguous, "give more digits; \"spectrum ls STORE\" lists the runs"),
	rejection(savepoint.ErrAmbiguous, listsSavepoints),
	rejection(snapshot.ErrAmbiguous, listsSnapshots),
	rejection(action.ErrPartOnly, "\"spectrum snapshot take\" takes one of all of it"),
	on(func(*action.UnsealableError) verdict {
		return verdict{status: statusRejected, code: codeRefused, hints: []string{"\"spectrum snapshot restore ID\" brings it back here; \"spectrum snapshot list\" lists others"}}
	}),
	rejection(quarantine.ErrUnknown, listsHeld),
	rejection(quarantine.ErrAmbiguous, listsHeld),
	rejection(quarantine.ErrNotHeld, listsHeld),

	// Mounting.
	at(fusemount.ErrAllowOther, verdict{hints: []string{
		"root must put a line \"user_allow_other\" into /etc/fuse.conf; or mount without --allow-other", asksDoctor,
	}}),
	at(fusemount.ErrNoUser, verdict{hints: []string{
		doctor.NoUserRemedy, asksDoctor,
	}}),
	at(fusemount.ErrUnavailable, verdict{status: statusUnavailable, code: codeUnavailable, hints: []string{
		"install the fuse3 package, and run where /dev/fuse may be opened", asksDoctor,
		"without a view, \"spectrum ls\", \"spectrum cat\" and \"spectrum diff\" look into a candidate; all other commands work",
	}}),

	// Stores.
	on(func(e *store.WrongError) verdict {
		return verdict{status: statusRejected, code: codeStoreTampered, details: map[string]any{"object": jsonText(e.Key), "store": jsonText(e.Store)}, hints: []string{
			"none of the wrong bytes were used; where the run was sealed, run \"spectrum store check --read-data STORE\", which finds what is wrong, then push the run again",
		}}
	}),
	on(func(e *store.NoRunError) verdict {
		return verdict{status: statusRejected, code: codeStoreNoRun, details: map[string]any{"bundle_root": e.Root, "store": jsonText(e.Store)}, hints: []string{"\"spectrum ls STORE\" lists the runs of a store"}}
	}),
	on(func(e *store.UnfitError) verdict {
		hint := "seal its outputs as several runs, where it was sealed"
		if e.File != "" {
			hint = "put that file back as it was sealed, or seal the run again; \"spectrum preview\" of this run would be held"
		}
		return verdict{status: statusRejected, code: codeRefused, hints: []string{hint}}
	}),
	on(func(e *store.LockedError) verdict {
		return verdict{status: statusRejected, code: codeStoreLocked, hints: []string{"wait until it has ended; if it was killed, run \"spectrum store gc --unlock STORE\" when the grace period has passed"}}
	}),
	on(func(e *store.FaultError) verdict {
		return verdict{status: statusMachine, code: codeStoreFault, details: map[string]any{"object": jsonText(e.Key), "store": jsonText(e.Store)}}
	}),

	// Sealing.
	at(gitbase.ErrNoGit, verdict{status: statusUnavailable, code: codeNoGit, hints: []string{"install git, or name a copy of the project as it was with --base DIR"}}),

	// Approvals, and the release of a halted root. A wrapping error knows the next step better.
	on(func(e *againError) verdict { return verdict{hints: []string{"make a new preview: " + e.command}} }),
	on(func(e *acknowledgementError) verdict { return verdict{details: e.details(), hints: e.hints()} }),
	on(func(e *lossError) verdict { return verdict{details: e.details(), hints: e.hints()} }),
	on(func(e *approvalRequired) verdict {
		return verdict{details: map[string]any{"preview_id": e.id, "statement": e.recommended}, hints: e.hints()}
	}),
	on(func(e *slipOfForm) verdict {
		return verdict{status: statusApproval, code: codeApprovalUnfit, hints: e.hints()}
	}),
	on(func(e *action.VagueError) verdict { return verdict{hints: vagueHints(e)} }),
	approval(errApprovalRequired, codeApprovalRequired, againHint, "then \"spectrum commit --preview ID --approve STATEMENT\"; the preview recommends a statement"),
	approval(preview.ErrVague, codeApprovalVague, againHint),
	approval(preview.ErrUnfit, codeApprovalUnfit, lookHint),
	approval(preview.ErrUndecided, codeApprovalIncomplete, lookHint),
	approval(preview.ErrStale, codeApprovalStale, againHint),
	approval(preview.ErrUsed, codeApprovalUsed, againHint),
	approval(preview.ErrForged, codeApprovalInvalid, againHint),
	approval(errNotShown, codeApprovalStale, againHint),
	approval(errNoStatement, codeAcknowledgementRequired, againHint),
	approval(errOtherStatement, codeAcknowledgementUnfit, againHint),
	approval(errNotRevoked, codeAcknowledgementRequired, "run it again, and type revoke or the first digits of the validator; in a script --reason is enough"),
	approval(errNotPruned, codeAcknowledgementRequired, "run it again and answer y, or name one restore root"),

	// The operator's policy.
	on(func(e *notTrustedError) verdict {
		if e.standing == trust.Revoked {
			return verdict{status: statusPolicy, code: codeRevoked, hints: e.hints()}
		}
		return verdict{status: statusPolicy, code: codeNotTrusted, hints: e.hints()}
	}),
	on(func(e *bundle.HolesError) verdict {
		return verdict{details: map[string]any{"limit": int64(bundle.MaxHoles), "path": jsonText(e.Path), "size": e.Size}}
	}),
	at(verify.ErrHoles, verdict{status: statusPolicy, code: codeHoles, isOfRun: true, hints: []string{
		"seal files without such holes, or leave them out; this is a limit of the program, not a verdict of a law",
	}}),
	at(existing.ErrHoles, verdict{status: statusPolicy, code: codeSparse, hints: []string{sparseHint}}),
	on(func(e *preview.UntrustedError) verdict {
		if errors.Is(e, preview.ErrRevoked) {
			return verdict{hints: []string{revokedHint(e.Reason)}}
		}
		return verdict{hints: []string{trustHint(e.ValidatorID)}}
	}),
	at(preview.ErrRevoked, verdict{status: statusPolicy, code: codeRevoked, hints: []string{revokedHint("")}}),
	at(preview.ErrQuarantined, verdict{status: statusPolicy, code: codeQuarantined, hints: []string{trustHint("VALIDATOR_ID")}}),
	on(func(e *quarantine.HeldError) verdict {
		return verdict{status: statusPolicy, code: codeQuarantined, hints: heldHints(e.Source)}
	}),
	on(func(*quarantine.RecordError) verdict {
		return verdict{status: statusPolicy, code: codeQuarantined, hints: []string{
			"repair or remove the named record; removing it releases the candidate, and \"spectrum audit show\" shows what held it",
		}}
	}),
	at(restore.ErrBlockTable, verdict{status: statusPolicy, code: codeQuarantined, isOfRun: true, hints: []string{
		"without --lazy everything is read, and no block table is required; or ask the signer for a bundle with a correct one",
	}}),
	at(errRevoked, verdict{status: statusPolicy, code: codeQuarantined, hints: []string{
		"to look at it, mount it again; \"rolled_back\" in its .spectrum/status.json keeps the fact",
	}}),

	// The laws, and errors of a restore root or a view.
	on(func(e *verify.Reject) verdict { return verdict{hints: known(rejectHints[e.Code])} }),
	on(func(e *restore.Failure) verdict { return verdict{status: statusOfFailure(e), hints: failureHintsOf(e)} }),
	at(snapshot.ErrHoles, verdict{status: statusPolicy, code: codeSparse, hints: []string{sparseHint}}),
	on(func(e *verify.Reject) verdict { return verdict{status: statusRejected, law: e.JSON, isOfRun: true} }),
	on(func(e *staging.BusyError) verdict {
		hint := "wait for it with --lock-timeout 5m"
		if !errors.Is(e, pathsafe.ErrLocked) {
			hint = lockHint
		}
		return verdict{status: statusRejected, code: codeLocked, hints: []string{hint}}
	}),
	at(errTampered, verdict{status: statusRejected, code: codeTampered, hints: []string{
		".spectrum/status.json in the view names what does not match; get those files again from where they were sealed, then mount again",
	}}),
	on(func(*audit.DamageError) verdict {
		return verdict{status: statusRejected, code: codeAuditDamaged, hints: []string{statecheck.LogRemedy}}
	}),
	at(fusefs.ErrBadTree, verdict{status: statusRejected, code: codeRefused, isOfRun: true, hints: []string{
		"\"spectrum preview --restore-root DIR RUN_DIR\" shows such a candidate without a view",
	}}),
	at(verify.ErrDirectories, verdict{status: statusRejected, code: codeRefused, isOfRun: true, hints: []string{
		"seal less deep paths, or fewer of them in one run; this is a limit of the program, not a verdict of a law",
	}}),
	func(err error) verdict {
		if _, is := errors.AsType[*refusedError](err); !is || machine.IsFault(err) || errors.Is(err, served.ErrForeign) || errors.Is(err, fusemount.ErrNotOwn) {
			return verdict{}
		}
		return verdict{status: statusRejected, code: codeRefused}
	},

	// The machine, and last our own bugs.
	func(err error) verdict {
		for _, stuck := range []error{fusemount.ErrNotOwn, cancelable.ErrStuck, fusemount.ErrStuck, fusemount.ErrHidden, fusemount.ErrMoved} {
			if errors.Is(err, stuck) {
				return verdict{status: statusMachine, code: codeMachine}
			}
		}
		if machine.IsOrdinary(err) {
			return verdict{status: statusMachine, code: codeMachine}
		}
		return verdict{}
	},
	func(error) verdict {
		return verdict{status: statusInternal, code: codeInternal, details: map[string]any{}, hints: []string{
			"fix the problem above and retry; if no cause is given, this is a bug: report it with the output of \"spectrum version\"",
		}}
	},
}

const (
	againHint  = "make a new preview with \"spectrum preview --restore-root DIR RUN_DIR...\""
	lookHint   = "look at the preview again, and approve what it shows; it was not used up"
	sparseHint = "fill or shorten that file, or move it away, then retry; the limit is this program's"
)

func approval(err error, c code, hints ...string) func(error) verdict {
	return at(err, verdict{status: statusApproval, code: c, hints: hints})
}

// rejection is a row for an error of the request that has no code of its own.
func rejection(err error, hint string) func(error) verdict {
	return at(err, verdict{status: statusRejected, code: codeRefused, hints: []string{hint}})
}

func trustHint(validator string) string {
	return fmt.Sprintf("if you trust this validator, run \"spectrum trust add %s\", then this again; \"spectrum trust list\" lists the pinned and revoked validators", validator)
}

// isTooLong reports whether a path is over the limit of the system.
func isTooLong(err error) bool {
	return errors.Is(err, pathsafe.ErrTooLong) || errors.Is(err, unix.ENAMETOOLONG)
}

// statusOfFailure is the exit status of a verdict on a restore. Before anything is written a
// code of its own is a rejection, but for a root whose path is too long, or whose file system
// another user serves, or that cannot be written for a fault of the machine, such as a
// read-only file system. Afterwards the code names the step that failed, and the fault may be
// the machine's all the same.
func statusOfFailure(f *restore.Failure) int {
	written := f.Phase == restore.Execute || f.Phase == restore.Verify
	switch {
	case f.Code == restore.RollbackFailed:
		return statusHalted
	case f.Code == restore.InternalError && machine.IsOrdinary(f):
		return statusMachine
	case f.Code == restore.InternalError:
		return statusInternal
	case written && machine.IsFault(f), f.Code == restore.TargetNotWritable && machine.IsFault(f), f.Code == restore.TargetNotExist && (isTooLong(f) || errors.Is(f, served.ErrForeign)):
		return statusMachine
	}
	return statusRejected
}

// json is the one JSON value of a command that failed: a law's own format where a law
// spoke, else code and message.
func (v *verdict) json(err error) []byte {
	var raw []byte
	var failed error
	if v.law != nil {
		raw, failed = v.law()
	} else {
		raw, failed = canonjson.Marshal(map[string]any{
			"code": string(v.code), "details": v.details, "message": strings.ToValidUTF8(wordsOf(err), "\uFFFD"), "ok": false,
		})
	}
	if failed != nil {
		return []byte(`{"code":"INTERNAL_ERROR","details":{},"message":"","ok":false}`)
	}
	return raw
}

// rejectedJSON is REJECTED.json of a view of many runs: the verdict on a run. False: the error
// is none.
func rejectedJSON(err error) ([]byte, bool) {
	v := verdictOf(err)
	if !v.isOfRun {
		return nil, false
	}
	if reject, is := errors.AsType[*verify.Reject](err); is {
		raw, err := reject.JSON()
		return append(raw, '\n'), err == nil
	}
	if failure, is := errors.AsType[*restore.Failure](err); is && failure.Code != restore.InternalError {
		v.code, v.details = code(failure.Code), map[string]any{}
		if failure.Path != "" {
			v.details["path"] = jsonText(failure.Path)
		}
	}
	raw, err := canonjson.Marshal(map[string]any{"code": string(v.code), "details": v.details, "message": jsonText(err.Error()), "ok": false})
	return append(raw, '\n'), err == nil
}
