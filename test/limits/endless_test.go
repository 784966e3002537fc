package limits

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
)

// huge is the size of a file that is too large to be read to its end.
const huge = 1 << 37

// TestInterrupt: a command that hashes an endless file is ended by Ctrl-C, and a second one does
// no harm. Nothing is left.
func TestInterrupt(t *testing.T) {
	p := newProject(t)
	dir := p.forge(t, "run", forge.Outputs{"big": "small at first"})
	key, mountpoint := filepath.Join(p.dir, "key.pem"), t.TempDir()
	if u := p.run(t, nil, "keygen", "--out", key); u.status != 0 {
		t.Fatal(u)
	}
	u := p.run(t, nil, "preview", "-q", "--restore-root", p.root, dir)
	if u.status != 0 {
		t.Fatal(u)
	}
	big := filepath.Join(p.dir, "big")
	harness.Must(t, os.Truncate(big, huge))
	before := p.everything(t, mountpoint)
	for _, args := range [][]string{
		{"verify", dir},
		{"verify", "--law", "resume", dir},
		{"preview", "--restore-root", p.root, dir},
		{"mount", dir, mountpoint},
		{"commit", "--preview", strings.TrimSpace(u.stdout), "--approve", harness.Statement},
		{"seal", "--key", key, "--run-dir", p.runDir("new"), big},
	} {
		for _, signals := range []int{1, 2} {
			status, said := p.interrupt(t, big, signals, args...)
			if status != 130 {
				t.Errorf("%q, %d signals: exit %d: %s", args, signals, status, said)
			}
			if after := p.everything(t, mountpoint); !slices.Equal(before, after) {
				t.Errorf("%q: there was\n%q\nand is\n%q", args, before, after)
			}
		}
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if harness.Must(t, err); bytes.Contains(table, []byte(mountpoint)) {
		t.Error("a view is left")
	}
}

// everything lists the names of all that there is, but for the marks that a
// command was here, which locks are.
func (p *project) everything(t *testing.T, more string) []string {
	t.Helper()
	var all []string
	for _, top := range []string{p.dir, p.root, p.state, more} {
		harness.Must(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
			all = append(all, path)
			return err
		}))
	}
	return all
}

// interrupt runs a command until it has opened a file, and sends signals.
func (p *project) interrupt(t *testing.T, file string, signals int, args ...string) (status int, said string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(harness.Binary(), append([]string{"--no-progress", "--state-dir", p.state}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	harness.Must(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	await(t, cmd, ended, "it opens the file", func() bool { return hasOpen(cmd.Process.Pid, file) })
	for range signals {
		_ = cmd.Process.Signal(os.Interrupt)
	}
	await(t, cmd, ended, "it ends", func() bool { return harness.IsClosed(ended) })
	return harness.ExitStatus(cmd.ProcessState), out.String()
}

// await waits as long as patience lasts; a command that hangs is killed.
func await(t *testing.T, cmd *exec.Cmd, ended chan struct{}, what string, ok func() bool) {
	t.Helper()
	if !harness.Await(patience, func() bool { return ok() || harness.IsClosed(ended) }) {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-ended
		t.Fatalf("%q: waited in vain until %s", cmd.Args, what)
	}
	if harness.IsClosed(ended) && !ok() {
		t.Fatalf("%q ended before %s", cmd.Args, what)
	}
}

func hasOpen(pid int, file string) bool {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == file {
			info, err := os.ReadFile(strings.Replace(link, "/fd/", "/fdinfo/", 1))
			return err == nil && !bytes.Contains(info, []byte("flags:\t012")) // not a handle that cannot read
		}
	}
	return false
}

// TestGrowingFileEnds: a file that grows faster than it can be read is read to the size that it had when
// it was opened. Without that it would never end.
func TestGrowingFileEnds(t *testing.T) {
	p := newProject(t)
	dir := p.forge(t, "run", forge.Outputs{"log": "at first"})
	key, log := filepath.Join(p.dir, "key.pem"), filepath.Join(p.dir, "log")
	if u := p.run(t, nil, "keygen", "--out", key); u.status != 0 {
		t.Fatal(u)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for size := int64(16 * mib); ; size += 64 << 10 {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Microsecond):
				_ = os.Truncate(log, size)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for _, args := range [][]string{{"verify", "--json", dir}, {"verify", "--json", "--law", "resume", dir}} {
		if u := p.run(t, nil, args...); u.code != "HASH_MISMATCH" {
			t.Error(u)
		}
	}
	u := p.run(t, nil, "seal", "--json", "--key", key, "--run-dir", p.runDir("new"), log)
	if u.status != 1 || !strings.Contains(u.stderr, "changed while it was read") {
		t.Error(u)
	}
}
