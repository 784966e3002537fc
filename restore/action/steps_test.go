package action

import (
	"errors"
	"io"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/staging"
)

// TestStepsHaveCodes: every step of a transaction has the code and the phase of
// section 8.3, and with a failed rollback becomes its cause.
func TestStepsHaveCodes(t *testing.T) {
	want := map[staging.Step]struct {
		code  restore.Code
		phase restore.Phase
	}{
		staging.StepBegin:    {restore.InternalError, restore.Execute},
		staging.StepConflict: {restore.TargetPathExists, restore.Execute},
		staging.StepStage:    {restore.InternalError, restore.Execute},
		staging.StepCheck:    {restore.StagingHashMismatch, restore.Execute},
		staging.StepFinalize: {restore.FinalizeFailed, restore.Execute},
		staging.StepMissing:  {restore.OutputMissingAfterRestore, restore.Verify},
		staging.StepVerify:   {restore.HashMismatchAfterRestore, restore.Verify},
		staging.StepPublish:  {restore.ResultArtifactWriteFailed, restore.Verify},
	}
	for step := staging.StepBegin; step <= staging.StepPublish; step++ {
		w := want[step]
		got := restore.ResultOf(failureOf(&staging.Error{Step: step, Path: "p", Err: io.EOF}))
		if got != (restore.Result{Code: w.code, Phase: w.phase}) {
			t.Errorf("%v: %+v", step, got)
		}
		err := failureOf(&staging.Error{Step: step, Path: "p", Err: io.EOF, Rollback: io.ErrNoProgress})
		if got := restore.ResultOf(err); got != (restore.Result{Code: restore.RollbackFailed, Phase: w.phase, Cause: w.code}) {
			t.Errorf("%v, not rolled back: %+v", step, got)
		}
		if !errors.Is(err, io.EOF) || !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("%v: %v has lost what happened", step, err)
		}
	}
	if got := restore.ResultOf(failureOf(io.EOF)); got != (restore.Result{Code: restore.InternalError, Phase: restore.Execute}) {
		t.Errorf("an error of no step: %+v", got)
	}
}
