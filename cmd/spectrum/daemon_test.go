package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// await waits until something has come about.
// background finds the background halves of the test's own mounts: processes
// that have the test's state directory and the descriptor to say "ready" on in
// their environment.
func background(t *testing.T) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env := environOf(pid)
		if slices.Contains(env, "XDG_STATE_HOME="+stateHome(t)) && slices.Contains(env, readyVariable+"=3") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// environOf is empty when the process has gone.
func environOf(pid int) []string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return strings.Split(string(raw), "\x00")
}

// unmountAfter leaves no mount on a directory, and no process in the background.
func unmountAfter(t *testing.T, dir string) {
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		for _, pid := range background(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// TestDaemonHoldsNothing: what the caller had open, where the caller was, and
// the caller's terminal session are the caller's again.
func TestDaemonHoldsNothing(t *testing.T) {
	project, dir := bundletest.New(t), t.TempDir()
	run := project.Run("run-1", map[string]string{"a": "alpha"})
	unmountAfter(t, dir)
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := command(t, "mount", "--daemon", run.Dir, filepath.Base(dir))
	cmd.Dir = filepath.Dir(dir)
	cmd.Env = append(cmd.Env, notifyVariable+"=/nowhere")
	cmd.ExtraFiles = []*os.File{lock, writer}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said // pipes that end when the last process closes them
	cmd.WaitDelay = 5 * time.Minute
	if err := cmd.Run(); err != nil || strings.Count(said.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, &said)
	}
	writer.Close()
	if err := reader.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(reader); err != nil {
		t.Errorf("a process holds the caller's pipe: %v", err)
	}
	pids := background(t)
	if len(pids) != 1 {
		t.Fatalf("processes %v", pids)
	}
	checkDescriptors(t, pids[0], project.Root, run.Dir, dir) // dir is what is beneath the view
	checkDetached(t, pids[0])
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "alpha" {
		t.Errorf("%q, %v", got, err)
	}
	must(t, "umount", dir)
	harness.Eventually(t, "the end of the server", func() bool { return len(background(t)) == 0 })
}

// checkDescriptors requires the log, the device, what the Go runtime needs, and the directories
// that are looked into: nothing else, once the view is ready.
func checkDescriptors(t *testing.T, pid int, sources ...string) {
	t.Helper()
	log := filepath.Join(stateHome(t), "spectrum", "view.log")
	streams := map[string]string{"0": os.DevNull, "1": os.DevNull, "2": log}
	needed := append(sources, "/dev/fuse", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "anon_inode:[pidfd]")
	defer func() {
		if t.Failed() {
			t.Logf("descriptors %q", descriptors(t, pid))
		}
	}()
	harness.Eventually(t, "only what is needed is open", func() bool {
		ok := true
		for fd, to := range descriptors(t, pid) {
			if want := streams[fd]; to != want && (want != "" || !slices.Contains(needed, to) && !strings.HasPrefix(to, "/sys/fs/cgroup/")) {
				ok = false
			}
		}
		return ok
	})
}

// descriptors are the open descriptors of a process, and where they lead.
func descriptors(t *testing.T, pid int) map[string]string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	open, _ := os.ReadDir(dir) // of a process that has ended there are none
	held := make(map[string]string, len(open))
	for _, fd := range open {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil { // else it was closed
			held[fd.Name()] = to
		}
	}
	return held
}

func checkDetached(t *testing.T, pid int) {
	t.Helper()
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err != nil || string(name) != "spectrum\n" {
		t.Errorf("it is called %q, %v", name, err)
	}
	if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || dir != "/" {
		t.Errorf("working directory %q, %v", dir, err)
	}
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("process %d is in session %d, %v", pid, sid, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(rest); len(fields) < 5 || fields[4] != "0" {
		t.Errorf("terminal: %q", rest)
	}
	for _, variable := range environOf(pid) {
		if strings.HasPrefix(variable, notifyVariable+"=") {
			t.Error(variable)
		}
	}
}

// TestDaemonKilledBeforeReady: the background half is kept from saying that the
// view is ready by a stderr that takes no more, and killed there.
func TestDaemonKilledBeforeReady(t *testing.T) {
	run, dir := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"}), t.TempDir()
	unmountAfter(t, dir)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	fill(t, writer)
	cmd := command(t, "mount", "--daemon", run.Dir, dir)
	cmd.Stderr = writer
	if err := errors.Join(cmd.Start(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the mount", func() bool { return isMounted(t, dir) })
	for _, pid := range background(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	harness.Eventually(t, "its end", func() bool { return len(background(t)) == 0 })
	said, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	said = bytes.TrimLeft(said, "\x00")
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != statusMachine {
		t.Errorf("%v", err)
	}
	if want := "spectrum: the background process ended before the view was ready: signal: killed\nhint: "; !strings.HasPrefix(string(said), want) {
		t.Errorf("it said %q", said)
	}
	must(t, "umount", dir)
	if isMounted(t, dir) {
		t.Error("the dead view is still mounted")
	}
}

// fill fills a pipe with zeros and leaves it as it was otherwise.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	fd := int(pipe.Fd()) // this makes it blocking
	size, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := pipe.Write(make([]byte, size)); n != size || err != nil {
		t.Fatalf("%d of %d bytes, %v", n, size, err)
	}
}

// TestDaemonInterrupted ends --daemon while the background verifies: it goes as
// well, and nothing is left. A try that came too late is made again.
func TestDaemonInterrupted(t *testing.T) {
	run := sealBig(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			unmountAfter(t, dir)
			harness.Eventually(t, "an interruption in time", func() bool { return interruptDaemon(t, sig, run, dir) })
			if isMounted(t, dir) || len(background(t)) > 0 {
				t.Errorf("mounted %v, processes %v", isMounted(t, dir), background(t))
			}
		})
	}
}

// bigOutput is the output that takes long.
const bigOutput = "big"

// sealBig makes a run that takes a while to verify.
func sealBig(t *testing.T) string {
	t.Helper()
	project, key := t.TempDir(), filepath.Join(t.TempDir(), "key.pem")
	big, run := filepath.Join(project, bigOutput), filepath.Join(project, "CONTRACTS", "_runs", "run")
	if err := errors.Join(os.WriteFile(big, nil, 0o644), os.Truncate(big, 256<<20)); err != nil {
		t.Fatal(err)
	}
	must(t, "keygen", "--out", key)
	must(t, "seal", "--key", key, "--run-dir", run, big)
	return run
}

// holdsOpen reports whether a background half has a file of this name open.
func holdsOpen(t *testing.T, name string) bool {
	t.Helper()
	for _, pid := range background(t) {
		for _, to := range descriptors(t, pid) {
			if filepath.Base(to) == name {
				return true
			}
		}
	}
	return false
}

// interruptDaemon reports whether the view was not ready yet.
func interruptDaemon(t *testing.T, sig syscall.Signal, run, dir string) bool {
	t.Helper()
	var said bytes.Buffer
	cmd := command(t, "mount", "--daemon", run, dir)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "that it verifies, or is ready", func() bool { return isMounted(t, dir) || holdsOpen(t, bigOutput) })
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if err == nil {
		must(t, "umount", dir)
		harness.Eventually(t, "the end of the server", func() bool { return len(background(t)) == 0 })
		return false
	}
	var exit *exec.ExitError
	if !asExit(err, &exit) || exit.ExitCode() != statusInterrupted || !strings.HasPrefix(said.String(), "spectrum: interrupted: ") {
		t.Errorf("%v: %s", err, &said)
	}
	return true
}
