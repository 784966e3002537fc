package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/hungfs"
)

// inHungDirectory is the address of a far run as a directory, on a file system that can hang.
func (f *farRun) inHungDirectory(t *testing.T) (*hungfs.FS, string) {
	t.Helper()
	hung := hungfs.Mount(t, f.dir)
	return hung, "file://" + hung.Dir + "@" + f.root
}

// TestViewOfSilentStore: a reader of a view has an I/O error when the time of --timeout has passed once:
// the requests are those of one read, although the kernel requests a page twice. Then the view works as
// before, when the store answers.
func TestViewOfSilentStore(t *testing.T) {
	f := newFarRun(t, true)
	hung, address := f.inHungDirectory(t)
	for _, test := range []struct {
		address      string
		hang, answer func()
	}{
		{f.address, func() { f.proxy.Break(farstore.On(http.MethodGet, "/packs/", 0, farstore.Silence)) }, func() { f.proxy.Break(nil) }},
		{address, hung.HangReads, hung.Answer},
	} {
		v := mountView(t, "--lazy", "--timeout", "3s", test.address)
		f.seen()
		test.hang()
		if raw, err := os.ReadFile(filepath.Join(v.dir, "out/a")); !errors.Is(err, syscall.EIO) || len(raw) > 0 {
			t.Errorf("%s: %q, %v", test.address, raw, err)
		}
		if _, packs := f.seen(); packs > 4 {
			t.Errorf("%s: %d requests: more than those of one read", test.address, packs)
		}
		test.answer()
		harness.Eventually(t, "the view works again", func() bool {
			raw, err := os.ReadFile(filepath.Join(v.dir, "out/a"))
			return err == nil && string(raw) == f.outputs["out/a"]
		})
		if said, err := v.stop(os.Interrupt); err != nil || strings.Contains(said, "level=ERROR") {
			t.Errorf("%s: %v: %s", test.address, err, said)
		}
	}
}

// TestLooksAtHungDirectory: ls and cat of a store in a directory whose file system does not answer end
// with an error after --timeout, and at once when they are interrupted.
func TestLooksAtHungDirectory(t *testing.T) {
	f := newFarRun(t, true)
	hung, address := f.inHungDirectory(t)
	store, _, _ := strings.Cut(address, "@")
	for _, args := range [][]string{{"ls", store}, {"ls", "--lazy", address}, {"cat", "--lazy", address, "out/a"}, {"cat", address, "out/a"}} {
		hung.Hang()
		out, said, status := spectrum(t, append(args, "--timeout", "300ms")...)
		if status != statusMachine || out != "" || !strings.Contains(said, "the file system does not answer\n") || !strings.Contains(said, slowHint) {
			t.Errorf("%q: %q, %q, exit status %d", args, out, said, status)
		}
		hung.Answer()
		harness.Eventually(t, "nothing waits", func() bool { return hung.Waiting() == 0 })

		hung.Hang()
		cmd := command(t, append(args, "--timeout", time.Hour.String())...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "it waits", func() bool { return hung.Waiting() > 0 })
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if status := cmd.ProcessState.ExitCode(); status != statusInterrupted {
			t.Errorf("%q was interrupted: exit status %d", args, status)
		}
		hung.Answer()
	}
	hung.HangReads()
	if out, said, status := spectrum(t, "cat", "--lazy", "--timeout", "300ms", address, "out/a"); status != statusMachine || out != "" {
		t.Errorf("%q, %q, exit status %d", out, said, status)
	}
	hung.Answer()
	if out := must(t, "cat", "--lazy", address, "out/a"); out != f.outputs["out/a"] {
		t.Errorf("%q", out)
	}
}

// TestTimeoutHint: --timeout is a hint of the commands that have it.
func TestTimeoutHint(t *testing.T) {
	f := newFarRun(t, true)
	f.proxy.Break(farstore.On(http.MethodGet, "/", 0, farstore.Status(http.StatusForbidden)))
	project := filepath.Join(t.TempDir(), "new")
	for _, test := range []struct {
		args []string
		has  bool
	}{
		{[]string{"ls", f.address}, true}, {[]string{"cat", f.address, "x"}, true}, {[]string{"diff", f.address, t.TempDir()}, true}, {[]string{"pull", f.address, project}, true},
		{[]string{"mount", f.address, t.TempDir()}, true},
		{[]string{"verify", f.address}, false}, {[]string{"preview", f.address, t.TempDir()}, false}, {[]string{"commit", f.address, t.TempDir()}, false},
	} {
		if _, said, status := spectrum(t, test.args...); status != statusMachine || strings.Contains(said, slowHint) != test.has || strings.Contains(said, "--timeout") != test.has {
			t.Errorf("%q: %q, exit status %d", test.args, said, status)
		}
	}
}
