package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestViewSurvivesItsReader: when nobody reads what the mount says any more,
// it goes on, also at the moment at which it has tampering to report.
func TestViewSurvivesItsReader(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"bad": "signed", "good": "good"})
	v := mountView(t, run.Dir)
	if err := v.stderr.Close(); err != nil {
		t.Fatal(err)
	}
	project.Write("bad", "change")
	if _, err := os.ReadFile(filepath.Join(v.dir, "bad")); err == nil {
		t.Error("the tampered file reads")
	}
	if got, err := os.ReadFile(filepath.Join(v.dir, "good")); err != nil || string(got) != "good" {
		t.Errorf("another file: %q, %v", got, err)
	}
	if _, err := v.stop(os.Interrupt); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestSignalDuringCommit sends each signal at the first sign of a commit at
// work: afterwards the restore root is as before, or whole.
func TestSignalDuringCommit(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			project, root := bundletest.New(t), t.TempDir()
			run := project.Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 4<<20)})
			before := bundletest.Snapshot(t, root)
			id := strings.TrimSpace(must(t, "preview", "-q", "--restore-root", root, run.Dir))
			cmd := command(t, "commit", "--preview", id, "--approve", preview.Exactly)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitStaging(t, cmd, root)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Log("it was faster:", err)
			}
			err := cmd.Wait()
			checkAllOrNothing(t, root, before, err)
		})
	}
}

func awaitStaging(t *testing.T, cmd *exec.Cmd, root string) {
	t.Helper()
	for {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) > 0 || syscall.Kill(cmd.Process.Pid, 0) != nil {
			return
		}
	}
}

// checkAllOrNothing holds what is there to what the program's end said. Of the
// root itself the time has changed in any case.
func checkAllOrNothing(t *testing.T, root, before string, end error) {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if end == nil {
		if _, err := os.Stat(filepath.Join(root, "RESTORE_REPORT.json")); err != nil || len(entries) != 3 {
			t.Errorf("success, and %v", entries)
		}
		return
	}
	if len(entries) != 0 {
		t.Errorf("%v, and %v is left; before:\n%s", end, entries, before)
	}
	if exit := (&exec.ExitError{}); !asExit(end, &exit) || exit.ExitCode() != statusInterrupted {
		t.Errorf("it ended with %v", end)
	}
}

// TestHangUpEndsAMount: a closed terminal leaves no dead view.
func TestHangUpEndsAMount(t *testing.T) {
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
	v := mountView(t, run.Dir)
	if said, err := v.stop(syscall.SIGHUP); err != nil || isMounted(t, v.dir) {
		t.Errorf("%v, mounted %v: %s", err, isMounted(t, v.dir), said)
	}
}

// TestResultThatCannotBePrinted: the restore is done, and the words say so.
func TestResultThatCannotBePrinted(t *testing.T) {
	project, root := bundletest.New(t), t.TempDir()
	run := project.Run("run-1", map[string]string{"a": "alpha"})
	id := strings.TrimSpace(must(t, "preview", "-q", "--restore-root", root, run.Dir))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	cmd := command(t, "commit", "--preview", id, "--approve", preview.Exactly)
	cmd.Stdout, cmd.Stderr = full, &stderr
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "is complete, but its result could not be printed") {
		t.Errorf("%v: %s", err, &stderr)
	}
	if _, err := os.Stat(filepath.Join(root, "a")); err != nil {
		t.Error(err)
	}
}
