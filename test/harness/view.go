package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Mounting says how a view is mounted. The zero value is a mount in the
// foreground by the binary under test.
type Mounting struct {
	Binary string   // another build of the program
	Env    []string // more environment
	Flags  []string // of the command
	Under  []string // a command that becomes the server, such as prlimit

	Patience time.Duration // how long it may take to be ready; 0: as any command
}

// A View is a mounted view. A process of its own serves it.
type View struct {
	Dir    string // the mount point, as the program names it
	Server *os.Process

	out, log string        // the files of stdout and stderr
	ended    chan struct{} // closed when the server has ended
	status   int           // then
}

// Mount mounts the runs of the project on an empty directory until the test
// ends. A server that does not end well then, or leaves the mount, is an error.
func (p *Project) Mount(t testing.TB, m Mounting) *View {
	t.Helper()
	return p.MountOn(t, t.TempDir(), m)
}

// MountOn is Mount on this directory.
func (p *Project) MountOn(t testing.TB, dir string, m Mounting) *View {
	t.Helper()
	files := t.TempDir()
	v := &View{out: filepath.Join(files, "out"), log: filepath.Join(files, "log"), ended: make(chan struct{})}
	Must(t, v.start(append(m.argv(p), dir), m.Env))
	t.Cleanup(func() { v.clean(t, dir) })
	var answer struct {
		Mountpoint string `json:"mountpoint"`
	}
	v.await(t, max(m.Patience, Patience), "the view is ready", func() bool {
		said, err := os.ReadFile(v.out)
		return err == nil && json.Unmarshal(said, &answer) == nil
	})
	v.Dir = answer.Mountpoint
	return v
}

// argv is the command line of a mount, without the mount point.
func (m Mounting) argv(p *Project) []string {
	argv := p.Argv(append([]string{"mount", "--json"}, m.Flags...)...)
	if m.Binary != "" {
		argv[0] = m.Binary
	}
	for _, run := range p.Runs {
		argv = append(argv, run.Dir)
	}
	return append(append([]string{}, m.Under...), argv...)
}

func (v *View) start(argv, env []string) error {
	out, err := os.Create(v.out)
	if err != nil {
		return err
	}
	defer out.Close()
	log, err := os.Create(v.log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), out, log
	if err := cmd.Start(); err != nil {
		return err
	}
	v.Server = cmd.Process
	go func() {
		_ = cmd.Wait()
		v.status = ExitStatus(cmd.ProcessState)
		close(v.ended)
	}()
	return nil
}

// ExitStatus returns the exit status of a process that has ended, or 128 and the signal that
// ended it.
func ExitStatus(state *os.ProcessState) int {
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// await waits until something is so, as long as the server lives.
func (v *View) await(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	if !Await(patience, func() bool { return ok() || v.HasEnded() }) {
		t.Fatalf("waited in vain until %s: %s", what, v.Log())
	}
	if v.HasEnded() && !ok() {
		t.Fatalf("the server ended with status %d before %s: %s", v.status, what, v.Log())
	}
}

// Path is the path of a file in the view.
func (v *View) Path(name string) string { return filepath.Join(v.Dir, name) }

// Log is what the server has said on stderr so far.
func (v *View) Log() string {
	said, _ := os.ReadFile(v.log)
	return string(said)
}

// AwaitLog waits until the server has said something.
func (v *View) AwaitLog(t testing.TB, text string) {
	t.Helper()
	v.await(t, Patience, fmt.Sprintf("it says %q", text), func() bool { return strings.Contains(v.Log(), text) })
}

// HasEnded reports whether the server has ended.
func (v *View) HasEnded() bool { return IsClosed(v.ended) }

// Wait waits for the server to end and returns its exit status, or 128 and the
// signal that killed it.
func (v *View) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-v.ended:
		return v.status
	case <-time.After(Patience):
		t.Fatalf("the server does not end: %s", v.Log())
		return 0
	}
}

// Signal sends the server a signal.
func (v *View) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	Must(t, v.Server.Signal(sig))
}

// End ends the view as Ctrl-C does, and checks that nothing is left.
func (v *View) End(t testing.TB) {
	t.Helper()
	v.Signal(t, os.Interrupt)
	if status := v.Wait(t); status != 0 {
		t.Errorf("the server ended with status %d: %s", status, v.Log())
	}
	if v.Mounted(t) {
		t.Error("the view is still mounted")
	}
}

// Mounted reports whether anything is mounted on the mount point.
func (v *View) Mounted(t testing.TB) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	Must(t, err)
	return strings.Contains(string(table), " "+v.Dir+" ")
}

// clean leaves no process and no mount, however the test went.
func (v *View) clean(t testing.TB, dir string) {
	if v.Dir != "" && !v.HasEnded() && !t.Failed() {
		v.End(t)
	}
	_ = v.Server.Kill()
	<-v.ended
	if v.Dir != "" && !t.Failed() && v.Mounted(t) {
		t.Errorf("a view is left on %q", v.Dir)
	}
	for syscall.Unmount(dir, syscall.MNT_DETACH) == nil {
	}
	for _, bad := range []string{"DATA RACE", "panic", "fatal error"} {
		if strings.Contains(v.Log(), bad) {
			t.Errorf("the server said:\n%s", v.Log())
			return
		}
	}
	if t.Failed() {
		t.Logf("the server said:\n%s", v.Log())
	}
}
