package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// mounted is a foreground mount in a process of its own.
type mounted struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	said   *bytes.Buffer // all of stderr, once the process has ended
	stderr io.Closer
	done   chan error
}

// mountView mounts a run, perhaps with flags before it, and waits until the program says that it is mounted.
func mountView(t *testing.T, args ...string) *mounted {
	t.Helper()
	v := &mounted{t: t, dir: t.TempDir(), said: &bytes.Buffer{}, done: make(chan error, 1)}
	v.cmd = command(t, slices.Concat([]string{"mount"}, args, []string{v.dir})...)
	stderr, err := v.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.end)
	v.stderr = stderr
	lines := bufio.NewReader(io.TeeReader(stderr, v.said))
	first, _ := lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		v.done <- v.cmd.Wait()
	}()
	if !strings.HasPrefix(first, "mounted ") {
		t.Fatalf("the program said %q", first)
	}
	return v
}

// stop sends a signal and returns what the program said, and how it ended.
func (v *mounted) stop(sig os.Signal) (string, error) {
	v.t.Helper()
	if err := v.cmd.Process.Signal(sig); err != nil {
		v.t.Fatal(err)
	}
	err := <-v.done
	v.done <- err
	return v.said.String(), err
}

// end leaves no process and no mount, however the test went.
func (v *mounted) end() {
	_ = v.cmd.Process.Signal(os.Interrupt)
	if err := <-v.done; err != nil {
		v.t.Logf("the mount ended with %v", err)
	}
	_ = unix.Unmount(v.dir, unix.MNT_DETACH)
}

func isMounted(t *testing.T, dir string) bool {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), " "+dir+" ")
}

// readBlock reads one block without letting the kernel read ahead.
func readBlock(t *testing.T, path string, block int64) ([]byte, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, blockhash.TagBlockSize)
	n, err := f.ReadAt(buf, block*blockhash.TagBlockSize)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:n], err
}

// TestTamperingAfterMount flips a byte in a block that was read and in one
// that was not: the first stays as it was, the second is EIO, the rest reads.
func TestTamperingAfterMount(t *testing.T) {
	const blocks, tampered = 96, 80
	content := strings.Repeat("0123456789abcdef", blocks*blockhash.TagBlockSize/16)
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"big.bin": content, "small.txt": "small"})
	v := mountView(t, run.Dir)
	seen := filepath.Join(v.dir, "big.bin")
	source := filepath.Join(project.Root, "big.bin")

	if got, err := readBlock(t, seen, 0); err != nil || string(got) != content[:blockhash.TagBlockSize] {
		t.Fatalf("block 0 before: %v", err)
	}
	harness.Flip(t, source, 5)
	harness.Flip(t, source, tampered*blockhash.TagBlockSize+7)

	for block := int64(0); block < blocks; block++ {
		got, err := readBlock(t, seen, block)
		want := content[block*blockhash.TagBlockSize:][:blockhash.TagBlockSize]
		switch {
		case block == tampered && !errors.Is(err, syscall.EIO):
			t.Errorf("the tampered block: %v", err)
		case block != tampered && (err != nil || string(got) != want):
			t.Errorf("block %d: %v", block, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(v.dir, "small.txt")); err != nil || string(got) != "small" {
		t.Errorf("another file: %q, %v", got, err)
	}
	said, err := v.stop(os.Interrupt)
	if err != nil {
		t.Errorf("the mount ended with %v", err)
	}
	if n := strings.Count(said, "block 80"); n != 1 || !strings.Contains(said, "big.bin") {
		t.Errorf("the log names the block %d times: %s", n, said)
	}
	if strings.Contains(said, "block 0 ") {
		t.Errorf("the log names a block that was cached: %s", said)
	}
}

func TestForegroundMountEndsWithZero(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
			v := mountView(t, run.Dir)
			if said, err := v.stop(sig); err != nil {
				t.Errorf("%v: %s", err, said)
			}
			if isMounted(t, v.dir) {
				t.Error("it is still mounted")
			}
		})
	}
}

// TestBusyReader holds the view open: the holder is named, and then the view
// is removed from under it.
func TestBusyReader(t *testing.T) {
	t.Parallel()
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
	v := mountView(t, run.Dir)
	holder := exec.CommandContext(t.Context(), "sleep", "1000")
	holder.Dir = v.dir
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()

	said, err := v.stop(os.Interrupt)
	if err != nil {
		t.Errorf("it ended with %v", err)
	}
	if !strings.Contains(said, "sleep") {
		t.Errorf("the holder is not named: %s", said)
	}
	if isMounted(t, v.dir) {
		t.Error("it is still mounted")
	}
}

// TestSourceGoesAway replaces sources by things that would block or mislead a
// careless reader.
func TestSourceGoesAway(t *testing.T) {
	outputs := map[string]string{"fifo": "one", "link": "two", "gone": "three", "cut": "four", "dir": "five", "fine": "six"}
	project := bundletest.New(t)
	run := project.Run("run-1", outputs)
	v := mountView(t, run.Dir)
	at := func(name string) string { return filepath.Join(project.Root, name) }
	for _, name := range []string{"fifo", "link", "gone", "dir"} {
		if err := os.Remove(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	project.Write("two", "two")
	if err := errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("two", at("link")), os.Truncate(at("cut"), 1), os.Mkdir(at("dir"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, content := range outputs {
		got, err := os.ReadFile(filepath.Join(v.dir, name))
		if name == "fine" {
			if err != nil || string(got) != content {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		} else if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %q, %v; want EIO", name, got, err)
		}
	}
}

// TestUmountFromWithin: a view that only the shell of the command stands in names no holder
// that is the command itself, and says how to leave.
func TestUmountFromWithin(t *testing.T) {
	project := bundletest.New(t)
	project.Run("run", map[string]string{"a": "a"})
	v := mountAll(t, project)
	for _, script := range []string{"cd %s && spectrum umount .; exit $?", "cd %s && exec spectrum umount ."} {
		said, err := exec.Command("sh", "-c", fmt.Sprintf(script, v.dir)).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != statusRejected || strings.Contains(string(said), `"spectrum" (cwd`) || !strings.Contains(string(said), `hint: your shell is in it: leave it with "cd /", then run "spectrum umount `+v.dir+`"`) {
			t.Errorf("%v: %s", err, said)
		}
	}
	if _, stderr, status := spectrum(t, "umount", v.dir); status != 0 {
		t.Errorf("%d %s", status, stderr)
	}
}
