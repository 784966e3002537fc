package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestStuckSource: row 78, sources on a file system whose server does not answer
// (one that has gone is in the table). Each command that is stuck in it ends with
// Ctrl-C, as interrupted, and leaves nothing.
func TestStuckSource(t *testing.T) {
	for _, command := range []string{"verify", "mount", "ls", "cat", "diff", "preview", "commit"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			waiting := p.stuckProject()
			args := p.args(command, append(p.rootFlag(), p.dirs...)...)
			switch command {
			case "verify", "ls":
				args = p.args(command, p.dirs...)
			case "cat": // without --json
				args = []string{"cat", "--project-root", p.project, p.dirs[0], "RESTORE_REPORT.json"}
			case "diff":
				args = p.args("diff", p.dirs[0], p.top+"/fresh")
			case "mount":
				args = p.args("mount", p.dirs[0], p.mountpoint)
			}
			before := p.picture()
			p.started = make(chan *os.Process, 1)
			// With the signal ignored at its start the program shows when it begins to catch it.
			p.under = []string{"sh", "-c", `trap "" INT; exec "$@"`, "sh"}
			go func() {
				process := <-p.started
				if harness.Await(harness.Patience, func() bool {
					raw, err := os.ReadFile(waiting)
					return err == nil && strings.TrimSpace(string(raw)) != "0" && catchesInterrupt(process.Pid)
				}) {
					_ = process.Signal(os.Interrupt)
				}
			}()
			if r := p.run(args...); r.hung || r.status != 130 || r.code() != "INTERRUPTED" && command != "cat" {
				t.Errorf("stuck and interrupted: %v", r)
			}
			p.changed(before, command, nothing)
		})
	}
}

// catchesInterrupt reports whether a process that was started with SIGINT ignored has a
// handler for it by now. A signal before that would be lost.
func catchesInterrupt(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "\nSigCgt:")
	caught, err := strconv.ParseUint(strings.Fields(rest + " 0")[0], 16, 64)
	return err == nil && caught&(1<<(syscall.SIGINT-1)) != 0
}

// stuckProject makes the project root a view whose server is stopped, and names
// the file that says how many requests wait for it.
func (p *place) stuckProject() (waiting string) {
	p.Helper()
	view, control := p.TempDir(), p.TempDir()
	harness.Mount(p, "none", control, "fusectl", 0, "")
	s := p.mount(view, p.args("mount", p.dirs[0], view)...)
	if s.view == "" {
		p.Fatal(s.reply)
	}
	var st unix.Statx_t
	harness.Must(p, unix.Statx(unix.AT_FDCWD, view, unix.AT_STATX_DONT_SYNC, 0, &st))
	waiting = filepath.Join(control, fmt.Sprint(st.Dev_minor), "waiting")
	if n := strings.TrimSpace(harness.ReadFile(p, waiting)); n != "0" {
		p.Fatalf("%s requests wait already", n)
	}
	harness.Freeze(p, s.process.Pid)
	p.Cleanup(func() { harness.Must(p, s.process.Signal(syscall.SIGCONT)) })
	p.project, p.apart = view, true
	return waiting
}
