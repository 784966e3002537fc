package restore

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Failure is how a restore failed: exactly one code (section 8.2). Read it
// with errors.As.
type Failure struct {
	Code  Code
	Phase Phase
	Cause Code   // why a rollback was needed; only with [RollbackFailed]
	RunID string // the run at fault in a chain, else ""
	Path  string // the output path or directory at fault, or ""
	Err   error  // what happened
}

// Fail makes the failure that has this code; its phase is the code's own.
func Fail(code Code, path string, err error) *Failure {
	return &Failure{Code: code, Phase: phases[code], Path: path, Err: err}
}

// Internal is the one place where an error without a code of its own becomes
// one (section 8.3).
func Internal(phase Phase, err error) *Failure {
	return &Failure{Code: InternalError, Phase: phase, Err: err}
}

// RolledBackBadly turns a failure into the report that its rollback failed too
// (section 8.5.3): the phase stays, the code becomes the cause.
func (f *Failure) RolledBackBadly(err error) *Failure {
	return &Failure{
		Code: RollbackFailed, Phase: f.Phase, Cause: f.Code, RunID: f.RunID, Path: f.Path,
		Err: fmt.Errorf("%w; and it could not be undone: %w", f.Err, err),
	}
}

func (f *Failure) in(runID string) *Failure {
	g := *f
	g.RunID = runID
	return &g
}

func (f *Failure) Error() string {
	text := string(f.Code)
	if f.RunID != "" {
		text += fmt.Sprintf(": run %q", f.RunID)
	}
	if f.Path != "" {
		text += fmt.Sprintf(": %q", f.Path)
	}
	return fmt.Sprintf("%s: %v", text, f.Err)
}

// Unwrap returns what happened.
func (f *Failure) Unwrap() error { return f.Err }

// Result is the structured result of section 8.5.3: exactly four fields.
type Result struct {
	OK    bool
	Code  Code // "" on success
	Phase Phase
	Cause Code // "" unless Code is [RollbackFailed]
}

// ResultOf is the result that goes with an error of a restore; nil is full
// success, whose phase is VERIFY. An error without a code counts as internal,
// in the first phase.
func ResultOf(err error) Result {
	if err == nil {
		return Result{OK: true, Phase: Verify}
	}
	var f *Failure
	if !errors.As(err, &f) {
		f = Internal(Preflight, err)
	}
	return Result{Code: f.Code, Phase: f.Phase, Cause: f.Cause}
}

// JSON is the result as canonical JSON (section 8.5.3).
func (r Result) JSON() ([]byte, error) {
	return canonjson.Marshal(map[string]any{
		"ok": r.OK, "code": orNull(r.Code), "phase": r.Phase, "cause_code": orNull(r.Cause),
	})
}

func orNull(c Code) any {
	if c == "" {
		return nil
	}
	return c
}
