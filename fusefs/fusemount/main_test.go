package fusemount

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childEnv); ok {
		os.Exit(childMain(text))
	}
	if os.Geteuid() == 0 && os.Getenv(apartEnv) == "" {
		os.Exit(runApart())
	}
	before := spectrumMounts("")
	code := m.Run()
	if sharedSource != "" {
		_ = os.RemoveAll(sharedSource)
	}
	for path := range spectrumMounts("") {
		if !before[path] && strings.Contains(path, "/TestMount") {
			fmt.Fprintln(os.Stderr, "left mounted:", path)
			code = 1
		}
	}
	os.Exit(code)
}

// apartEnv is set in a test process with its own mount namespace.
const apartEnv = "FUSEFS_TEST_APART"

// runApart runs this process again in its own mount namespace: a rollback that is tested on this
// machine at the same time would query these views, some of which are stuck or hostile.
func runApart() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), apartEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is per thread
	if err := cmd.Run(); cmd.ProcessState == nil {
		panic(err)
	}
	return cmd.ProcessState.ExitCode()
}

// spectrumMounts returns the mount points of views at and below a directory.
func spectrumMounts(dir string) map[string]bool {
	found, err := mountinfo.GetMounts(mountinfo.FSTypeFilter(fsType))
	if err != nil {
		panic(err)
	}
	paths := make(map[string]bool)
	for _, m := range found {
		if strings.HasPrefix(m.Mountpoint, dir) {
			paths[m.Mountpoint] = true
		}
	}
	return paths
}

// child is a running child process.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	mount  string // mount point, real path
	lines  chan string
	exited chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

// Write takes the child's stderr.
func (c *child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stderr.Write(p)
}

func (c *child) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stderr.String()
}

// start runs a child. Whatever becomes of the test, the child is gone and its
// mounts are removed at the end.
func start(t *testing.T, o orders, env ...string) *child {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, lines: make(chan string, 10000), exited: make(chan struct{})}
	c.cmd = exec.Command("/proc/self/exe")
	c.cmd.Env = append(append(os.Environ(), childEnv+"="+string(text), "GORACE=atexit_sleep_ms=0"), env...)
	c.cmd.Stderr = c
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if o.Scenario == "namespace" {
		c.cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.clean(o.Mountpoint) })
	go c.read(out)
	return c
}

func (c *child) read(out io.Reader) {
	s := bufio.NewScanner(out)
	for s.Scan() {
		c.lines <- s.Text()
	}
	close(c.lines)
	_ = c.cmd.Wait()
	close(c.exited)
}

func (c *child) clean(mountpoint string) {
	_ = c.cmd.Process.Kill()
	<-c.exited
	if c.t.Failed() {
		c.t.Logf("stderr of the child:\n%s", c.log())
	}
	takeAway(filepath.Dir(mountpoint))
}

// takeAway takes every view at and below a directory away.
func takeAway(dir string) {
	for range 10 { // they may be stacked
		for path := range spectrumMounts(dir) {
			_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
}

// mountDir is a directory to mount on; a failing test leaves nothing there.
func mountDir(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() { takeAway(dir) })
	return dir
}

// hang is the time after which a test fails. No expectation depends on it.
const hang = 5 * time.Minute

// line waits for a line of stdout that begins with a word.
func (c *child) line(word string) string {
	c.t.Helper()
	timeout := time.After(hang)
	for {
		select {
		case s, ok := <-c.lines:
			if !ok {
				<-c.exited
				c.t.Fatalf("the child ended (%v) without saying %q", c.cmd.ProcessState, word)
			}
			if rest, ok := strings.CutPrefix(s, word); ok {
				return strings.TrimSpace(rest)
			}
		case <-timeout:
			c.t.Fatalf("the child does not say %q", word)
		}
	}
}

// exit waits for the child to end, with the status.
func (c *child) exit(status int) {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-time.After(hang):
		c.t.Fatal("the child does not end")
	}
	if got := c.cmd.ProcessState.ExitCode(); got != status {
		c.t.Fatalf("the child ended with %v, want status %d", c.cmd.ProcessState, status)
	}
}

// logged waits until the child has logged a text.
func (c *child) logged(text string) {
	c.t.Helper()
	eventually(c.t, "log line with "+text, func() bool { return strings.Contains(c.log(), text) })
}

// serveView serves a directory in a child until the test ends.
func serveView(t *testing.T, o orders, env ...string) *child {
	t.Helper()
	o.Scenario = "serve"
	if o.Mountpoint == "" {
		o.Mountpoint = mountDir(t)
	}
	c := start(t, o, env...)
	c.mount = c.line("ready")
	return c
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !harness.Await(hang, ok) {
		t.Fatalf("waited in vain for: %s", what)
	}
}

// runClient runs a program that uses a view.
func runClient(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// client runs a program that uses a view, and returns its output.
func client(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}
