package restore_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
)

// TestResultJSON: section 8.5.3, exactly four fields, canonical.
func TestResultJSON(t *testing.T) {
	escape := restore.Fail(restore.SymlinkEscapeDetected, "a", io.EOF)
	finalize := restore.Fail(restore.FinalizeFailed, "a", io.EOF)
	verify := restore.Fail(restore.HashMismatchAfterRestore, "a", io.EOF)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"success", nil, `{"cause_code":null,"code":null,"ok":true,"phase":"VERIFY"}`},
		{"failure", escape, `{"cause_code":null,"code":"RESTORE_SYMLINK_ESCAPE_DETECTED","ok":false,"phase":"PREFLIGHT"}`},
		{"wrapped", fmt.Errorf("commit: %w", escape), `{"cause_code":null,"code":"RESTORE_SYMLINK_ESCAPE_DETECTED","ok":false,"phase":"PREFLIGHT"}`},
		{"internal", restore.Internal(restore.Execute, io.EOF), `{"cause_code":null,"code":"RESTORE_INTERNAL_ERROR","ok":false,"phase":"EXECUTE"}`},
		{"no code", io.EOF, `{"cause_code":null,"code":"RESTORE_INTERNAL_ERROR","ok":false,"phase":"PREFLIGHT"}`},
		{"rollback in EXECUTE", finalize.RolledBackBadly(io.ErrNoProgress), `{"cause_code":"RESTORE_FINALIZE_FAILED","code":"RESTORE_ROLLBACK_FAILED","ok":false,"phase":"EXECUTE"}`},
		{"rollback in VERIFY", verify.RolledBackBadly(io.ErrNoProgress), `{"cause_code":"RESTORE_HASH_MISMATCH_AFTER_RESTORE","code":"RESTORE_ROLLBACK_FAILED","ok":false,"phase":"VERIFY"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := restore.ResultOf(c.err).JSON()
			if must(t, err); string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestFailureKeepsItsErrors: what happened can be asked for, also after a bad
// rollback; names are quoted.
func TestFailureKeepsItsErrors(t *testing.T) {
	f := restore.Fail(restore.HashMismatchAfterRestore, "a\n|b\x1b", io.ErrUnexpectedEOF)
	f.RunID = "run\n1"
	bad := f.RolledBackBadly(io.ErrNoProgress)
	for _, is := range []error{io.ErrUnexpectedEOF, io.ErrNoProgress} {
		if !errors.Is(bad, is) {
			t.Errorf("%v is lost", is)
		}
	}
	if bad.RunID != f.RunID || bad.Path != f.Path || f.Code != restore.HashMismatchAfterRestore {
		t.Errorf("%+v of %+v", bad, f)
	}
	const want = `RESTORE_HASH_MISMATCH_AFTER_RESTORE: run "run\n1": "a\n|b\x1b": unexpected EOF`
	if f.Error() != want {
		t.Errorf("got %s", f)
	}
	const wantBad = `RESTORE_ROLLBACK_FAILED: run "run\n1": "a\n|b\x1b": unexpected EOF; and it could not be undone: multiple Read calls return no data or error`
	if bad.Error() != wantBad {
		t.Errorf("got %s", bad)
	}
}
