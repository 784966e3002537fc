package limits

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/scene"
)

func TestMain(m *testing.M) { os.Exit(scene.Main(m)) }

const (
	mib = 1 << 20

	// patience is how long a command may take. What takes longer hangs.
	patience = 20 * time.Minute

	// cpuSeconds is what a command may use of all processors: the largest input
	// takes some 3 minutes (see unsortedColumn), and anything quadratic hours.
	cpuSeconds = 900
)

// allowance is how much memory may be resident for artifacts of this size. What
// runs by default is smaller than what the limits are about, and so is what is
// allowed beside: else nothing that is small could fail.
func allowance(size int64) int64 {
	if os.Getenv("SPECTRUM_LONG") == "" {
		return 3*size + 24*mib
	}
	return 3*size + 64*mib
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func long(t *testing.T) {
	t.Helper()
	if os.Getenv("SPECTRUM_LONG") == "" {
		t.Skip("long: make test-long")
	}
}

// A used is what a command answered, and what it used.
type used struct {
	args   []string
	status int // the exit status, or 128 and the signal that killed it
	stdout string
	stderr string
	memory int64 // the largest resident set, in bytes
	code   string
	cause  string
}

func (u used) String() string {
	return fmt.Sprintf("%.100q: exit %d, %d MiB, stdout %.300q, stderr %.500q", u.args, u.status, u.memory/mib, u.stdout, u.stderr)
}

// run runs a command of the program to its end. Flags are those of prlimit(1).
func (p *project) run(t testing.TB, flags []string, args ...string) used {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	argv := append([]string{fmt.Sprintf("--cpu=%d", cpuSeconds)}, flags...)
	argv = append(append(argv, scene.Binary(), "--no-progress", "--state-dir", p.state), args...)
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, "prlimit", argv...)
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%.100q: %v, %v", args, err, ctx.Err())
	}
	u := used{args: args, status: exitStatus(cmd.ProcessState), stdout: out.String(), stderr: diag.String()}
	u.memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	var answer struct {
		Code  string `json:"code"`
		Cause string `json:"cause_code"`
	}
	_ = json.Unmarshal(out.Bytes(), &answer)
	u.code, u.cause = answer.Code, answer.Cause
	for _, bad := range []string{"panic", "fatal error", "DATA RACE"} {
		if strings.Contains(u.stderr, bad) {
			t.Fatal(u)
		}
	}
	return u
}

func exitStatus(state *os.ProcessState) int {
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// within checks the memory of a command. A child begins its life in the memory
// of its parent, which counts: so this process must be smaller than what it
// measures.
func within(t testing.TB, u used, bound int64) {
	t.Helper()
	if own := ownPeak(t); own > bound {
		t.Fatalf("this test itself has used %d MiB, so it cannot measure %d", own/mib, bound/mib)
	}
	if u.memory > bound {
		t.Errorf("%d MiB of memory, at most %d are allowed: %v", u.memory/mib, bound/mib, u)
	}
}

func ownPeak(t testing.TB) int64 {
	t.Helper()
	var own syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &own))
	return own.Maxrss << 10
}
