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

// TestStatementIsOneLine: whatever the root is called, the statement is text that
// can be typed, that JSON can hold, and that no other root has.
func TestStatementIsOneLine(t *testing.T) {
	seen := map[string]string{}
	for _, root := range []string{"/r", "/a b", "/it's", "/a\nb", `/a\nb`, "/\xff", "/\ufffd", "/\x1b[2J", "/\u202e", `"/a"`} {
		e := &haltedError{root: root, attempts: []haltedAttempt{
			{HaltError: &staging.HaltError{Attempt: "11111111-2222-4333-8444-555555555555", Err: errors.New("x")}},
			{HaltError: &staging.HaltError{Attempt: "aaaaaaaa-2222-4333-8444-555555555555", Err: errors.New("x")}},
		}}
		said := e.statement()
		if oneLine(said) != said || jsonText(said) != said || !strings.HasSuffix(said, "; what is left of 11111111 and aaaaaaaa stays.") {
			t.Errorf("%q: %q", root, said)
		}
		if before, known := seen[said]; known {
			t.Errorf("%q and %q have the same", before, root)
		}
		seen[said] = root
		if root == "/a b" && !strings.HasPrefix(said, "I have looked at /a b; ") {
			t.Errorf("%q", said)
		}
	}
}

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
