package view

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// TestUnmountUnderLoad ends a view under its readers, as Ctrl-C does: it goes within its grace,
// and they see right bytes and then an error. Before that, umount fails and names the readers.
func TestUnmountUnderLoad(t *testing.T) {
	t.Parallel() // most of it is waiting for the grace to pass
	for name, m := range map[string]harness.Mounting{"plain": {}, "race": withRace(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := large()
			p := harness.New(t, files.files())
			v := p.Mount(t, m)
			held, opened := startReaders(t, endless(v, files, true)), startReaders(t, endless(v, files, false))
			held.begin()
			opened.begin()
			r := p.Run(t, nil, "umount", v.Dir)
			if reader := fmt.Sprintf("process %d", held.cmd.Process.Pid); r.Status != 1 || !strings.Contains(r.Stderr, reader) {
				t.Errorf("umount under load: %v, want it to name %s", r, reader)
			}
			v.End(t)
			ends(t, held.finish(), readersAtOnce, unix.ENOTCONN, unix.ECONNABORTED, unix.EIO)
			ends(t, opened.finish(), readersAtOnce, unix.ENOTCONN, unix.ECONNABORTED, unix.EIO, unix.ENOENT)
			if !strings.Contains(v.Log(), fmt.Sprint("pid=", held.cmd.Process.Pid)) {
				t.Errorf("the reader that held it is not named: %s", v.Log())
			}
		})
	}
}

// TestManySignals: however many signals it receives, a server unmounts first.
func TestManySignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			v := harness.New(t, harness.Small()).Mount(t, harness.Mounting{})
			holder := exec.Command("sleep", "1000")
			holder.Dir = v.Dir
			harness.Must(t, holder.Start())
			defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
			v.Signal(t, sig)
			v.AwaitLog(t, fmt.Sprint("pid=", holder.Process.Pid))
			for range 3 {
				_ = v.Server.Signal(sig) // it may have ended by now
			}
			if status := v.Wait(t); status != 0 || v.Mounted(t) {
				t.Errorf("status %d, mounted %v", status, v.Mounted(t))
			}
		})
	}
}

// TestCycles mounts, reads and unmounts again and again, several views at once,
// in the foreground and in the background. A server that ends late must let the
// next view alone that is mounted in its place.
func TestCycles(t *testing.T) {
	p := harness.New(t, harness.Small())
	const workers = 4
	cycles := sample.Of(5, 25, 25)
	var all sync.WaitGroup
	for w := range workers {
		dir := t.TempDir()
		all.Go(func() {
			for i := range cycles {
				t.Run(fmt.Sprintf("%d.%d", w, i), func(t *testing.T) { cycle(t, p, dir, (w+i)%2 == 0) })
			}
		})
	}
	all.Wait()
	if left := table(t); left != "" {
		t.Errorf("mounts are left:\n%s", left)
	}
	harness.Eventually(t, "all servers have ended", func() bool { return len(commands(t, p.State)) == 0 })
	t.Logf("%d cycles, %d at a time", workers*cycles, workers)
}

// cycle is one life of a view.
func cycle(t *testing.T, p *harness.Project, dir string, daemon bool) {
	var v *harness.View
	if daemon {
		t.Cleanup(func() {
			if unix.Unmount(dir, unix.MNT_DETACH) == nil {
				t.Error("the view is still mounted")
			}
		})
		p.Must(t, "mount", "--daemon", p.Runs[0].Dir, dir)
	} else {
		v = p.MountOn(t, dir, harness.Mounting{})
	}
	for _, name := range []string{"top.txt", "new/sub/b.txt"} {
		// Not in this process: what is forked here meanwhile would hold the file.
		if got := output(t, nil, "cat", filepath.Join(dir, name)); got != p.Runs[0].Files[name] {
			t.Errorf("%s reads as %q", name, got)
		}
	}
	unmount(t, p, dir)
	if v == nil {
		return
	}
	if status := v.Wait(t); status != 0 {
		t.Errorf("the server ended with status %d: %s", status, v.Log())
	}
}

// commands are the processes with this in their command line.
func commands(t *testing.T, text string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	harness.Must(t, err)
	return slices.DeleteFunc(lines, func(path string) bool {
		line, err := os.ReadFile(path)
		return err != nil || !strings.Contains(string(line), text)
	})
}
