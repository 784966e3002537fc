package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
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
			if got := verdictOf(c.err).status; got != c.status {
				t.Errorf("%v: exit status %d, want %d", c.err, got, c.status)
			}
			if said := voiceOf(t, c.err); said.Code != c.code || len(said.hints) == 0 {
				t.Errorf("%v: %s in JSON, want %s; hints %q", c.err, said.Code, c.code, said.hints)
			}
		}
	}
}

// TestOrdinaryIsNoBug: what the system answers where no code fits is 74, and 70 is left for
// the result of a wrong call, or of no call at all.
func TestOrdinaryIsNoBug(t *testing.T) {
	exit := exec.Command("false").Run()
	for _, err := range []error{unix.EACCES, unix.EPERM, unix.ENOENT, unix.ELOOP, unix.EEXIST, unix.EPIPE, errors.ErrUnsupported, fmt.Errorf("fusermount3: %w", exit)} {
		if got := verdictOf(restore.Internal(restore.Execute, err)).status; got != statusMachine {
			t.Errorf("%v: exit status %d", err, got)
		}
	}
	for _, err := range []error{errors.New("a bug"), unix.EBADF, unix.EFAULT, unix.EINVAL, fs.ErrInvalid} {
		if got := verdictOf(restore.Internal(restore.Execute, err)).status; got != statusInternal {
			t.Errorf("%v: exit status %d", err, got)
		}
		if got := verdictOf(fmt.Errorf("wrapped: %w", err)).status; got != statusInternal {
			t.Errorf("%v: exit status %d", err, got)
		}
	}
}

// TestDisturbed: what another process has done to a path is not a bug, whichever command finds it,
// and the hint says that it was another process.
func TestDisturbed(t *testing.T) {
	link := &pathsafe.LinkError{Link: pathsafe.Link{Path: "/a/l", By: "user 7", Own: true}, Real: "/b"}
	for _, c := range []struct {
		err    error
		status int
		hint   string
	}{
		{link, statusRejected, "if /b is the intended directory, name that path"},
		{&boxedError{fmt.Errorf("key file: %w", link), strings.NewReplacer()}, statusRejected, "if /b is the intended directory, name that path"},
		{fmt.Errorf("mount: %w: %w", fusemount.ErrMoved, &fusemount.MountpointError{Path: "/m", Err: fusemount.ErrNotMounted}), statusMachine, "no other process moves"},
		{&staging.Error{Step: staging.StepStage, Path: "f", Err: machine.Disturbed("other")}, statusMachine, "another process changed"},
		{fmt.Errorf("open: %w", pathsafe.ErrMoved), statusMachine, "another process changed"},
	} {
		said := voiceOf(t, c.err)
		if got := verdictOf(c.err).status; got != c.status || !strings.Contains(strings.Join(said.hints, "\n"), c.hint) {
			t.Errorf("%v: exit status %d, want %d; hints %q", c.err, got, c.status, said.hints)
		}
	}
}

// TestWithoutProc: where no procfs is mounted every command ends with a fault of the machine
// that says so, and what to do.
func TestWithoutProc(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can unmount /proc")
	}
	demo := filepath.Join(t.TempDir(), "demo")
	if _, stderr, status := spectrum(t, "demo", demo); status != 0 {
		t.Fatal(stderr)
	}
	run, root, view := filepath.Join(demo, "project/CONTRACTS/_runs/run-001"), filepath.Join(demo, "restore"), filepath.Join(demo, "view")
	for _, args := range [][]string{
		{"verify", run}, {"ls", run}, {"cat", run, "report/summary.md"}, {"diff", run, root}, {"preview", "--restore-root", root, run}, {"commit", "--restore-root", root, run},
		{"keygen"}, {"keygen", "--out", filepath.Join(demo, "new.pem")}, {"demo", demo + "2"}, {"seal", "--key", filepath.Join(demo, "key.pem"), "--run-dir", run + "2", filepath.Join(demo, "project/report")},
		{"snapshot", "take", root}, {"snapshot", "list"}, {"snapshot", "list", root}, {"recover", root}, {"rollback", "--emergency", root}, {"rollback", "12345678"},
		{"savepoint", "list"}, {"audit", "show"}, {"trust", "list"}, {"quarantine", "list"}, {"mount", "--daemon", run, view}, {"mount", run, view}, {"umount", view},
	} {
		inner := command(t, args...)
		cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"-m", "sh", "-c", `p=$1 && shift && umount -l /proc && exec "$p" "$@"`, "sh", inner.Path}, args...)...)
		cmd.Env = inner.Env
		_, stderr, status := runCommand(t, cmd)
		if status != statusMachine || !strings.Contains(stderr, "no procfs is mounted at /proc") || !strings.Contains(stderr, "mount -t proc") {
			t.Errorf("%q: %d %s", args, status, stderr)
		}
	}
}

// TestWithoutWorkingDirectory: a relative path in a directory that was removed, or one over the
// limit, is a fault of the machine.
func TestWithoutWorkingDirectory(t *testing.T) {
	for _, args := range [][]string{
		{"verify", "r"}, {"keygen", "--out", "k"}, {"--state-dir", "s", "keygen"}, {"demo", "d"}, {"ls", "r"}, {"mount", "r", "m"}, {"snapshot", "list", "r"}, {"recover", "r"},
	} {
		dir := t.TempDir()
		inner := command(t, args...)
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `p=$1 && shift && rmdir "$PWD" && exec "$p" "$@"`, "sh", inner.Path}, args...)...)
		cmd.Env, cmd.Dir = inner.Env, dir
		_, stderr, status := runCommand(t, cmd)
		if status != statusMachine || !strings.Contains(stderr, "the working directory no longer exists") {
			t.Errorf("%q: %d %s", args, status, stderr)
		}
	}
	for _, path := range []string{strings.Repeat("x", 300), strings.Repeat("xxxxxxx/", 700) + "k"} {
		if _, stderr, status := spectrum(t, "keygen", "--out", filepath.Join(t.TempDir(), path)); status != statusMachine || !strings.Contains(stderr, "use a shorter path") {
			t.Errorf("a path of %d bytes: %d %.200s", len(path), status, stderr)
		}
	}
}

// TestWatchHints: a root of which watch can take no snapshot is named with a hint, and watch
// goes on.
func TestWatchHints(t *testing.T) {
	cmd := command(t, "snapshot", "watch", filepath.Join(t.TempDir(), "missing"))
	stderr, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if said = append(said, lines.Text()); strings.HasPrefix(lines.Text(), "hint: ") || len(said) == 2 {
			check(t, cmd.Process.Signal(os.Interrupt))
		}
	}
	if err := cmd.Wait(); err != nil || len(said) != 2 || !strings.Contains(said[0], "cannot be opened as a restore root") || !strings.HasPrefix(said[1], "hint: name an existing directory") {
		t.Errorf("%q, %v", said, err)
	}
}
