package rival

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// pairs is how many times two commands are let loose on one root.
func pairs() int { return sample.Of(6, 100, 2000) }

// A rival is a command that runs beside another one.
type rival struct {
	harness.Reply
	pid int
}

// start runs a command of the program in a goroutine of the test.
func start(ctx context.Context, p *harness.Project, args ...string) (r rival, err error) {
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	argv := p.Argv(args...)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		return r, fmt.Errorf("%q: %w, %w", args, err, ctx.Err())
	}
	r.pid, r.Args, r.Status = cmd.Process.Pid, args, cmd.ProcessState.ExitCode()
	r.Stdout, r.Stderr = stdout.String(), stderr.String()
	_ = json.Unmarshal(stdout.Bytes(), &r.Answer)
	return r, nil
}

// both runs two commands at the same time; the second starts up to a commit's
// time before or after the first.
func both(t *testing.T, p *harness.Project, random *rand.Rand, one, two []string) (first, second rival) {
	t.Helper()
	delay := time.Duration(random.Int64N(int64(24*time.Millisecond))) - 12*time.Millisecond
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() {
		spin(t.Context(), -delay)
		first, errs[0] = start(t.Context(), p, one...)
	})
	wg.Go(func() {
		spin(t.Context(), delay)
		second, errs[1] = start(t.Context(), p, two...)
	})
	wg.Wait()
	harness.Must(t, errors.Join(errs[:]...))
	return first, second
}

const busy, busyGone = "busy, with its process", "busy, and gone when looked for"

// whyLost sorts the refusal of a command by what it says, "" if it says nothing
// that helps.
func whyLost(loser harness.Reply, winner int, targets ...string) string {
	says := loser.Stdout + loser.Stderr
	switch {
	case loser.Status == 1 && strings.Contains(says, fmt.Sprintf("process %d ", winner)):
		return busy
	case loser.Status == 1 && strings.Contains(says, "another commit or recovery is running"):
		return busyGone
	case loser.Status == 4 && strings.Contains(says, "stale"):
		return "stale"
	case loser.Answer.Code == "RESTORE_TARGET_PATH_EXISTS":
		for _, target := range targets {
			if strings.Contains(loser.Stderr, target) {
				return "target exists"
			}
		}
	}
	return ""
}

// TestTwoCommits lets two commits meet: of one bundle, and of two that have a
// target in common. One wins, everything of it is in place and nothing of the
// other, and the other says why it lost.
func TestTwoCommits(t *testing.T) {
	for name, files := range map[string]harness.Files{
		"one bundle":    outputs(),
		"common target": {"out/new.txt": outputs()["out/new.txt"], "more/of/it": "more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := harness.New(t, outputs()), harness.New(t, files)
			two.State = one.State
			second := added(two.Site(t, filepath.Join(t.TempDir(), "root")))
			random, ends := sample.Rand(t), map[string]int{}
			for n := range pairs() {
				a := newAttempt(t, one, fmt.Sprint(n))
				other := &harness.Site{Project: two, Root: a.Root}
				r1, r2 := both(t, one, random, harness.CommitArgs(a.Preview(t)), harness.CommitArgs(other.Preview(t)))
				winner, loser := r1, r2
				if r2.Status == 0 {
					a.fresh, winner, loser = second, r2, r1
				}
				why := whyLost(loser.Reply, winner.pid, "out/new.txt", "RESTORE_MANIFEST.json")
				if winner.Status != 0 || why == "" {
					t.Fatalf("pair %d: %v\nand %v", n, r1, r2)
				}
				ends[why]++
				a.end(t, winner.Reply, attack{})
				if a.failed(t, "two commits", loser.Reply) {
					return
				}
			}
			t.Logf("%d pairs, %v", pairs(), ends)
			if ends[busy] == 0 && sample.Now() > sample.Sample {
				t.Error("the two never met")
			}
		})
	}
}

// TestCommitAgainst lets a commit meet a command that is over at once. Both do
// their work, in one order or the other, or one of them says who was there.
func TestCommitAgainst(t *testing.T) {
	for name, args := range map[string]func(*attempt) []string{
		"recover": func(a *attempt) []string { return []string{"recover", a.Root} },
		"preview": func(a *attempt) []string { return []string{"preview", "--restore-root", a.Root, a.Project.Runs[0].Dir} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := harness.New(t, outputs())
			random, ends := sample.Rand(t), map[string]int{}
			for n := range pairs() {
				a := newAttempt(t, p, fmt.Sprint(n))
				commit, other := both(t, p, random, harness.CommitArgs(a.Preview(t)), args(a))
				end := "both done"
				switch {
				case commit.Status == 0 && other.Status != 0:
					end = wantBusy(t, other.Reply, commit.pid)
				case commit.Status != 0 && other.Status == 0:
					end = "commit " + wantBusy(t, commit.Reply, other.pid)
				case commit.Status != 0:
					t.Errorf("none was done: %v\nand %v", commit, other)
				}
				ends[end]++
				a.end(t, commit.Reply, attack{})
				if a.failed(t, name+", "+other.String(), commit.Reply) {
					return
				}
			}
			t.Logf("%d pairs, %v", pairs(), ends)
			if len(ends) < 2 && sample.Now() > sample.Sample {
				t.Error("the two never met")
			}
		})
	}
}

func wantBusy(t *testing.T, loser harness.Reply, winner int) string {
	t.Helper()
	why := whyLost(loser, winner)
	if why != busy && why != busyGone {
		t.Errorf("it does not say who was there: %v", loser)
	}
	return why
}

// TestSecondInEveryWindow stops a commit before each of its calls and lets a
// second one, a preview and a recover try. All are rejected while the lock is
// held, and say by whom; a recover that waits is done in the end.
func TestSecondInEveryWindow(t *testing.T) {
	t.Parallel()
	p := harness.New(t, outputs())
	var sum harness.Tally
	inWindows(t, sample.Every(t, 37), func(n int) int {
		a := newAttempt(t, p, fmt.Sprint(n))
		other := a.Preview(t)
		waiting := make(chan error, 1)
		r := a.Commit(t, &sysfault.Plan{N: n, Match: a.names, Before: func(sysfault.Call) {
			if a.others(t, other) {
				sum.Add("under the lock")
			}
			go func() {
				r, err := start(context.WithoutCancel(t.Context()), p, "recover", "--lock-timeout", "50s", a.Root)
				if r.Status != 0 {
					err = fmt.Errorf("a recover that waits: %v", r)
				}
				waiting <- err
			}()
		}})
		if r.Fault.Fired == 0 {
			return 0
		}
		harness.Must(t, <-waiting)
		sum.Add("windows")
		a.end(t, r, attack{})
		if a.failed(t, fmt.Sprint("a second one before call ", n), r) {
			return 0
		}
		return n
	})
	sum.Demand(t, "under the lock")
}

// others lets other commands try while a commit is stopped that has the lock,
// if it has.
func (a *attempt) others(t *testing.T, id string) bool {
	t.Helper()
	pid := lockHolder(t, a.Root)
	if pid == 0 {
		return false
	}
	wantClosedOnExec(t, pid, a.Root)
	for _, r := range []harness.Reply{
		a.Project.Run(t, nil, harness.CommitArgs(id)...), a.Recover(t, nil), a.PreviewReply(t, nil),
	} {
		if whyLost(r, pid) != busy {
			t.Errorf("%d has the lock: %v", pid, r)
		}
	}
	return true
}
