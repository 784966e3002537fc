package limits

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == measuring {
		os.Exit(measure(os.Args[2:]))
	}
	os.Exit(harness.Main(m))
}

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
	if sample.Now() < sample.Long {
		return 3*size + 40*mib
	}
	return 3*size + 64*mib
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
	argv := append([]string{"prlimit", fmt.Sprintf("--cpu=%d", cpuSeconds)}, flags...)
	argv = append(append(argv, harness.Binary(), "--no-progress", "--state-dir", p.state), args...)
	report, err := os.Create(filepath.Join(t.TempDir(), "report"))
	harness.Must(t, err)
	defer report.Close()
	var out, diag bytes.Buffer
	cmd := measured(ctx, report, argv...)
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil || ctx.Err() != nil {
		t.Fatalf("%.100q: %v, %v: %s", args, err, ctx.Err(), diag.String())
	}
	u := used{args: args, stdout: out.String(), stderr: diag.String()}
	raw, err := os.ReadFile(report.Name())
	harness.Must(t, err)
	_, err = fmt.Sscan(string(raw), &u.status, &u.memory)
	harness.Must(t, err)
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

// within checks the memory of a command.
func within(t testing.TB, u used, bound int64) {
	t.Helper()
	if u.memory > bound {
		t.Errorf("%d MiB of memory, at most %d are allowed: %v", u.memory/mib, bound/mib, u)
	}
}
