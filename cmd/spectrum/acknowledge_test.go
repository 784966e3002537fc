package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/staging"
)

// TestFailedRollbackIsNamed: what a commit says whose rollback has just failed
// names the attempt and its staging directory, and nothing where it did not fail.
func TestFailedRollbackIsNamed(t *testing.T) {
	const id = "11111111-2222-4333-8444-555555555555"
	state, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	failed := &staging.Error{Step: staging.StepVerify, Err: errors.New("x"), Attempt: id, Staging: ".spectrum06_staging_" + id, Rollback: errors.New("y")}
	hints := verdictOf(failedIn(state, t.TempDir(), &restore.Failure{Code: restore.RollbackFailed, Err: failed})).hints
	if len(hints) != 5 || !strings.Contains(hints[0], "attempt "+id+" stands in \".spectrum06_staging_"+id+"\"") || !strings.Contains(hints[2], "spectrum recover ") {
		t.Errorf("%q", hints)
	}
	failed.Rollback = nil
	if hints := verdictOf(failedIn(state, t.TempDir(), &restore.Failure{Code: restore.TargetPathExists, Err: failed})).hints; len(hints) != 1 {
		t.Errorf("%q", hints)
	}
}
