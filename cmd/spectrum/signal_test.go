package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/test/harness"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestViewSurvivesItsReader: when the reader of the mount's messages has gone, the mount goes on,
// also at the moment at which it has tampering to report.
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
	t.Parallel()
	run := bundletest.New(t).Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 4<<20)})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			root := t.TempDir()
			before := bundletest.Snapshot(t, root)
			id := strings.TrimSpace(must(t, "preview", "-q", "--restore-root", root, run.Dir))
			cmd := command(t, "commit", "--preview", id, "--approve", preview.Exactly)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			harness.Eventually(t, "a commit at work", func() bool {
				entries, err := os.ReadDir(root)
				return err != nil || len(entries) > 0 || len(ended) > 0
			})
			if err := cmd.Process.Signal(sig); err != nil {
				t.Log("it was faster:", err)
			}
			checkAllOrNothing(t, root, before, <-ended)
		})
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

// TestResultOfARollback: so it is of a rollback.
func TestResultOfARollback(t *testing.T) {
	project, root := bundletest.New(t), t.TempDir()
	run := project.Run("run-1", map[string]string{"a": "alpha"})
	id := strings.TrimSpace(must(t, "preview", "-q", "--restore-root", root, run.Dir))
	must(t, "commit", "-q", "--preview", id, "--approve", preview.Exactly)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	cmd := command(t, "rollback", "latest")
	cmd.Stdout, cmd.Stderr = full, &stderr
	err = cmd.Run()
	said := stderr.String()
	if err == nil || !strings.Contains(said, "is complete, but its result could not be printed") || strings.Contains(said, "retry") {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(root, "a")); err == nil {
		t.Error("it is still there")
	}
}

// TestSignalDuringMount sends signals to a mount in the foreground at its calls, from
// its beginning to its end: afterwards nothing is mounted, and it either says that
// nothing was changed, or has ended as a view is to end.
func TestSignalDuringMount(t *testing.T) {
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha", "b/c": "gamma"})
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int]int{}
	tried := tier.Every(t, 13)
	for i := 0; ; i++ {
		n, dir := tried.At(i), t.TempDir()
		manager := listen(t, "@"+dir)
		plan := harness.Interrupt(n, func(sysfault.Call) bool { return true })
		plan.Env = []string{"XDG_STATE_HOME=" + stateHome(t), notifyVariable + "=@" + dir}
		stop := unmountWhenReady(t, manager, dir)
		r, err := sysfault.Run(t.Context(), *plan, program, "mount", run.Dir, dir)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		ends[r.Status]++
		said := string(r.Stderr)
		switch {
		case isMounted(t, dir):
			t.Errorf("before call %d: it is still mounted: %s", n, said)
		case r.Status == 0, r.Status > 128 && said == "": // before main, by the signal itself
		case r.Status != statusInterrupted || said != "spectrum: interrupted: nothing was changed\n":
			t.Errorf("before call %d: exit %d, %q", n, r.Status, said)
		}
		if r.Fired == 0 || t.Failed() {
			break
		}
	}
	t.Logf("exit statuses %v", ends)
	if ends[0] == 0 || ends[statusInterrupted] == 0 {
		t.Error("never at its work, or never interrupted")
	}
}

// unmountWhenReady unmounts a view once the server has reported to its manager that it is ready,
// for those that no signal has ended: to unmount it before would be another way to end it
// than the one that is tried. The function that it returns waits for that.
func unmountWhenReady(t *testing.T, manager serviceManager, dir string) (stop func()) {
	t.Helper()
	if err := manager.conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	umount := command(t, "umount", dir)
	go func() {
		defer close(done)
		said := make([]byte, 4096)
		n, err := manager.conn.Read(said)
		if err != nil || !strings.Contains(string(said[:n]), "READY=1") {
			return // stopped, or it is about to end
		}
		for isMounted(t, dir) {
			again := exec.Command(umount.Path, umount.Args[1:]...)
			again.Env = umount.Env
			if said, err := again.CombinedOutput(); err != nil {
				t.Logf("umount: %s", said) // it may have gone already
			}
		}
	}()
	return func() {
		_ = manager.conn.SetReadDeadline(time.Now())
		<-done
	}
}
