package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A reply is what a command answered.
type reply struct {
	command        string
	status         int // the exit status, or 128 and the signal that killed it
	hung           bool
	stdout, stderr string
	answer         answer
}

// An answer is the JSON of any command, as far as this package reads it.
type answer struct {
	OK         bool     `json:"ok"`
	Code       *string  `json:"code"`
	Cause      *string  `json:"cause_code"`
	Phase      string   `json:"phase"`
	PreviewID  string   `json:"preview_id"`
	BundleRoot string   `json:"bundle_root"`
	Roots      []string `json:"bundle_roots"`
	Mountpoint string   `json:"mountpoint"`
	Files      []struct {
		Path string `json:"path"`
	} `json:"files"`
	Conflicts []struct {
		Type string `json:"type"`
		Path string `json:"item"`
	} `json:"conflicts"`
}

// inTheWay are the paths of what a preview finds in the way of a restore.
func (a answer) inTheWay() (paths []string) {
	for _, c := range a.Conflicts {
		if c.Type == "state_conflict" {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

func (r reply) String() string {
	return fmt.Sprintf("%s: exit %d, stdout %.600q, stderr %.600q", r.command, r.status, r.stdout, r.stderr)
}

// code is the code of an answer; OK if there is none.
func (r reply) code() string {
	if r.answer.Code == nil {
		return string(accepted)
	}
	return *r.answer.Code
}

// args are the arguments of a command over the candidate.
func (p *place) args(command string, more ...string) []string {
	args := []string{command, "--json"}
	if p.apart {
		args = append(args, "--project-root", p.project)
	}
	if p.chain && command != "seal" {
		args = append(args, "--chain")
	}
	return append(args, more...)
}

// argv is the whole command line.
func (p *place) argv(args []string) []string {
	return slices.Concat(p.under, []string{p.program(), "--no-progress", "--state-dir", p.state}, args)
}

// cmd is a command of the program, run in the project as the place requires it.
func (p *place) cmd(ctx context.Context, argv []string) *exec.Cmd {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.SysProcAttr = p.cwd(), &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // strace alone would leave the program
	if p.user != 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: p.user, Gid: p.user}
	}
	return c
}

// cwd is where the commands run: in the project, where seal is given its files.
func (p *place) cwd() string {
	if p.started != nil {
		return p.top // the project does not answer
	}
	return p.project
}

// run runs a command to its end.
func (p *place) run(args ...string) reply {
	p.Helper()
	command := args[0]
	if p.faults != nil {
		if plan := p.faults(command); plan != nil {
			got := (&harness.Project{State: p.state}).Run(p, plan, args...)
			return answered(reply{command: command, status: got.Status, hung: got.Hung, stdout: got.Stdout, stderr: got.Stderr})
		}
	}
	ctx, cancel := context.WithTimeout(p.Context(), harness.Patience)
	defer cancel()
	argv, trace := p.argv(args), ""
	if len(p.closed) > 0 {
		trace = filepath.Join(p.TempDir(), "trace")
		argv = append([]string{"strace", "-f", "-y", "-qq", "-o", trace, "-e", "signal=none", "-e", "trace=open,openat,openat2,creat"}, argv...)
	}
	var out, diag bytes.Buffer
	c := p.cmd(ctx, argv)
	c.Stdout, c.Stderr, c.WaitDelay = &out, &diag, harness.Patience
	err := c.Start()
	if err == nil {
		if p.started != nil {
			p.started <- c.Process
		}
		err = c.Wait()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		p.Fatalf("%.1000q: %v", argv, err)
	}
	r := reply{command: command, hung: ctx.Err() != nil, stdout: out.String(), stderr: diag.String()}
	r.status = harness.ExitStatus(c.ProcessState)
	if trace != "" {
		p.noneOpened(command, trace)
	}
	return answered(r)
}

func answered(r reply) reply {
	_ = json.Unmarshal([]byte(r.stdout), &r.answer)
	return r
}

var openForm = regexp.MustCompile(`\b(?:open|openat|openat2|creat)\(.*= \d+<(.*)>$`)

// noneOpened fails if a file that must not be opened was opened for reading. A handle that cannot
// read (O_PATH) does not count.
func (p *place) noneOpened(command, trace string) {
	p.Helper()
	raw, err := os.ReadFile(trace)
	harness.Must(p, err)
	n, opened := openings(string(raw), p.closed)
	if n == 0 {
		p.Errorf("%s: strace saw no open at all", command)
	}
	if len(opened) > 0 {
		p.Errorf("%s opened what it must not:\n%s", command, strings.Join(opened, "\n"))
	}
}

// openings are the lines of a trace that open one of the paths, which are
// patterns of package filepath, for reading, and
// how many opens there are. A call of which another thread's came in between
// has its path in the second of its two lines.
func openings(trace string, paths []string) (n int, lines []string) {
	begun := map[string]string{}
	for line := range strings.Lines(trace) {
		thread, call, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if head, ok := strings.CutSuffix(call, " <unfinished ...>"); ok {
			begun[thread] = head
			continue
		}
		if i := strings.Index(call, " resumed>"); i >= 0 {
			call = begun[thread] + call[i+len(" resumed>"):]
		}
		m := openForm.FindStringSubmatch(call)
		if m == nil {
			continue
		}
		n++
		for _, path := range paths {
			name, _, _ := strings.Cut(m[1], "<") // of a device its numbers stand behind the name
			if ok, _ := filepath.Match(path, name); ok && !strings.Contains(call, "O_PATH") {
				lines = append(lines, call)
			}
		}
	}
	return n, lines
}

// A server is a mount that was begun.
type server struct {
	reply
	view string // the mount point, once the view is there; "" if it never was
	end  func() int

	process *os.Process
	ended   chan struct{}
}

// mount begins a mount and waits until the view is there or the command ends.
func (p *place) mount(mountpoint string, args ...string) *server {
	p.Helper()
	dir := p.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	harness.Must(p, err)
	defer out.Close()
	diag, err := os.Create(filepath.Join(dir, "err"))
	harness.Must(p, err)
	defer diag.Close()
	c := p.cmd(context.WithoutCancel(p.Context()), p.argv(args))
	c.Stdout, c.Stderr = out, diag
	harness.Must(p, c.Start())
	s := &server{reply: reply{command: "mount"}, process: c.Process, ended: make(chan struct{})}
	go func() {
		_ = c.Wait()
		close(s.ended)
	}()
	s.end = func() int {
		_ = c.Process.Signal(os.Interrupt)
		if !harness.Await(harness.Patience, func() bool { return harness.IsClosed(s.ended) }) {
			_ = c.Process.Kill()
			<-s.ended
		}
		return harness.ExitStatus(c.ProcessState)
	}
	p.Cleanup(func() {
		s.end()
		for syscall.Unmount(mountpoint, syscall.MNT_DETACH) == nil {
		}
	})
	s.hung = !p.ready(s, out.Name())
	s.stdout, s.stderr = harness.ReadFile(p, out.Name()), harness.ReadFile(p, diag.Name())
	if s.view == "" && !s.hung {
		s.status = harness.ExitStatus(c.ProcessState)
	}
	s.reply = answered(s.reply)
	return s
}

// ready waits for the view or the end; it is false for neither.
func (p *place) ready(s *server, out string) bool {
	return harness.Await(harness.Patience, func() bool {
		if harness.IsClosed(s.ended) {
			return true
		}
		s.view = answered(reply{stdout: harness.ReadFile(p, out)}).answer.Mountpoint
		return s.view != ""
	})
}
