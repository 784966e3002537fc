package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// Statement approves a preview.
const Statement = "Approved: commit the restore preview exactly as proposed."

// Patience is how long a command may take before it counts as hung. It is far longer than any
// command needs: a command that syncs a file system waits for the data of every other test.
const Patience = 5 * time.Minute

var binary string

// RunFunc is a function in the place of a *testing.M.
type RunFunc func() int

// Run calls the function.
func (f RunFunc) Run() int { return f() }

// Main is the TestMain of a package that runs the program: m is its *testing.M. It takes
// the binary from SPECTRUM_BIN, or builds it. The tests have mounts of their own
// ([blocklog.Main]). Commands under test inherit no file that was left open by the caller of
// the tests: limits of open files count it.
func Main(m interface{ Run() int }) int {
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return blocklog.Main(func() int { return withBinary(m) })
}

func withBinary(m interface{ Run() int }) int {
	if binary = os.Getenv("SPECTRUM_BIN"); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "harness")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // for tests as another user
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "spectrum")
	build := exec.Command("go", "build", "-o", binary, "github.com/spectrumfs/spectrum/cmd/spectrum")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, out)
		return 1
	}
	return m.Run()
}

// Binary is the path of the binary under test.
func Binary() string { return binary }

// A Reply is what a command answered.
type Reply struct {
	Args           []string
	Status         int // the exit status, or 128 and the signal that killed it
	Hung           bool
	Stdout, Stderr string
	Fault          sysfault.Result // of a run with a plan

	// Answer is the JSON on stdout, if there is any.
	Answer struct {
		OK    bool   `json:"ok"`
		Code  string `json:"code"`
		Cause string `json:"cause_code"`
		Phase string `json:"phase"`

		Details struct {
			Statement string `json:"statement"` // that is wanted
		} `json:"details"`
	}
}

func (r Reply) String() string {
	return fmt.Sprintf("%q: exit %d, stdout %q, stderr %q", r.Args, r.Status, r.Stdout, r.Stderr)
}

// Killed reports whether a SIGKILL ended the command.
func (r Reply) Killed() bool { return r.Status == 128+9 }

// Run runs a command of the program to its end, under a plan if there is one.
func (p *Project) Run(t testing.TB, plan *sysfault.Plan, args ...string) Reply {
	t.Helper()
	return run(t, plan, nil, args, p.Argv(args...))
}

// RunAsNobody is Run as Nobody, with a copy of the binary beside the project: Nobody may not
// enter the directory of the binary.
func (p *Project) RunAsNobody(t testing.TB, args ...string) Reply {
	t.Helper()
	argv := p.Argv(args...)
	argv[0] = CopyBinary(t, filepath.Dir(p.Dir))
	return run(t, nil, AsNobody(), args, argv)
}

func run(t testing.TB, plan *sysfault.Plan, as *syscall.SysProcAttr, args, argv []string) Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	r := Reply{Args: args}
	var err error
	if plan != nil {
		r.Fault, err = sysfault.Run(ctx, *plan, argv...)
		r.Status, r.Stdout, r.Stderr = r.Fault.Status, string(r.Fault.Stdout), string(r.Fault.Stderr)
	} else {
		r.Status, r.Stdout, r.Stderr, err = plain(ctx, as, argv)
	}
	r.Hung = ctx.Err() != nil
	if err != nil && !r.Hung {
		t.Fatalf("%q: %v", args, err)
	}
	_ = json.Unmarshal([]byte(r.Stdout), &r.Answer)
	return r
}

// Argv is the command line of a command of the program.
func (p *Project) Argv(args ...string) []string {
	argv := append([]string{binary, "--no-progress", "--state-dir", p.State}, args...)
	if p.Program != "" {
		argv[0] = p.Program
	}
	if p.User != 0 {
		argv = append([]string{"setpriv", fmt.Sprintf("--reuid=%d", p.User), fmt.Sprintf("--regid=%d", p.User), "--clear-groups"}, argv...)
	}
	return argv
}

func plain(ctx context.Context, as *syscall.SysProcAttr, argv []string) (status int, stdout, stderr string, err error) {
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = as, &out, &diag
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	if cmd.ProcessState == nil {
		return 0, "", "", err
	}
	return cmd.ProcessState.ExitCode(), out.String(), diag.String(), err
}

// Must runs a command that must succeed.
func (p *Project) Must(t testing.TB, args ...string) Reply {
	t.Helper()
	r := p.Run(t, nil, args...)
	if r.Status != 0 {
		t.Fatal(r)
	}
	return r
}
