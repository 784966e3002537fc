package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// ordinary are the faults that every machine has at some time.
var ordinary = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EROFS, unix.EXDEV, unix.ENAMETOOLONG,
	pathsafe.ErrTooLong, &machine.FullError{Path: "/r", Of: "bytes", Need: 2, Free: 1},
}

// TestMachineFaults: a fault of the machine is status 74 wherever it arises, with the code
// of the law where there is one, and a hint of its own. What the law asks for before a
// restore begins stays a verdict.
func TestMachineFaults(t *testing.T) {
	for _, fault := range ordinary {
		at := &os.PathError{Op: "write", Path: "/r/f", Err: fault}
		deep := fmt.Errorf("staging: %w", errors.Join(errors.New("first"), &staging.Error{Step: staging.StepStage, Path: "f", Err: at}))
		notThere := statusRejected
		if isTooLong(fault) { // no such path can be
			notThere = statusMachine
		}
		for _, c := range []struct {
			err    error
			status int
			code   string
		}{
			{at, statusMachine, "MACHINE_FAULT"},
			{deep, statusMachine, "MACHINE_FAULT"},
			{refusedHint(at, "name another"), statusMachine, "MACHINE_FAULT"},
			{restore.Internal(restore.Execute, deep), statusMachine, "RESTORE_INTERNAL_ERROR"},
			{restore.Internal(restore.Preflight, at), statusMachine, "RESTORE_INTERNAL_ERROR"},
			{restore.Fail(restore.FinalizeFailed, "f", at), statusMachine, "RESTORE_FINALIZE_FAILED"},
			{restore.Fail(restore.ResultArtifactWriteFailed, "f", at), statusMachine, "RESTORE_RESULT_ARTIFACT_WRITE_FAILED"},
			{restore.Fail(restore.TargetNotExist, "/r", at), notThere, "RESTORE_TARGET_NOT_EXIST"},
			{restore.Fail(restore.TargetNotWritable, "/r", at), statusMachine, "RESTORE_TARGET_NOT_WRITABLE"},
			{restore.Fail(restore.TargetNotWritable, "/r", fs.ErrPermission), statusRejected, "RESTORE_TARGET_NOT_WRITABLE"},
			{restore.Fail(restore.FinalizeFailed, "f", at).RolledBackBadly(at), statusHalted, "RESTORE_ROLLBACK_FAILED"},
			{&staging.HaltError{Err: at}, statusHalted, "ROOT_HALTED"},
		} {
			if got := statusOf(c.err); got != c.status {
				t.Errorf("%v: exit status %d, want %d", c.err, got, c.status)
			}
			if said := voiceOf(t, c.err); said.Code != c.code || len(said.hints) == 0 {
				t.Errorf("%v: %s in JSON, want %s; hints %q", c.err, said.Code, c.code, said.hints)
			}
		}
	}
}

// TestOrdinaryIsNoBug: what the system answers where no code fits is 74, and 70 is left for
// what comes of a wrong call, or of no call at all.
func TestOrdinaryIsNoBug(t *testing.T) {
	exit := exec.Command("false").Run()
	for _, err := range []error{unix.EACCES, unix.EPERM, unix.ENOENT, unix.ELOOP, unix.EEXIST, unix.EPIPE, errors.ErrUnsupported, fmt.Errorf("fusermount3: %w", exit)} {
		if got := statusOf(restore.Internal(restore.Execute, err)); got != statusMachine {
			t.Errorf("%v: exit status %d", err, got)
		}
	}
	for _, err := range []error{errors.New("a bug"), unix.EBADF, unix.EFAULT, unix.EINVAL, fs.ErrInvalid} {
		if got := statusOf(restore.Internal(restore.Execute, err)); got != statusInternal {
			t.Errorf("%v: exit status %d", err, got)
		}
		if got := statusOf(fmt.Errorf("wrapped: %w", err)); got != statusInternal {
			t.Errorf("%v: exit status %d", err, got)
		}
	}
}
