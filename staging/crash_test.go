package staging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// The child of a crash test commits or recovers, and is killed at a call. It is
// this test binary; these variables say what it is to do.
const (
	childCommit = "STAGING_CHILD_SCENE"
	childRoot   = "STAGING_CHILD_ROOT"
	childTask   = "STAGING_CHILD_TASK" // "commit" or "recover"
	childCall   = "STAGING_CHILD_CALL" // before which call it is killed, from 1
)

// TestCrashChild is the child; in a run of all tests it does nothing.
func TestCrashChild(t *testing.T) {
	root := os.Getenv(childRoot)
	if root == "" {
		return
	}
	n, err := strconv.ParseInt(os.Getenv(childCall), 10, 64)
	must(t, err)
	var calls atomic.Int64 // several workers check at a time
	syncs := &commitFixture{lazy: sampled()}
	r := &runner{testKey, hookedBy(func(op, path string, f func() error) error {
		if calls.Add(1) == n {
			must(t, unix.Kill(unix.Getpid(), unix.SIGKILL))
		}
		return syncs.lazily(op, path, f)
	})}
	for _, c := range commitCases {
		if c.name == os.Getenv(childCommit) {
			must(t, childDoes(c.make(t, root), r))
		}
	}
}

func childDoes(sc *commitFixture, r *runner) error {
	if os.Getenv(childTask) == "commit" {
		return run(context.Background(), sc.dir, sc.spec, r)
	}
	l, err := enter(context.Background(), sc.dir, r.key, r.s)
	if err != nil {
		return err
	}
	defer l.Close()
	_, err = l.recover(context.Background(), Automatic)
	return err
}

// crasher kills children.
type crasher struct {
	t             *testing.T
	commitFixture string
	temp          string
}

// kill runs a child that is killed before call n; false if it ended before.
func (c *crasher) kill(root, task string, n int) bool {
	c.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), childCommit+"="+c.commitFixture, childRoot+"="+root, childTask+"="+task,
		childCall+"="+strconv.Itoa(n), "TMPDIR="+c.temp,
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else one that is not killed waits a second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err == nil {
		return false
	}
	if !errors.As(err, &exit) || exit.Sys().(interface{ Signaled() bool }).Signaled() == false {
		c.t.Fatalf("%s, call %d: %v\n%s", task, n, err, out)
	}
	return true
}

// crashed is what a kill left.
type crashed struct {
	*commitFixture
	before   picture
	artifact bool // the last artifact was seen
}

// crashAt makes a fresh root and kills a commit there; ok is false if it ended.
func (c *crasher) crashAt(make func(t testing.TB, root string) *commitFixture, base string, n int) (k crashed, ok bool) {
	c.t.Helper()
	root := filepath.Join(base, fmt.Sprint("root", n))
	must(c.t, os.RemoveAll(root))
	k.commitFixture = make(c.t, root)
	k.lazy = sampled()
	k.before = take(c.t, root)
	ok = c.kill(root, "commit", n)
	k.artifact = k.lastArtifact()
	foreignKept(c.t, k.staying(k.before), root)
	return k, ok
}

// lastArtifact reports whether the last artifact of the commit is there.
func (k *crashed) lastArtifact() bool {
	last := k.spec.artifacts[len(k.spec.artifacts)-1]
	content, err := os.ReadFile(filepath.Join(k.root, last.Path.String()))
	return err == nil && string(content) == string(last.Data)
}

// settle recovers and requires the state before or after; after is wanted if the last artifact
// was seen.
func (k *crashed) settle() Result {
	k.t.Helper()
	out, err := k.recover(Automatic)
	must(k.t, err)
	result := Cleared
	if len(out) == 1 {
		result = out[0].Result
	}
	if again, err := k.recover(Automatic); err != nil || len(again) > 0 {
		k.t.Errorf("the second recovery found %v, %v", again, err)
	}
	if k.artifact || result == Completed {
		k.done(k.before)
		return Completed
	}
	sameTree(k.t, k.before, k.root)
	return RolledBack
}

// TestKillAtEveryCall: a commit is killed before each of its calls. Recovery
// brings the root to the state before or to the state after. Power is not cut, so a
// sample syncs nothing.
func TestKillAtEveryCall(t *testing.T) {
	for _, s := range commitCases[:3] {
		c := &crasher{t, s.name, t.TempDir()}
		base := ""
		if s.name == "single" {
			base = t.TempDir() // where an inode number is used again at once
			_ = shareSources(t, base)
		} else {
			base = scratch(t)
		}
		_, total := traceOf(t, &sweeper{t: t, base: base, make: s.make})
		ends := map[Result]int{}
		for _, n := range append(tries(t, 8, total), total+1) {
			k, killed := c.crashAt(s.make, base, n)
			ends[k.settle()]++
			if killed != (n <= total) {
				t.Errorf("killed: %v, of %d calls", killed, total)
			}
			if t.Failed() {
				t.Fatalf("%s, call %d", s.name, n)
			}
		}
		t.Logf("%s: killed at %d calls: %d before, %d after", s.name, ends[RolledBack]+ends[Completed]-1, ends[RolledBack], ends[Completed])
		if !sampled() && (ends[RolledBack] < 50 || ends[Completed] < 5) {
			t.Error("too few of one kind")
		}
	}
}

// TestKillInRecovery: the recovery of a killed commit is killed at each of its
// calls, and recovered in turn.
func TestKillInRecovery(t *testing.T) {
	pairs, first := 0, sample.Every(t, 13).First
	for _, s := range commitCases[:3] {
		c := &crasher{t, s.name, t.TempDir()}
		base := scratch(t)
		_, total := traceOf(t, &sweeper{t: t, base: base, make: s.make})
		for _, n := range killedCommits(t, total) {
			for m, killed := first, true; killed; m += sample.Of(52, 13, 1) {
				k, ok := c.crashAt(s.make, base, n)
				if !ok {
					t.Fatalf("call %d of %d was not reached", n, total)
				}
				killed = c.kill(k.root, "recover", m)
				k.settleAny()
				if pairs++; t.Failed() {
					t.Fatalf("%s: commit killed at %d, recovery at %d", s.name, n, m)
				}
			}
		}
	}
	t.Logf("%d pairs", pairs)
	if pairs < sample.Of(1, 40, 1000) {
		t.Error("too few")
	}
}

// killedCommits returns before which calls a commit is killed whose recovery is
// killed too: all of them in a long run.
func killedCommits(t *testing.T, total int) (calls []int) {
	if sampled() {
		return tries(t, 4, total)
	}
	every := sample.Of(0, 41, 1)
	for n := 1 + sample.Rand(t).IntN(min(every, total)); n <= total; n += every {
		calls = append(calls, n)
	}
	return calls
}

// settleAny is settle for an attempt that may be ended already.
func (k *crashed) settleAny() {
	k.t.Helper()
	_, err := k.recover(Automatic)
	must(k.t, err)
	if k.lastArtifact() || k.artifact {
		k.done(k.before)
	} else {
		sameTree(k.t, k.before, k.root)
	}
}
