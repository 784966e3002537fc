package fusemount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

func signalAndExit(t *testing.T, c *child, sig unix.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	c.line("unmounted")
	c.exit(0)
	if left := spectrumMounts(c.mount); len(left) > 0 {
		t.Errorf("still mounted: %v", left)
	}
}

func TestMountSignalEnds(t *testing.T) {
	src := source(t)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT} {
		for _, helper := range []bool{false, true} {
			t.Run(fmt.Sprint(sig, " helper ", helper), func(t *testing.T) {
				c := serveView(t, orders{Source: src, Helper: helper, Grace: time.Hour})
				client(t, "diff", "-r", src, c.mount)
				signalAndExit(t, c, sig)
				if log := c.log(); log != "" {
					t.Errorf("log: %s", log)
				}
			})
		}
	}
}

// hold has another process hold the view open in three ways.
func hold(t *testing.T, view string) *exec.Cmd {
	t.Helper()
	f, err := os.Open(filepath.Join(view, "a/one"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("sleep", "1000")
	cmd.Stdin = f
	cmd.Dir = filepath.Join(view, "many")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestMountBusyViewIsDetached(t *testing.T) {
	src := source(t)
	for name, o := range map[string]orders{
		"direct":      {Source: src, Grace: 200 * time.Millisecond},
		"fusermount3": {Source: src, Grace: 200 * time.Millisecond, Helper: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := serveView(t, o)
			holder := hold(t, c.mount)
			signalAndExit(t, c, unix.SIGTERM)
			for _, want := range []string{
				fmt.Sprintf("pid=%d command=sleep how=cwd path=%s/many", holder.Process.Pid, c.mount),
				fmt.Sprintf("pid=%d command=sleep how=fd path=%s/a/one", holder.Process.Pid, c.mount),
				"still in use: detaching it",
			} {
				if got := strings.Count(c.log(), want); got != 1 {
					t.Errorf("logged %d times: %s\n%s", got, want, c.log())
				}
			}
		})
	}
}

// TestMountBusyReader has a reader in the middle of a slow file.
func TestMountBusyReader(t *testing.T) {
	for _, helper := range []bool{false, true} {
		src := source(t)
		c := serveView(t, orders{Source: src, Helper: helper, Delay: 50 * time.Millisecond})
		reader := slowReader(t, c.mount)
		signalAndExit(t, c, unix.SIGINT)
		if err := reader.Wait(); err == nil {
			t.Error("the reader got to the end of a file that was removed")
		}
		if !strings.Contains(c.log(), "command=dd how=fd") {
			t.Errorf("log: %s", c.log())
		}
	}
}

// TestMountGrace: a holder that ends in time suffices; a second signal ends a long grace period.
func TestMountGrace(t *testing.T) {
	src := source(t)
	t.Run("holder goes", func(t *testing.T) {
		c := serveView(t, orders{Source: src, Grace: time.Hour})
		holder := hold(t, c.mount)
		if err := c.cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.logged("the view is in use")
		client(t, "diff", "-r", src, c.mount) // still served
		if err := holder.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.line("unmounted")
		c.exit(0)
		if strings.Contains(c.log(), "detaching") {
			t.Errorf("log: %s", c.log())
		}
	})
	t.Run("second signal", func(t *testing.T) {
		c := serveView(t, orders{Source: src, Grace: time.Hour})
		hold(t, c.mount)
		if err := c.cmd.Process.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.logged("the view is in use")
		signalAndExit(t, c, unix.SIGTERM)
	})
}

func TestMountEndedFromOutside(t *testing.T) {
	src := source(t)
	for _, how := range []string{"Unmount", "umount", "fusermount3"} {
		t.Run(how, func(t *testing.T) {
			c := serveView(t, orders{Source: src, Helper: how == "fusermount3"})
			client(t, "diff", "-r", src, c.mount)
			switch how {
			case "Unmount":
				if err := Unmount(c.mount); err != nil {
					t.Fatal(err)
				}
			case "umount":
				client(t, "umount", c.mount)
			case "fusermount3":
				client(t, "fusermount3", "-u", c.mount)
			}
			c.line("ended")
			c.exit(0)
		})
	}
}

func TestMountUnmountRejects(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src})
	holder := hold(t, c.mount)
	err := Unmount(c.mount)
	var busy *BusyError
	if !errors.As(err, &busy) || !errors.Is(err, unix.EBUSY) {
		t.Fatalf("a live view in use: %v", err)
	}
	if want := fmt.Sprintf(`process %d "sleep" (cwd %q)`, holder.Process.Pid, c.mount+"/many"); !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := Unmount(filepath.Join(c.mount, "a")); !errors.Is(err, ErrNotMounted) {
		t.Errorf("a directory in the view: %v", err)
	}
	if err := Unmount(t.TempDir()); !errors.Is(err, ErrNotMounted) {
		t.Errorf("a plain directory: %v", err)
	}
	if err := Unmount(filepath.Join(src, "a-b")); !errors.Is(err, ErrNotDirectory) {
		t.Errorf("a file: %v", err)
	}
	if err := Unmount(filepath.Join(src, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	other := t.TempDir()
	mountOther(t, "tmpfs", other)
	if err := Unmount(other); !errors.Is(err, ErrNotSpectrum) || !strings.Contains(err.Error(), "tmpfs") {
		t.Errorf("a foreign mount: %v", err)
	}
	client(t, "mountpoint", other)
	client(t, "diff", "-r", src, c.mount)
}

// slowReader starts a process that reads a big file in pieces so small that it is
// never done, and waits until it is at it.
func slowReader(t *testing.T, view string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("dd", "bs=64", "iflag=direct", "of=/dev/null", "if="+filepath.Join(view, "big/file"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "the reader at work", func() bool { return strings.Contains(fmt.Sprint(Holders(view)), `"dd" (fd `) })
	return cmd
}

// TestMountStuck: a source that does not answer blocks its readers, and the goroutine that waits
// for it; all other readers are served, the view can be unmounted, and the process can end.
func TestMountStuck(t *testing.T) {
	c := serveView(t, orders{Source: source(t), Delay: time.Hour})
	reader := slowReader(t, c.mount)
	client(t, "ls", "-lR", c.mount)
	if err := c.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.exit(1)
	if !strings.Contains(c.log(), ErrStuck.Error()) {
		t.Errorf("log: %s", c.log())
	}
	if spectrumMounts(c.mount)[c.mount] {
		t.Error("still mounted")
	}
	if err := reader.Wait(); err == nil {
		t.Error("the reader got what was never read")
	}
}

// TestMountDead kills the server, with readers inside.
func TestMountDead(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src, Delay: time.Millisecond})
	client(t, "diff", "-r", src, c.mount) // dead although everything is cached
	hold(t, c.mount)
	reader := slowReader(t, c.mount)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.exit(-1)
	if err := reader.Wait(); err == nil {
		t.Error("the reader does not notice")
	}
	if !spectrumMounts(c.mount)[c.mount] {
		t.Fatal("the mount has gone by itself")
	}
	if err := CheckMountpoint(c.mount); !errors.Is(err, ErrDeadMount) {
		t.Errorf("CheckMountpoint: %v, want ErrDeadMount", err)
	}
	if _, err := mountWith(hostSystem(), oneFile(t), c.mount, Options{}); !errors.Is(err, ErrDeadMount) {
		t.Errorf("Mount: %v, want ErrDeadMount", err)
	}
	if err := Unmount(c.mount); err != nil {
		t.Fatal(err)
	}
	if err := CheckMountpoint(c.mount); err != nil {
		t.Errorf("after Unmount: %v", err)
	}
	if err := Unmount(c.mount); !errors.Is(err, ErrNotMounted) {
		t.Errorf("Unmount again: %v", err)
	}
}

// TestMountStopped: a server that does not answer is not dead, and Unmount does not wait for it.
func TestMountStopped(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src})
	harness.Freeze(t, c.cmd.Process.Pid)
	if err := Unmount(c.mount); err != nil {
		t.Error(err)
	}
	if err := CheckMountpoint(c.mount); err != nil {
		t.Errorf("after Unmount: %v", err)
	}
	if err := c.cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.line("ended")
	c.exit(0)

	c = serveView(t, orders{Source: src})
	harness.Freeze(t, c.cmd.Process.Pid)
	if err := CheckMountpoint(c.mount); !errors.Is(err, ErrAlreadyMounted) {
		t.Errorf("CheckMountpoint: %v, want ErrAlreadyMounted", err)
	}
	if err := c.cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	signalAndExit(t, c, unix.SIGTERM)
}

// TestMountAborted cuts the connection, as the kernel's administrator can.
func TestMountAborted(t *testing.T) {
	control := t.TempDir()
	mountOther(t, "fusectl", control)
	c := serveView(t, orders{Source: source(t)})
	var st unix.Stat_t
	if err := unix.Stat(c.mount, &st); err != nil {
		t.Fatal(err)
	}
	abort := filepath.Join(control, fmt.Sprint(unix.Minor(st.Dev)), "abort")
	if err := os.WriteFile(abort, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	c.line("ended")
	c.exit(0)
	if spectrumMounts(c.mount)[c.mount] {
		t.Error("still mounted")
	}
}

func TestMountHidden(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src})
	mountOther(t, "tmpfs", c.mount)
	if err := c.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.exit(1)
	if !strings.Contains(c.log(), "another mount hides the view") {
		t.Errorf("log: %s", c.log())
	}
	if fsType := client(t, "stat", "-f", "-c", "%T", c.mount); fsType != "tmpfs\n" {
		t.Errorf("what is on top is %s", fsType)
	}
}

func TestMountInsideIsAHolder(t *testing.T) {
	c := serveView(t, orders{Source: source(t)})
	inside := filepath.Join(c.mount, "a")
	mountOther(t, "tmpfs", inside)
	want := Holder{How: "mount", Path: inside}
	if got := Holders(c.mount); len(got) != 1 || got[0] != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMountMapped(t *testing.T) {
	c := serveView(t, orders{Source: source(t)})
	f, err := os.Open(filepath.Join(c.mount, "odd/ space, comma\\ \xff\x01\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 10, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := Holders(c.mount)
	if len(got) != 1 || got[0].PID != os.Getpid() || got[0].How != "map" || !strings.HasPrefix(got[0].Path, c.mount+"/odd/ space, comma") {
		t.Errorf("%q", got)
	}
	if err := unix.Munmap(m); err != nil {
		t.Fatal(err)
	}
	if got := Holders(c.mount); len(got) != 0 {
		t.Errorf("it is not in use any more: %v", got)
	}
}

func TestMountCyclesLeaveNothing(t *testing.T) {
	for name, o := range map[string]orders{"direct": {Cycles: sample.Of(20, 100, 100)}, "fusermount3": {Cycles: sample.Of(4, 10, 10), Helper: true}} {
		t.Run(name, func(t *testing.T) {
			o.Scenario, o.Source, o.Mountpoint = "cycles", t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(o.Source, "f"), []byte("hello"), 0o644); err != nil {
				t.Fatal(err)
			}
			c := start(t, o)
			t.Log(c.line("same"))
			c.exit(0)
		})
	}
}

// mountOther mounts another file system until the test ends.
func mountOther(t *testing.T, kind, dir string) {
	t.Helper()
	if err := unix.Mount("none", dir, kind, 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// oneFile is a tree whose file is never read.
func oneFile(t *testing.T) *fusefs.Tree {
	t.Helper()
	tree, err := fusefs.NewTree(func(yield func(fusefs.File) bool) {
		yield(fusefs.File{Path: "f", Source: fusefs.SourceFunc(func() (fusefs.Content, error) { return nil, errors.New("not to be read") })})
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
