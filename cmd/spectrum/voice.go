package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/restore/standing"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"golang.org/x/sys/unix"
)

// This file is the one voice to the user: what an error is called, which exit
// status it has, and what to do next.

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

// refusedError is input that was refused, by no law: the command tells why, and what
// to do next.
type refusedError struct {
	err  error
	hint string
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func refusedHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &refusedError{err, hint}
}

// codedError is a verdict with a code of its own, in no law.
type codedError struct {
	code    code
	details map[string]any
	hint    string
	err     error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// childError is a child process that has already said what went wrong.
type childError struct{ status int }

func (e *childError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// errApprovalRequired: a commit without an approved preview.
var errApprovalRequired = errors.New("approval required: nothing was written")

// approvalRequired is errApprovalRequired with the preview that could be
// approved.
type approvalRequired struct {
	id, recommended string
	command         string // that commits it
	words           string
}

func (a *app) approvalRequired(id, recommended string) *approvalRequired {
	words := errApprovalRequired.Error()
	if len(a.ended) > 0 { // something was written, of what was found unfinished
		words = "approval required: nothing of it was written"
	}
	return &approvalRequired{id, recommended, a.commandLine("commit", "--preview", id, "--approve", recommended), words}
}

// notApproved is the error for a preview that the operator has not approved when asked.
func (a *app) notApproved(id, recommended string) error {
	refused := a.approvalRequired(id, recommended)
	refused.words = strings.Replace(refused.words, "approval required", "not approved", 1)
	return refused
}

func (e *approvalRequired) Error() string { return e.words }
func (e *approvalRequired) Unwrap() error { return errApprovalRequired }

// finish reports how a command ended and returns the exit status.
func (a *app) finish(err error) int {
	status := statusOf(err)
	var child *childError
	if err == nil || errors.As(err, &child) {
		return status
	}
	if status == statusInterrupted {
		err = a.interrupted(err)
	}
	if a.json && !errors.Is(err, errRevoked) { // it has had its one value when it was ready
		_ = a.raw(errorJSON(err, status))
	}
	a.tell("spectrum: %s", oneLine(wordsOf(err)))
	for _, hint := range hintsOf(err) {
		a.tell("hint: %s", oneLine(a.truly(hint)))
	}
	return status
}

func statusOf(err error) int {
	var (
		child   *childError
		use     *usageError
		reject  *verify.Reject
		failure *restore.Failure
		refusal *refusedError
		halt    *staging.HaltError
		busy    *staging.BusyError
		damage  *audit.DamageError
		coded   *codedError
		held    *quarantine.HeldError
		strange *quarantine.RecordError
		foreign *action.ForeignError
		other   *action.OtherRootError
		signer  *notTrustedError
		linked  *pathsafe.LinkError
	)
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &child):
		return child.status
	case errors.As(err, &failure) && failure.Code == restore.RollbackFailed:
		return statusHalted
	case errors.As(err, &halt):
		return statusHalted
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	case errors.As(err, &coded):
		return statusRejected
	case errors.As(err, &use), errors.As(err, &other):
		return statusUsage
	case errors.Is(err, fusemount.ErrUnavailable):
		return statusUnavailable
	case isApproval(err), errors.As(err, &foreign):
		return statusApproval
	case errors.Is(err, verify.ErrHoles), errors.Is(err, standing.ErrHoles), errors.Is(err, preview.ErrQuarantined), errors.Is(err, preview.ErrRevoked), errors.As(err, &held), errors.As(err, &strange), errors.As(err, &signer), errors.Is(err, errRevoked):
		return statusPolicy
	case errors.As(err, &failure):
		return statusOfFailure(failure)
	case errors.Is(err, snapshot.ErrHoles):
		return statusPolicy
	case errors.As(err, &reject), errors.As(err, &busy), errors.As(err, &damage), errors.As(err, &linked), errors.Is(err, errTampered):
		return statusRejected
	case errors.As(err, &refusal) && !machine.IsFault(err) && !errors.Is(err, served.ErrForeign) && !errors.Is(err, fusemount.ErrNotOwn):
		return statusRejected
	case machine.IsOrdinary(err), errors.Is(err, fusemount.ErrNotOwn), errors.Is(err, errStuck), errors.Is(err, fusemount.ErrStuck), errors.Is(err, fusemount.ErrHidden), errors.Is(err, fusemount.ErrMoved):
		return statusMachine
	default:
		return statusInternal
	}
}

// isTooLong reports whether a path is over the limit of the system.
func isTooLong(err error) bool {
	return errors.Is(err, pathsafe.ErrTooLong) || errors.Is(err, unix.ENAMETOOLONG)
}

// statusOfFailure is the exit status of a verdict on a restore. Before anything is
// written, a code of its own is what the law asks for, but that a root cannot be there
// whose path is too long, or whose file system another user serves, and that it cannot be written for a fault of the machine, such as
// a read-only file system. Afterwards it names the step in which a restore failed, and the fault
// may be the machine's all the same.
func statusOfFailure(f *restore.Failure) int {
	written := f.Phase == restore.Execute || f.Phase == restore.Verify
	switch {
	case f.Code == restore.InternalError && machine.IsOrdinary(f):
		return statusMachine
	case f.Code == restore.InternalError:
		return statusInternal
	case written && machine.IsFault(f), f.Code == restore.TargetNotWritable && machine.IsFault(f), f.Code == restore.TargetNotExist && (isTooLong(f) || errors.Is(f, served.ErrForeign)):
		return statusMachine
	}
	return statusRejected
}

// approvalCodes are the errors of an approval, with the code that JSON shows.
var approvalCodes = []struct {
	err  error
	code code
}{
	{errApprovalRequired, codeApprovalRequired},
	{preview.ErrVague, codeApprovalVague},
	{preview.ErrUnfit, codeApprovalUnfit},
	{preview.ErrUndecided, codeApprovalIncomplete},
	{preview.ErrStale, codeApprovalStale},
	{preview.ErrUsed, codeApprovalUsed},
	{preview.ErrForged, codeApprovalInvalid},
	{errNotShown, codeApprovalStale},
	{errUnsaid, codeUnsaid},
	{errSaidOther, codeSaidOther},
}

func isApproval(err error) bool { return approvalCode(err) != "" }

func approvalCode(err error) code {
	for _, a := range approvalCodes {
		if errors.Is(err, a.err) {
			return a.code
		}
	}
	return ""
}

// errorJSON is the one JSON value of a command that failed: a law's own
// format where a law spoke, else code and message.
func errorJSON(err error, status int) []byte {
	var reject *verify.Reject
	var failure *restore.Failure
	var coded *codedError
	var raw []byte
	switch {
	case errors.As(err, &coded):
		raw, err = canonjson.Marshal(map[string]any{
			"code": string(coded.code), "details": coded.details, "message": strings.ToValidUTF8(wordsOf(err), "\uFFFD"), "ok": false,
		})
	case errors.As(err, &failure):
		raw, err = restore.ResultOf(err).JSON()
	case errors.As(err, &reject) && status == statusRejected: // else it is not the candidate that was rejected
		raw, err = reject.JSON()
	default:
		raw, err = canonjson.Marshal(map[string]any{
			"code": string(jsonCode(err, status)), "details": detailsOf(err), "message": strings.ToValidUTF8(wordsOf(err), "\uFFFD"), "ok": false,
		})
	}
	if err != nil {
		return []byte(`{"code":"INTERNAL_ERROR","details":{},"message":"","ok":false}`)
	}
	return raw
}

// detailsOf is what a program needs of an error to go on.
func detailsOf(err error) map[string]any {
	var shown *approvalRequired
	var unsaid *unsaidError
	var halted *haltedError
	var unfit *unfitError
	var end *interruptedError
	var foreign *action.ForeignError
	var holes *bundle.HolesError
	switch {
	case errors.As(err, &holes):
		return map[string]any{"limit": int64(bundle.MaxHoles), "path": jsonText(holes.Path), "size": holes.Size}
	case errors.As(err, &end) && len(end.done) > 0:
		return map[string]any{"done": jsonTexts(end.done)}
	case errors.As(err, &unfit):
		return unfit.details
	case errors.As(err, &foreign):
		return foreignDetails(foreign)
	case errors.As(err, &shown):
		return map[string]any{"preview_id": shown.id, "statement": shown.recommended}
	case errors.As(err, &unsaid):
		return unsaid.details()
	case errors.As(err, &halted):
		return halted.details()
	}
	return map[string]any{}
}

func jsonCode(err error, status int) code {
	if c := approvalCode(err); c != "" {
		return c
	}
	var busy *staging.BusyError
	if errors.As(err, &busy) {
		return codeLocked
	}
	var foreign *action.ForeignError
	if errors.As(err, &foreign) {
		return codeForeign
	}
	if errors.Is(err, errTampered) {
		return codeTampered
	}
	var damage *audit.DamageError
	if errors.As(err, &damage) {
		return codeAuditDamaged
	}
	if errors.Is(err, preview.ErrRevoked) {
		return codeRevoked
	}
	var signer *notTrustedError
	if errors.As(err, &signer) {
		if signer.standing == trust.Revoked {
			return codeRevoked
		}
		return codeNotTrusted
	}
	if errors.Is(err, verify.ErrHoles) {
		return codeHoles
	}
	if errors.Is(err, standing.ErrHoles) || errors.Is(err, snapshot.ErrHoles) {
		return codeSparse
	}
	switch status {
	case statusRejected:
		return codeRefused
	case statusHalted:
		return codeHalted
	case statusPolicy:
		return codeQuarantined
	case statusUsage:
		return codeUsage
	case statusUnavailable:
		return codeUnavailable
	case statusInterrupted:
		return codeInterrupted
	case statusMachine:
		return codeMachine
	default:
		return codeInternal
	}
}

// wordsOf is what an error says.
func wordsOf(err error) string {
	var end *interruptedError
	if errors.As(err, &end) { // what it is joined with says nothing more
		return end.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ") // several errors at once
}

// oneLine keeps what came from outside from forging lines or moving a cursor.
func oneLine(s string) string { return visible.Escape(s) }
