package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/doctor"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/overlay"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// forging is what a name could have in it to forge a line.
const forging = "a\nspectrum: OK\nhint: forged \x1b[2J\u202e"

// withoutHint are the codes that have no next step, and why.
var withoutHint = map[code]string{codeInterrupted: "who interrupts knows how to go on, and the line says what is left"}

// examples are errors with each code of this program.
func examples(t *testing.T) map[code][]error {
	t.Helper()
	state, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	outside := errors.New(forging)
	halt := &staging.HaltError{Attempt: "0dbd4d3d-14a4-4b5c-9e1c-07c6d60c6b5e", Kind: "snapshot_restore", Staging: forging, Err: staging.ErrHalted}
	halted := &haltedError{root: "/srv/" + forging, attempts: []haltedAttempt{{HaltError: halt, kind: "snapshot_restore"}}, err: halt}
	held := &quarantine.HeldError{Source: "43766f23", Marks: []quarantine.Mark{{Finding: quarantine.Finding{Rule: quarantine.ApprovalVague, Detail: forging}}}}
	verifier := &auditVerify{records: &records.Records{}, savepointCommand: &savepointCommand{state: state}}
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	misfits := []audit.Misfit{{Savepoint: audit.Savepoint{ID: "1", Attempt: "2", Root: forging}, Fault: audit.NotEnded}}
	return map[code][]error{
		codeUsage:       {usage(&cobra.Command{Use: "spectrum"}, "%w", outside), noCommand(newRoot(a), []string{forging})},
		codeRefused:     {refusedHint(outside, "name another"), &store.UnfitError{RunID: forging, Op: "pushed", File: forging, Err: outside}, &store.UnfitError{RunID: forging, Op: "fetched", Err: outside}},
		codeUnavailable: {fmt.Errorf("%w: %w", fusemount.ErrUnavailable, outside), fmt.Errorf("%w: %w", fusemount.ErrUnavailable, fusemount.ErrAllowOther)},
		codeNoGit:       {gitError(forging, fmt.Errorf("%w: %w", gitbase.ErrNoGit, outside))},
		codeOverlay:     {&overlay.UnavailableError{Step: "mounting", Reason: forging, Hint: "name another", Err: unix.EPERM}},
		codeRun:         {&runError{status: statusRunFailed, layer: "/" + forging, retry: "spectrum seal --upper UPPER --lower LOWER", err: outside}, &runError{status: 127, err: outside}},
		codeInternal:    {outside, errors.Join(outside, outside)},
		codeMachine:     {&fs.PathError{Op: "write", Path: forging, Err: unix.ENOSPC}, refusedHint(fmt.Errorf("%q: %w", forging, unix.EROFS), "name another")},
		codeInterrupted: {context.Canceled, &staging.Error{Attempt: halt.Attempt, Err: context.Canceled}, pruneInterrupted(context.Canceled, snapshot.Pruned{Gone: []snapshot.Header{{}}}, false)},

		codeLocked:      {&staging.BusyError{PID: 7, Command: forging}},
		codeHalted:      {halted, halt},
		codeForeign:     {&action.ForeignError{Path: forging, Real: "/srv/" + forging, Loose: []pathsafe.Loose{{Path: forging, In: forging, By: "user 7"}}}},
		codeTampered:    {fmt.Errorf("view on %q: %w", forging, errTampered)},
		codeQuarantined: {held, preview.ErrQuarantined, &quarantine.RecordError{Path: forging, Err: outside}},
		codeRevoked:     {preview.ErrRevoked, &notTrustedError{forging, "ab12", trust.Revoked, forging}},
		codeNotTrusted:  {&notTrustedError{forging, "ab12", trust.Unknown, ""}},

		codeApprovalRequired:        {fmt.Errorf("there is no preview %q: %w", forging, errApprovalRequired), a.approvalRequired("ab12", preview.Exactly), a.approvalRequired("ab12", "")},
		codeApprovalVague:           {&action.VagueError{Source: "43766f23", Preview: "5c5c5c5c5c5c5c5c", Err: fmt.Errorf("%w: %q", preview.ErrVague, forging)}},
		codeApprovalUnfit:           {preview.ErrUnfit, a.slipOfForm("ab12", forging, &quarantine.HeldError{Source: "43766f23"}, fmt.Errorf("%w: %q", preview.ErrVague, forging))},
		codeApprovalIncomplete:      {preview.ErrUndecided},
		codeApprovalStale:           {preview.ErrStale, &againError{a.commandLine("preview", "--restore-root", "/r", forging), preview.ErrStale}, errNotShown},
		codeApprovalUsed:            {preview.ErrUsed},
		codeApprovalInvalid:         {preview.ErrForged},
		codeHoles:                   {fmt.Errorf("output %q: %w", forging, verify.ErrHoles), sealError(fmt.Errorf("output %q: %w", forging, bundle.ErrHoles))},
		codeSparse:                  {fmt.Errorf("file %q: %w", forging, existing.ErrHoles)},
		codeAcknowledgementRequired: {errNotRevoked, errNotPruned, &acknowledgementError{halted, errNoStatement}, &lossError{"/srv/" + forging, nil, errNoStatement}},
		codeAcknowledgementUnfit:    {&acknowledgementError{halted, errOtherStatement}},

		codeAuditDamaged:     {&audit.DamageError{Err: outside}},
		codeAuditCut:         {verifier.misfit(true, misfits)},
		codeAuditRewritten:   {verifier.rewritten([]audit.Misfit{{Savepoint: misfits[0].Savepoint, Fault: audit.Rewritten, Entry: 3}}), verifier.rewritten([]audit.Misfit{{Savepoint: misfits[0].Savepoint, Fault: audit.NoMark}})},
		codeSavepointMissing: {verifier.misfit(false, misfits)},
		codeHistory:          {historyDamaged([]statecheck.Flaw{{What: forging, Remedy: statecheck.KeepState}}), historyDamaged([]statecheck.Flaw{{What: forging, Remedy: statecheck.CutRemedy}, {}})},

		codeStoreFault: {
			&store.FaultError{Store: "s3://" + forging, Key: forging, Op: "get", Err: outside}, &store.FaultError{Store: "file:///" + forging, Key: forging, Op: "put", Err: unix.ENOSPC},
			&store.FaultError{Store: forging, Op: "list", Err: store.ErrUnlisted}, &store.FaultError{Store: forging, Op: "get", Key: forging, Err: store.ErrMissing},
		},
		codeStoreTampered: {&store.WrongError{Store: forging, Key: forging, Err: outside}, &store.WrongError{Store: forging, Key: forging, Err: &verify.Reject{Code: verify.SignatureInvalid, Message: forging}}},
		codeStoreNoRun:    {&store.NoRunError{Store: forging, Root: forging}},
		codeStoreLocked:   {&store.LockedError{Store: forging}},
		codeStoreDamaged:  {storeDamaged([]string{forging})},

		codeDrifted: {drifted("43766f237a93", "/srv/"+forging, []savepoint.Drift{{Path: forging, State: savepoint.Missing}}, 2)},
		codeInvalid: {savepointError(&savepoint.DamageError{RunDir: forging, Err: outside})},

		codeSnapshotDamaged: {snapshotError(&snapshot.DamageError{Path: forging, Err: outside})},
		codeSnapshotRefused: {snapshotError(fmt.Errorf("%q: %w", forging, snapshot.ErrRefused))},

		codeStateDamaged: {stateDamaged("/srv/"+forging, []statecheck.Flaw{{What: forging, Remedy: statecheck.KeepState}}, nil, "", true)},

		codeUnfit:   {&unfitError{failed: []doctor.Check{{ID: forging, Remedy: "mend it"}}, all: 2}, &unfitError{failed: []doctor.Check{{ID: forging}}, all: 2}},
		codeDiffers: {rootDiffers(&rootDiff{total: 2, rootPath: "/srv/" + forging, previews: "spectrum preview"}, 1, []string{forging}, nil)},

		codeSnapshotDiffers: {snapshotDiffers("0dbd4d3d1111", "/srv/"+forging, 2, nil)},

		codeLater:      {laterCommits(outside, &action.LaterError{}, "0dbd4d3d")},
		codeInPart:     {stillStands("0dbd4d3d", "/srv/"+forging, false, []action.Left{{Path: forging, Committed: true}}, map[string]any{})},
		codeNoSnapshot: {noSnapshot(action.ErrNoSnapshot, map[string]any{}, "\"spectrum snapshot list\" lists the snapshots")},
		codeNotUndone:  {rollbackError(action.ErrElsewhere), rollbackError(snapshot.ErrUnsettled), rollbackError(&staging.Error{Step: staging.StepConflict, Err: outside})},
	}
}

// TestEveryCode goes through every code of this program: each has an error here, its
// own code in JSON, one line, and a hint whose commands are there.
func TestEveryCode(t *testing.T) {
	all := examples(t)
	for _, name := range declared(t, ".", "code") {
		errs := all[code(name)]
		delete(all, code(name))
		if len(errs) == 0 {
			t.Errorf("no example of %s: add one, and a hint for it", name)
		}
		for _, err := range errs {
			said := voiceOf(t, err)
			if said.Code != name {
				t.Errorf("%q is %s in JSON, want %s", err, said.Code, name)
			}
			if len(said.hints) == 0 && withoutHint[code(name)] == "" {
				t.Errorf("%s has no hint: %q", name, err)
			}
		}
	}
	for name := range all {
		t.Errorf("%s is not declared", name)
	}
}

// TestEveryCodeOfTheLaws does the same for the verdicts of the laws.
func TestEveryCodeOfTheLaws(t *testing.T) {
	path := "out/" + forging
	for _, name := range declared(t, "../../verify", "Code") {
		if name == string(verify.OK) {
			continue
		}
		checkVerdict(t, name, &verify.Reject{Code: verify.Code(name), Message: forging, Details: map[string]string{"path": path}})
	}
	for _, name := range declared(t, "../../restore", "Code") {
		failure := restore.Fail(restore.Code(name), path, errors.New(forging))
		if name == string(restore.RollbackFailed) {
			failure = restore.Fail(restore.FinalizeFailed, path, fs.ErrExist).RolledBackBadly(fs.ErrPermission)
		}
		checkVerdict(t, name, failure)
	}
}

func checkVerdict(t *testing.T, name string, err error) {
	t.Helper()
	said := voiceOf(t, err)
	if said.Code != name || len(said.hints) == 0 {
		t.Errorf("%s: %s in JSON, hints %q", name, said.Code, said.hints)
	}
}

// said is what a command says of an error.
type said struct {
	Code  string `json:"code"`
	hints []string
}

// voiceOf makes the program report an error, with and without JSON, and requires the form that
// every error has: one line, then hints, whose commands exist.
func voiceOf(t *testing.T, err error) (s said) {
	t.Helper()
	var plain, stdout, stderr bytes.Buffer
	status := (&app{stdout: &stdout, stderr: &plain}).finish(err)
	if stdout.Len() > 0 {
		t.Errorf("%q: on stdout %q", err, &stdout)
	}
	if again := (&app{stdout: &stdout, stderr: &stderr, json: true}).finish(err); again != status || stderr.String() != plain.String() {
		t.Errorf("%q: with --json status %d and %q, without %d and %q", err, again, &stderr, status, &plain)
	}
	if !isCanonical(stdout.Bytes()) || json.Unmarshal(stdout.Bytes(), &s) != nil {
		t.Errorf("%q: JSON %q", err, &stdout)
	}
	s.hints = checkForm(t, plain.String())
	return s
}

// isCanonical reports whether this is one canonical JSON value, with escapes for what
// cannot be seen, and nothing else.
func isCanonical(text []byte) bool {
	value, err := canonjson.Parse(text)
	return err == nil && bytes.Equal(visible.AppendJSON(nil, value.Append(nil)), text)
}

// checkForm requires exactly one line of an error, and then hints.
func checkForm(t *testing.T, stderr string) (hints []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "spectrum: ") || strings.HasSuffix(lines[0], ".") {
		t.Errorf("this is not one line of an error: %q", stderr)
	}
	for i, line := range lines {
		if oneLine(line) != line {
			t.Errorf("a line with control characters: %q", line)
		}
		if i == 0 {
			continue
		}
		hint, ok := strings.CutPrefix(line, "hint: ")
		if !ok {
			t.Errorf("this is not a hint: %q", line)
		}
		hints = append(hints, hint)
		for _, command := range append(commandsIn(hint), readyIn(hint)...) {
			if err := resolve(command); err != nil {
				t.Errorf("hint %q names %q: %v", hint, command, err)
			}
		}
	}
	return hints
}

// TestRefusalsHaveHints: no refusal and no verdict of this program is made without
// saying what to do next.
func TestRefusalsHaveHints(t *testing.T) {
	found := 0
	called(t, "refusedHint", func(at string, call *ast.CallExpr) {
		found++
		if len(call.Args) != 2 || textOf(call.Args[1]) == "" {
			t.Errorf("%s: a refusal without a hint", at)
		}
	})
	if found < 30 {
		t.Errorf("found only %d refusals: this test no longer finds them", found)
	}
	set, files := parsed(t, ".")
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if name, isIdent := typeOf(lit); !ok || !isIdent || name != "codedError" {
				return true
			}
			keys := map[string]ast.Expr{}
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					keys[kv.Key.(*ast.Ident).Name] = kv.Value
				}
			}
			if keys["hint"] == nil || textOf(keys["hint"]) == "" || keys["code"] == nil || textOf(keys["code"]) != "X" {
				t.Errorf("%v: a verdict without a hint, or with a code that is not in codes.go", set.Position(lit.Pos()))
			}
			return true
		})
	}
}

func typeOf(lit *ast.CompositeLit) (string, bool) {
	if lit == nil {
		return "", false
	}
	name, ok := lit.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

// TestHaltBeatsInterruption: a commit that is interrupted and whose rollback fails reports what
// to do about the root.
func TestHaltBeatsInterruption(t *testing.T) {
	err := restore.Internal(restore.Execute, context.Canceled).RolledBackBadly(fs.ErrPermission)
	if got := verdictOf(err).status; got != statusHalted {
		t.Errorf("exit status %d", got)
	}
	if said := voiceOf(t, err); len(said.hints) == 0 {
		t.Error("there is no hint")
	}
}
